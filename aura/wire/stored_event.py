"""Reads a stored event back into the event that it was stored for: the inverse of `catalogue.encode_event`.

`type` and `data` are the contract's, `kind` and `ext` what only the store has: the agent, usage, who answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aura import events as e
from aura.clock import parse_time
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical
from aura.wire.catalogue import CATALOGUE
from aura.wire.event_reader import Members, read_event
from aura.wire.full_events import read_full_event


def read_stored_event(type: str, data: bytes | str, kind: str, ext: bytes | str | None) -> e.Event:
    """Return the event of a stored row. Raises `ValueError` for anything that `encode_event` does not write."""
    return _read(type, _object(data), kind, ext)


def read_line(line: bytes, kind: str, ext: bytes | str | None) -> tuple[e.Event, int]:
    """Return (event, its time in Unix ms) of a row that was read as the line that is served. Raises `ValueError`."""
    row = Members("event", _object(line))
    return _read(row.text("type"), row.object("data").values, kind, ext), parse_time(row.text("time"))


def _read(type: str, data: JsonObject, kind: str, ext: bytes | str | None) -> e.Event:
    fields = _object(ext) if ext is not None else {}
    if "data" not in fields:
        return _with_extension(read_event(type, data), fields)
    shown = Members("ext", fields).object("data")
    entry = CATALOGUE.get(kind)
    if entry is not None and entry.event.full:
        event = read_full_event(kind, shown)
    else:
        event = _with_extension(read_event(kind, shown.values), fields)
    agent = fields.get("agent")
    return replace(event, source=_read_source(Members("ext.agent", agent))) if isinstance(agent, Mapping) else event


def _object(data: bytes | str) -> JsonObject:
    value: JsonValue = canonical.decode(data)
    if not isinstance(value, Mapping):
        raise ValueError("it is not an object")
    return value


def _read_source(agent: Members) -> e.Source:
    return e.Source(
        agent.text("agent_id"),
        agent.text("agent_name"),
        agent.optional_text("parent_agent_id"),
        agent.optional_text("task_id"),
    )


def _with_extension(event: e.Event, fields: JsonObject) -> e.Event:
    ext = Members("ext", fields)
    match event:
        case e.MessageAssistant() if "usage" in fields:
            return replace(event, usage=_read_usage(ext.object("usage")))
        case e.InputRequired() if "expires_at_ms" in fields:
            return replace(event, expires_at_ms=ext.whole("expires_at_ms"))
        case e.InputResolved() if "answered_by" in fields:
            return replace(event, answered_by=ext.text("answered_by"))
        case e.RunCancelRequested() if "cancel" in fields:
            cancel = ext.object("cancel")
            return replace(event, reason=cancel.text("reason"), message=cancel.optional_text("message"))
        case _:
            return event


def _read_usage(usage: Members) -> e.Usage:
    cost = usage.values.get("cost_usd")
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float)):
        raise usage.error("cost_usd", "a number")
    return e.Usage(
        provider=usage.text("provider"),
        model=usage.text("model"),
        input_tokens=usage.whole("input_tokens"),
        output_tokens=usage.whole("output_tokens"),
        cost_usd=None if cost is None else float(cost),
    )
