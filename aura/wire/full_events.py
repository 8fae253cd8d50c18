"""The data of events that only the gateway records: as they stand in a row's `ext`, and read back from there.

The contract's readers see such an event as a notice. Pure; what the gateway shows of them is `aura.wire.chat`'s
business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from aura import events as e
from aura.jsontypes import JsonValue
from aura.wire.automation import Fields
from aura.wire.event_reader import Members


def full_data(event: e.Event) -> Fields:
    """Return the fields of an event whose `full` is true. Raises `TypeError` for any other."""
    match event:
        case e.SessionInfo():
            return {"model": event.model, "context_limit": event.context_limit}
        case e.McpStatus():
            return {"servers": [_server(server) for server in event.servers]}
        case e.ToolRequested():
            return {"call_id": event.call_id, "name": event.name, "args": dict(event.args)}
        case e.ToolUsage():
            ids: list[JsonValue] = list(event.call_ids)
            return {"call_ids": ids, "input_tokens": event.input_tokens, "output_tokens": event.output_tokens}
        case e.ObserverAttached():
            return {"observer": _observer(event.observer)}
        case e.ObserverDetached():
            return {"observer": _observer(event.observer), "because": event.because}
        case e.ClaimsExhausted():
            return {}
        case e.LivenessDecided():
            return {"policy": event.policy}
        case _:
            raise TypeError(f"{type(event).__name__} is recorded by every run")


def read_full_event(kind: str, data: Members) -> e.Event:
    """Return the event that `full_data` wrote. Raises `ValueError` for anything else."""
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"{kind[:80]!r} is no kind of event")
    return reader(data)


def _server(server: e.McpServerStatus) -> JsonValue:
    return {
        "server_name": server.name,
        "transport": server.transport,
        "status": server.status,
        "tools_count": server.tools_count,
        "reason": server.reason,
    }


def _observer(observer: e.Observer) -> JsonValue:
    return {"id": observer.id, "kind": observer.kind, "presence": observer.presence}


def _read_info(data: Members) -> e.Event:
    limit = data.values.get("context_limit")
    return e.SessionInfo(model=data.text("model"), context_limit=None if limit is None else data.whole("context_limit"))


def _read_mcp_status(data: Members) -> e.Event:
    return e.McpStatus(servers=tuple(_read_server(server) for server in data.items("servers")))


def _read_server(server: Members) -> e.McpServerStatus:
    return e.McpServerStatus(
        name=server.text("server_name"),
        transport=cast("e.Transport", server.choice("transport", ("stdio", "http_streamable", "sse"))),
        status=cast("e.McpState", server.choice("status", ("connected", "failed", "not_attempted"))),
        tools_count=server.whole("tools_count"),
        reason=server.optional_text("reason"),
    )


def _read_requested(data: Members) -> e.Event:
    return e.ToolRequested(call_id=data.text("call_id"), name=data.text("name"), args=data.object("args").values)


def _read_usage(data: Members) -> e.Event:
    ids = data.any("call_ids")
    if not isinstance(ids, list) or not all(isinstance(item, str) for item in ids):
        raise data.error("call_ids", "an array of texts")
    return e.ToolUsage(
        call_ids=tuple(cast("list[str]", ids)),
        input_tokens=data.whole("input_tokens"),
        output_tokens=data.whole("output_tokens"),
    )


def _read_observer(data: Members) -> e.Observer:
    observer = data.object("observer")
    kind = observer.choice("kind", ("collecting", "claiming"))
    return e.Observer(observer.text("id"), cast("e.ObserverKind", kind), observer.flag("presence"))


def _read_detached(data: Members) -> e.Event:
    because = data.choice("because", ("released", "expired", "displaced"))
    return e.ObserverDetached(observer=_read_observer(data), because=cast("e.Because", because))


def _read_decided(data: Members) -> e.Event:
    return e.LivenessDecided(policy=cast("e.Policy", data.choice("policy", ("cancel", "continue", "park"))))


_READERS: Mapping[str, Callable[[Members], e.Event]] = {
    "session.info": _read_info,
    "mcp.status": _read_mcp_status,
    "tool.requested": _read_requested,
    "tool.usage": _read_usage,
    "observer.attached": lambda data: e.ObserverAttached(observer=_read_observer(data)),
    "observer.detached": _read_detached,
    "claims.exhausted": lambda data: e.ClaimsExhausted(),
    "liveness.decided": _read_decided,
}
