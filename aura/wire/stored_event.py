"""Reads a stored event back into the event that it was stored for: the inverse of `catalogue.encode_event`.

`type` and `data` are the contract's, `kind` and `ext` what only the store has: the agent, usage, who answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aura import events as e
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical
from aura.wire.event_reader import Members, read_event


def read_stored_event(type: str, data: bytes | str, kind: str, ext: bytes | str | None) -> e.Event:
    """Return the event of a stored row. Raises `ValueError` for anything that `encode_event` does not write."""
    fields = _object(ext) if ext is not None else {}
    agent = fields.get("agent")
    if not isinstance(agent, Mapping):
        return _with_extension(read_event(type, _object(data)), fields)
    shown = fields.get("data")
    if not isinstance(shown, Mapping):
        raise ValueError("ext.data is not an object")
    return replace(_with_extension(read_event(kind, shown), fields), source=_read_source(Members("ext.agent", agent)))


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
