"""The automation profile's shapes: records and events as the contract's JSON (contract.md; interfaces.md 7 and 9).

Each encoder returns plain JSON values with exactly the contract's keys. Event data is encoded once, when it is
committed, and spliced from then on. This module reads no request: that is `aura.wire.schemas`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aura import events as e
from aura.clock import format_time
from aura.conversation import Message
from aura.jsontypes import JsonValue
from aura.runs import Persisted, Run, RunError
from aura.wire import canonical

Fields = dict[str, JsonValue]

_LEADING_TEXT = re.compile(rb'"data":\{("[a-z_]+":"(?:[^"\\]|\\.)*")')


def error_fields(error: RunError | None) -> JsonValue:
    """Return an Error object, or None."""
    if error is None:
        return None
    details: Fields = {key: value for key, value in error.details.items() if value is not None}
    return {"code": error.code, "message": error.message, "retryable": error.retryable, "details": details}


def run_fields(run: Run) -> Fields:
    """Return the contract's Run object."""
    return {
        "id": run.id,
        "request_id": run.request_id,
        "kind": run.kind,
        "request_digest": run.request_digest,
        "on_input": run.on_input,
        "session_id": run.session_id,
        "state": run.state,
        "terminal": run.terminal,
        "outcome": run.outcome,
        "error": error_fields(run.error),
        "persist_error": error_fields(run.persist_error),
        "cancel_requested": run.cancel_requested,
        "result": {"content": run.result.content} if run.result else None,
        "persisted": persisted_fields(run.persisted),
        "stats": {
            "iterations": run.stats.iterations,
            "tool_calls": dict(run.stats.tool_calls),
            "tool_errors": run.stats.tool_errors,
        },
        "accepted_seq": run.accepted_seq,
        "accepted_at": format_time(run.accepted_at_ms),
        "started_at": _time(run.started_at_ms),
        "finished_at": _time(run.finished_at_ms),
        "settled_at": _time(run.settled_at_ms),
    }


def persisted_fields(persisted: Persisted | None) -> JsonValue:
    """Return the `persisted` object of a run, or None."""
    if persisted is None:
        return None
    return {"revision": persisted.revision, "messages": persisted.messages, "seq": persisted.seq}


