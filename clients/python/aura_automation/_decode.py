"""From bytes to models and typed errors. Whatever does not fit the contract becomes `ContractDrift`, naming
the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NoReturn, TypeVar

from marshmallow import Schema, ValidationError

from aura_automation import _schemas
from aura_automation._event_schemas import TRANSIENT, EventSchema, RunData
from aura_automation._limits import EXCERPT_CHARS
from aura_automation.errors import AutomationError, ContractDrift, Json
from aura_automation.models import Event, FailedReady, Failure, Ready, Run, RunChange, TransientEvent

T = TypeVar("T")

_EVENT = EventSchema()
_RUN_DATA = RunData()
_READY = _schemas.ReadySchema()
_FAILED_READY = _schemas.FailedReadySchema()
_FAILURE = _schemas.FailureSchema()
_COMMAND_FAILURE = _schemas.CommandFailureSchema()


def read_json(raw: bytes | str, where: str) -> Json:
    """Return the one JSON document in `raw`. Raises `ContractDrift` for anything else, NaN and infinities
    included.
    """
    try:
        document: Json = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ContractDrift(where, "", f"not a JSON document ({error}): {excerpt(raw)!r}") from None
    return document


def load(schema: Schema, kind: type[T], document: Json, where: str) -> T:
    """Return `document` as a `kind`, made by `schema`. Raises `ContractDrift` naming every field that does
    not fit.
    """
    if not isinstance(document, dict):
        raise ContractDrift(where, "", f"not a JSON object: {excerpt(json.dumps(document))!r}")
    try:
        loaded: object = schema.load(document)
    except ValidationError as error:
        _drift(where, error.messages)
    if not isinstance(loaded, kind):
        raise TypeError(f"{type(schema).__name__} makes no {kind.__name__}")
    return loaded


def read_ready(raw: bytes, where: str) -> Ready:
    """Return what a ready file says. Raises the typed error that an error ready file holds, or
    `ContractDrift`.
    """
    document = read_json(raw, where)
    if isinstance(document, dict) and "error" in document:
        raise load(_FAILED_READY, FailedReady, document, where).error.exception()
    return load(_READY, Ready, document, where)


def http_failure(document: Json, where: str, retry_after_s: float | None) -> AutomationError:
    """Return the typed error of an HTTP error body. Raises `ContractDrift` for another shape or an unknown
    code.
    """
    problem = load(_FAILURE, Failure, document, where).error.exception()
    problem.retry_after_s = retry_after_s
    return problem


def command_failure(document: Json, where: str) -> AutomationError:
    """Return the typed error of an offline command's error object. Raises `ContractDrift` like
    `http_failure`.
    """
    return load(_COMMAND_FAILURE, Failure, document, where).error.exception()


def read_event(raw: str, where: str) -> Event:
    """Return one durable event. Raises `ContractDrift`."""
    return load(_EVENT, Event, read_json(raw, where), where)


def read_transient(kind: str, raw: str, where: str) -> TransientEvent:
    """Return one live event. Raises `ContractDrift`, also for a type that the contract does not have."""
    schema = TRANSIENT.get(kind)
    if schema is None:
        raise ContractDrift(where, "event", f"{kind!r} is not an event of the contract")
    data: dict[str, Json] = load(schema, dict, read_json(raw, where), where)
    return TransientEvent(kind, data)


def read_run(event: Event) -> Run:
    """Return the run record that a `run.…` event (but not `run.started`) carries."""
    return load(_RUN_DATA, RunChange, dict(event.data), f"event {event.seq}").run


def excerpt(raw: bytes | str) -> str:
    """Return the beginning of a foreign text, short enough for an error message."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return text if len(text) <= EXCERPT_CHARS else text[:EXCERPT_CHARS] + "…"


def _drift(where: str, messages: object) -> NoReturn:
    problems = list(_paths(messages, ""))
    field, problem = problems[0] if problems else ("", "does not fit the contract")
    raise ContractDrift(where, field, problem, tuple(path for path, _ in problems)) from None


def _paths(messages: object, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            here = prefix if key == "_schema" else f"{prefix}.{key}" if prefix else str(key)
            yield from _paths(inner, here)
        return
    texts = messages if isinstance(messages, list) else [messages]
    yield prefix, " ".join(str(text) for text in texts)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
