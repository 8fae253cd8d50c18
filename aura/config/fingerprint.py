"""The fingerprint of an agent: equal for equal behaviour, on any machine. It never sees a secret."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

from aura.config.spec import AgentSpec, Secret
from aura.jsontypes import JsonValue
from aura.wire.canonical import encode

_LEFT_OUT = frozenset(
    ("fingerprint", "source", "prompt_source", "home", "token", "token_variables")
    + ("target", "secrets", "secret_variables", "webhook", "sent", "created_at_ms")
)


def with_fingerprint(agent: AgentSpec) -> AgentSpec:
    """Return the same agent with the SHA-256, in hex, of what decides its behaviour.

    Left out are secrets and where files lie; of a script file its name counts, of a provider everything else.
    """
    return replace(agent, fingerprint=hashlib.sha256(encode(_plain(agent))).hexdigest())


def _plain(value: object) -> JsonValue:
    if isinstance(value, Secret):
        raise TypeError("a secret must not enter a fingerprint")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value) if _counts(field.name)}
    raise TypeError(f"a {type(value).__name__} cannot enter a fingerprint")


def _counts(name: str) -> bool:
    return name not in _LEFT_OUT
