"""Identifiers: their forms, how they are made, how a session id is checked (interfaces.md section 2).

Run, message and input ids are UUID version 7 with a prefix, so they sort by the time they were made. This module knows
no clock: the caller passes the time, so that replays and tests are exact.
"""

from __future__ import annotations

import os
import re
import uuid

from aura.errors import BadRequest, InvalidId

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RUN_ID = re.compile(r"run_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA256_PREFIX = re.compile(r"[0-9a-f]{1,64}")


def uuid7(now_ms: int, random: bytes | None = None) -> str:
    """Return UUID v7 text for the Unix time `now_ms`. `random` (10 bytes) replaces the system's entropy in tests."""
    noise = int.from_bytes(random if random is not None else os.urandom(10), "big")
    rand_a, rand_b = (noise >> 62) & 0xFFF, noise & ((1 << 62) - 1)
    value = (now_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b
    return str(uuid.UUID(int=value))


def new_session_id() -> str:
    """Return a fresh session id: UUID v4 text."""
    return str(uuid.uuid4())


def new_run_id(now_ms: int) -> str:
    """Return a fresh run id, `run_` + UUID v7."""
    return f"run_{uuid7(now_ms)}"


def new_message_id(now_ms: int) -> str:
    """Return a fresh message id, `msg_` + UUID v7. It is assigned when the input or the model call starts."""
    return f"msg_{uuid7(now_ms)}"


def new_input_id(now_ms: int) -> str:
    """Return a fresh id of a question or approval, `inp_` + UUID v7."""
    return f"inp_{uuid7(now_ms)}"


def check_session_id(text: str) -> str:
    """Return `text` if it may name a session; raise `InvalidId` otherwise."""
    if is_session_id(text):
        return text
    raise InvalidId(
        f"{text[:140]!r} is not a session id",
        hint="Use 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit, without '..'.",
    )


def is_session_id(text: str) -> bool:
    """Tell whether `text` may name a session (interfaces.md section 2)."""
    return _SESSION_ID.fullmatch(text) is not None and ".." not in text


def is_run_id(text: str) -> bool:
    """Tell whether `text` has the form of a run id. It says nothing about such a run's existence."""
    return _RUN_ID.fullmatch(text) is not None


def is_sha256(text: str) -> bool:
    """Tell whether `text` is 64 lower-case hex digits."""
    return _SHA256.fullmatch(text) is not None


def check_revision_prefix(text: str | None) -> str | None:
    """Return `text` if it may begin a revision, or is None; raise `BadRequest` otherwise."""
    if text is None or _SHA256_PREFIX.fullmatch(text):
        return text
    raise BadRequest(f"{text[:80]!r} is not the beginning of a revision", hint="Give up to 64 lower-case hex digits.")