def message_fields(message: Message, index: int, *, thinking: bool = False) -> Fields:
    """Return an item of `GET /v1/session/messages`. `index` counts stored non-system messages from 0."""
    calls: list[JsonValue] = [
        {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.calls
    ]
    fields: Fields = {
        "index": index,
        "message_id": message.id or None,
        "role": message.role,
        "content": message.content or None,
        "calls": calls or None,
        "tool_call_id": message.tool_call_id or None,
        "tool_name": message.tool_name or None,
        "type": int(message.type),
        "created_at": message.created_at or None,
    }
    if thinking:
        fields["thinking"] = message.thinking or None
    return fields


def event_data(event: e.Event, run: Run | None) -> Fields:
    """Return an event's `data` with exactly the contract's keys. `run` is the record after the transition."""
    match event:
        case e.ServerStarted():
            return {"pid": event.pid, "version": event.version, "resumed_revision": event.resumed_revision}
        case e.ServerStopping():
            return {"reason": event.reason}
        case (
            e.RunAccepted()
            | e.RunCancelRequested()
            | e.RunFinished()
            | e.RunPersisted()
            | e.RunPersistFailed()
            | e.RunLost()
        ):
            assert run is not None, f"{event.kind} needs its run"
            return {"run": run_fields(run)}
        case e.RunStarted():
            return {"run_id": event.run_id, "message_id": event.message_id}
        case e.MessageUser():
            return {"message_id": event.message_id, "content": event.content}
        case e.MessageAssistant():
            calls: list[JsonValue] = [
                {"call_id": call.id, "name": call.name, "args": dict(call.arguments)} for call in event.tool_calls
            ]
            return {"message_id": event.message_id, "content": event.content, "tool_calls": calls}
        case e.ToolStarted():
            return {"call_id": event.call_id, "name": event.name, "args": dict(event.args)}
        case _:
            return _other_data(event)


def _other_data(event: e.Event) -> Fields:
    match event:
        case e.ToolFinished():
            return {
                "call_id": event.call_id,
                "name": event.name,
                "status": event.status,
                "result": event.result,
                "error": event.error,
            }
        case e.Notice():
            return {"level": event.level, "source": event.origin, "message": event.message}
        case e.StatusChanged():
            return status_fields(event)
        case e.InputRequired():
            options: list[JsonValue] = [{"label": o.label, "description": o.description} for o in event.options]
            return {
                "input_id": event.input_id,
                "kind": event.input_kind,
                "question": event.question,
                "options": options,
                "multi_select": event.multi_select,
                "tool": event.tool,
                "detail": event.detail,
                "pattern": event.pattern,
            }
        case e.InputResolved():
            return {"input_id": event.input_id, "answer": event.answer}
        case e.CommandResult():
            return {"command": event.command, "message": event.message, "error": event.error}
        case e.SessionPersisted():
            return {
                "revision": event.revision,
                "messages": event.messages,
                "reason": event.reason,
                "changed": event.changed,
            }
        case e.SessionPersistFailed():
            return {"error": error_fields(event.error), "reason": event.reason}
        case _:
            raise TypeError(f"{type(event).__name__} has no contract shape")


def status_fields(status: e.StatusChanged) -> Fields:
    """Return the `status` object of events and of `GET /v1/session`."""
    return {
        "agent": status.agent,
        "mode": status.mode,
        "provider": status.provider,
        "model": status.model,
        "iteration": status.iteration,
        "tokens_used": status.tokens_used,
        "tokens_max": status.tokens_max,
    }


def transient_fields(item: e.Transient) -> tuple[str, Fields]:
    """Return (SSE event name, data) of a live event."""
    match item:
        case e.Delta(thinking=True):
            return "delta.thinking", {"message_id": item.message_id, "text": item.text}
        case e.Delta():
            return "delta.content", {"message_id": item.message_id, "text": item.text}
        case e.ToolOutput():
            return "tool.output", {"name": item.name, "line": item.line}
        case e.ToolProgress():
            return "tool.output", {"name": item.name, "line": item.text}
        case e.Spinner():
            return "spinner", {"text": item.text}


def envelope(seq: int, at_ms: int, type: str, session_id: str, run_id: str | None, data: bytes) -> bytes:
    """Return an event's exact bytes, as served, exported and hashed: one JSON object without a line end.

    Ids and types have no character that JSON escapes, so they are spliced, never encoded.
    """
    run = f'"{run_id}"' if run_id else "null"
    head = f'{{"seq":{seq},"time":"{format_time(at_ms)}","type":"{type}","session_id":"{session_id}"'
    return f'{head},"run_id":{run},"data":'.encode() + data + b"}"


def page(envelopes: Iterable[bytes], last_seq: int) -> bytes:
    """Return the body of `GET /v1/journal` around events that are already encoded."""
    return b'{"events":[' + b",".join(envelopes) + b'],"last_seq":' + str(last_seq).encode() + b"}"


def leading_text(line: bytes) -> bytes | None:
    """Return the first field of an encoded event's data, as in the bytes, if it is a text; the rest is not read."""
    found = _LEADING_TEXT.search(line)
    return found.group(1) if found else None


def leading_text_of(name: str, value: str) -> bytes:
    """Return what `leading_text` returns for an event whose data begins with this field."""
    return canonical.encode({name: value})[1:-1]


def request_digest(kind: str, on_input: str, text: str) -> str:
    """Return the digest that makes a request id idempotent (interfaces.md section 9)."""
    import hashlib

    return hashlib.sha256(canonical.encode({"kind": kind, "on_input": on_input, "text": text})).hexdigest()


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_time(at_ms)
