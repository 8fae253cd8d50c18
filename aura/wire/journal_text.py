"""Reads a line of the contract's journal (contract.md, Journal and events) into what a store can take in.

A line of ours comes out with the very bytes that it had; one of another program in our spelling, with times to the
millisecond. It knows nothing of the lines before it: `aura.store.replay` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from aura.clock import parse_time
from aura.errors import InvalidId
from aura.events import Event
from aura.ids import check_session_id
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import NewRun, OnInput, RunKind
from aura.wire import canonical
from aura.wire.event_reader import Members, read_event

_KEYS = ("seq", "time", "type", "session_id", "run_id", "data")
_RUN_ID = re.compile(r"run_[A-Za-z0-9_-]{1,124}")


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One event of a journal's text. `data` are its fields as they stand there."""

    seq: int
    at_ms: int
    type: str
    session_id: str
    run_id: str | None
    data: JsonObject
    event: Event


def parse_line(line: bytes) -> JournalLine:
    """Return the event that a line holds. Raises `ValueError`, `NotCanonical` for what is not even JSON."""
    value = canonical.decode(line)
    if not isinstance(value, Mapping):
        raise ValueError("it is not an object")
    unknown = [key for key in value if key not in _KEYS]
    if unknown:
        raise ValueError(f"{unknown[0][:80]!r} is no key of an event")
    members = Members("event", value)
    type, data = members.text("type"), members.object("data")
    return JournalLine(
        seq=members.whole("seq"),
        at_ms=_time(members, "time"),
        type=type,
        session_id=_session_id(members),
        run_id=_run_id(members),
        data=data.values,
        event=read_event(type, data.values),
    )


def encode_data(line: JournalLine, session_id: str) -> bytes:
    """Return the canonical bytes of a line's data; a run record in it gets `session_id` for its own."""
    run = line.data.get("run")
    if session_id == line.session_id or not isinstance(run, Mapping) or "session_id" not in run:
        return canonical.encode(line.data)
    fields: dict[str, JsonValue] = {**line.data, "run": {**run, "session_id": session_id}}
    return canonical.encode(fields)


def read_new_run(line: JournalLine, text: str) -> NewRun:
    """Return what the controller submitted, as a `run.accepted` has it. The input itself is not in the journal: `text`
    is what is known of it. Raises `ValueError`.
    """
    run = Members("data", line.data).object("run")
    run_id = run.text("id")
    if run_id != line.run_id:
        raise ValueError("data.run.id is not the run_id of the event")
    return NewRun(
        id=run_id,
        request_id=run.text("request_id"),
        kind=cast(RunKind, run.choice("kind", ("prompt", "command"))),
        text=text,
        on_input=cast(OnInput, run.choice("on_input", ("block", "wait"))),
        digest=run.text("request_digest"),
        accepted_at_ms=_time(run, "accepted_at"),
    )


def _session_id(members: Members) -> str:
    try:
        return check_session_id(members.text("session_id"))
    except InvalidId as error:
        raise ValueError(f"event.session_id: {error.message}") from error


def _run_id(members: Members) -> str | None:
    run_id = members.optional_text("run_id")
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise ValueError(f"event.run_id: {run_id[:140]!r} is not a run id")
    return run_id


def _time(members: Members, name: str) -> int:
    try:
        return parse_time(members.text(name))
    except ValueError as error:
        raise ValueError(f"{members.path}.{name}: {error}") from error
