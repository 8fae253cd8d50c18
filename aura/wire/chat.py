"""A run's events as the frames of `/v1/chat/completions` (streaming-guide.md; gateway.md 3; interfaces.md 8 and 10).

A projection and nothing else: the same events make the same frames. Live items only make text come sooner; what they
have not said is in the durable events, so it is right with none of them. It knows no socket, no store and no time but
that of the events. One reader at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from aura import events as e
from aura import limits
from aura.jsontypes import JsonValue
from aura.runs import RunError
from aura.wire import canonical
from aura.wire.tool_names import split_tool_name

Fields = dict[str, JsonValue]
ToolResultMode = Literal["none", "open-web-ui", "aura"]

SEPARATOR = "\n\n"  # before the text that follows tools
TRUNCATED = "... [truncated]"
TIMEOUT = "timeout"  # the code of a request that took too long: no run ends with it, and no contract knows it
MAIN: Fields = {"agent_id": "main"}


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a server shows of tools and thoughts. `result_max_chars` 0: everything."""

    tool_results: ToolResultMode = "none"
    result_max_chars: int = 1_000
    custom_events: bool = False
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class ChatHead:
    """What all frames of one stream have in common, and what decides its end. `client_tools` are the caller's own."""

    session_id: str
    max_tokens: int | None = None
    client_tools: frozenset[str] = frozenset()
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a whole run has used."""

    prompt: int = 0
    completion: int = 0

    def fields(self) -> Fields:
        """Return the three numbers as OpenAI names them."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """One OpenAI chunk; the last one has a finish reason and the usage."""

    delta: Fields
    finish_reason: str | None = None
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """An `aura.*` event."""

    name: str
    payload: Fields


@dataclass(frozen=True, slots=True)
class Failed:
    """The run did not answer. `outcome` is the contract's; `started` tells whether the input was taken at all."""

    error: RunError
    outcome: str
    started: bool


Frame = Chunk | Named | Failed

# The kinds that make a frame or decide one: readers need not look into the others.
KINDS = frozenset(
    kind.kind
    for kind in (
        e.RunStarted,
        e.SessionInfo,
        e.McpStatus,
        e.MessageAssistant,
        e.ToolRequested,
        e.ToolStarted,
        e.ToolFinished,
        e.ToolUsage,
        e.RunFinished,
        e.RunPersisted,
        e.RunPersistFailed,
        e.RunLost,
    )
)


@dataclass(slots=True)
class _Text:
    """The message that is being written: what was sent of it, and what it still waits for."""

    message_id: str | None = None
    sent_chars: int = 0
    open_calls: set[str] = field(default_factory=set)  # calls of the last message: the next one comes after them
    finished: str | None = None


class ChatProjector:
    """Turns events, in order, into frames. `ended` once the run is terminal; then no more frames come."""

    def __init__(self, head: ChatHead, options: ChatOptions) -> None:
        self._head = head
        self._options = options
        self._text = _Text()
        self._has_role = False
        self._after_tool = False
        self._indexes: dict[str, int] = {}
        self._started: dict[str, tuple[int, int]] = {}
        self._held: list[e.Delta] = []
        self._tokens = Tokens()
        self._finished: e.RunFinished | None = None
        self._is_introduced = False
        self.started = False
        self.ended = False

    def event(self, event: e.Event, seq: int, at_ms: int) -> Iterator[Frame]:
        """Yield the frames of a durable event of the run, which has `seq` and happened at `at_ms`."""
        if event.source is not None:
            return
        match event:
            case e.RunStarted():
                self.started = True
            case e.SessionInfo():
                yield from self._named("aura.session_info", _info(event))
                yield from self._release()
            case e.McpStatus():
                yield from self._named("aura.mcp_status", {"servers": [_server(item) for item in event.servers]})
            case e.MessageAssistant():
                yield from self._message(event)
            case e.ToolRequested():
                yield from self._requested(event)
            case e.ToolStarted():
                yield from self._tool_started(event, seq, at_ms)
            case e.ToolFinished():
                yield from self._tool_finished(event, at_ms)
            case e.ToolUsage():
                used = Tokens(event.input_tokens, event.output_tokens).fields()
                yield from self._named("aura.tool_usage", {"tool_ids": list(event.call_ids), **used}, agent=True)
            case e.RunFinished():
                self._finished = event
            case e.RunPersisted() | e.RunPersistFailed() | e.RunLost():
                yield from self._end(event)
            case _:
                return

    def live(self, item: e.Transient) -> Iterator[Frame]:
        """Yield the frames of a live item; none for one that comes too late or too early."""
        match item:
            case e.Delta():
                if self._options.reasoning or not item.thinking:
                    yield from self._delta(item)
            case e.ToolProgress():
                yield from self._named("aura.progress", self._progress(item), agent=True)
            case _:
                return

    def finish_early(self) -> Iterator[Frame]:
        """Yield the end of a stream that does not wait for the run's."""
        self.ended = True
        yield from self._tail("stop")

    # --- text ---------------------------------------------------------------------------------------------------

    def _delta(self, item: e.Delta) -> Iterator[Frame]:
        text = self._text
        if item.message_id == text.finished:
            return
        if not self._is_open(item.message_id):
            if len(self._held) < limits.TRANSIENT_QUEUE_COUNT:  # the durable event has what is dropped
                self._held.append(item)
            return
        if item.thinking:
            yield from self._named("aura.reasoning", {"content": item.text}, agent=True)
            return
        if item.message_id != text.message_id:
            text.message_id, text.sent_chars = item.message_id, 0
        if item.offset > text.sent_chars:
            return  # something is missing: the durable event has it
        piece = item.text[text.sent_chars - item.offset :]
        text.sent_chars += len(piece)
        yield from self._say(piece)

    def _is_open(self, message_id: str) -> bool:
        """Tell whether everything that comes before this message was shown, or is known to be this message's."""
        if message_id == self._text.message_id:
            return True
        return self._is_introduced and self._text.message_id is None and not self._text.open_calls

    def _release(self) -> Iterator[Frame]:
        self._is_introduced = True
        held, self._held = self._held, []
        for item in held:
            yield from self._delta(item)

    def _message(self, event: e.MessageAssistant) -> Iterator[Frame]:
        text = self._text
        sent = text.sent_chars if event.message_id == text.message_id else 0
        yield from self._say(event.content[sent:])
        if event.usage is not None:
            used = self._tokens
            self._tokens = Tokens(used.prompt + event.usage.input_tokens, used.completion + event.usage.output_tokens)
        self._text = _Text(open_calls={call.id for call in event.tool_calls}, finished=event.message_id)
        self._held = [item for item in self._held if item.message_id != event.message_id]
        if not self._text.open_calls:
            yield from self._release()

    def _say(self, text: str) -> Iterator[Frame]:
        if not text:
            return
        if self._after_tool:
            text, self._after_tool = SEPARATOR + text, False
        if self._has_role:
            yield Chunk({"content": text})
            return
        self._has_role = True
        yield Chunk({"role": "assistant", "content": text})

    # --- tools --------------------------------------------------------------------------------------------------

    def _requested(self, event: e.ToolRequested) -> Iterator[Frame]:
        name, _ = split_tool_name(event.name)
        index = self._indexes[event.call_id] = len(self._indexes)
        hidden = self._options.tool_results == "open-web-ui" and event.name not in self._head.client_tools
        arguments = "" if hidden else canonical.encode(event.args).decode()
        yield Chunk({"tool_calls": [_call(index, event.call_id, name, arguments)]})
        fields: Fields = {"tool_id": event.call_id, **_named_tool(event.name), "arguments": dict(event.args)}
        yield from self._named("aura.tool_requested", fields, agent=True)

    def _tool_started(self, event: e.ToolStarted, seq: int, at_ms: int) -> Iterator[Frame]:
        self._started[event.call_id] = (seq, at_ms)
        if event.name in self._head.client_tools:
            return
        fields: Fields = {"tool_id": event.call_id, **_named_tool(event.name), "progress_token": seq}
        yield from self._named("aura.tool_start", fields, agent=True)

    def _tool_finished(self, event: e.ToolFinished, at_ms: int) -> Iterator[Frame]:
        _, started_ms = self._started.pop(event.call_id, (0, at_ms))
        self._text.open_calls.discard(event.call_id)
        if event.name not in self._head.client_tools:
            self._after_tool = True
            yield from self._result(event, max(0, at_ms - started_ms))
        if not self._text.open_calls:
            yield from self._release()

    def _result(self, event: e.ToolFinished, duration_ms: int) -> Iterator[Frame]:
        shown = truncate(event.result, self._options.result_max_chars)
        index = self._indexes.get(event.call_id)
        if self._options.tool_results == "open-web-ui" and index is not None:
            yield Chunk({"tool_calls": [_call(index, event.call_id, "", shown)]})
        fields: Fields = {"tool_id": event.call_id, **_named_tool(event.name), "duration_ms": duration_ms}
        fields["success"] = event.status == "ok"
        if event.status == "ok":
            fields["result"] = shown
        else:
            fields["error"] = event.error or event.result
        yield from self._named("aura.tool_complete", fields, agent=True)

    def _progress(self, item: e.ToolProgress) -> Fields:
        of = "" if item.total is None else f"/{item.total:g}"
        fields: Fields = {"message": item.message or f"Progress: {item.progress:g}{of}", "phase": "mcp_progress"}
        if item.total is not None:
            share = int(item.progress / item.total * 100) if item.total > 0 else 100
            fields["percent"] = min(100, max(0, share))
        if item.call_id in self._started:
            fields["progress_token"] = self._started[item.call_id][0]
        return fields

    # --- the end ------------------------------------------------------------------------------------------------

    def _end(self, event: e.Event) -> Iterator[Frame]:
        self.ended = True
        finished = self._finished
        if isinstance(event, e.RunPersistFailed):
            yield Failed(event.error, "failed", self.started)
            return
        if finished is None:
            lost = RunError("server_lost", "the server that held this run is gone")
            yield Failed(lost, "failed", self.started)
            return
        if finished.outcome == "completed":
            yield from self._tail(self._finish_reason())
            return
        error = finished.error or RunError("internal", "the run ended without a reason")
        match error.details.get("reason") if finished.outcome == "cancelled" else None:
            case "client_tool":
                yield from self._tail("tool_calls")
            case "shutdown":
                yield from self._tail("stop")
            case "deadline":
                yield Failed(RunError(TIMEOUT, "the request took too long and was ended"), "cancelled", self.started)
            case _:
                yield Failed(error, finished.outcome, self.started)

    def _finish_reason(self) -> str:
        limit = self._head.max_tokens
        return "length" if limit is not None and self._tokens.completion >= limit else "stop"

    def _tail(self, finish_reason: str) -> Iterator[Frame]:
        if self._tokens.prompt:
            yield from self._named("aura.usage", self._tokens.fields())
        yield Chunk({}, finish_reason, self._tokens)

    def _named(self, name: str, fields: Fields, *, agent: bool = False) -> Iterator[Frame]:
        if not self._options.custom_events:
            return
        yield Named(name, {**fields, **(MAIN if agent else {}), **self._correlation(), "choices": []})

    def _correlation(self) -> Fields:
        fields: Fields = {"session_id": self._head.session_id}
        if self._head.trace_id is not None:
            fields["trace_id"] = self._head.trace_id
        return fields


def truncate(text: str, max_chars: int) -> str:
    """Return `text`, cut with a mark when it has more than `max_chars` characters; 0 cuts nothing."""
    return text if max_chars == 0 or len(text) <= max_chars else text[:max_chars] + TRUNCATED


def _call(index: int, call_id: str, name: str, arguments: str) -> JsonValue:
    function: JsonValue = {"name": name, "arguments": arguments}
    return {"index": index, "id": call_id, "type": "function", "function": function}


def _named_tool(name: str) -> Fields:
    bare, namespace = split_tool_name(name)
    fields: Fields = {"tool_name": bare}
    if namespace is not None:
        fields["tool_namespace"] = namespace
    return fields


def _info(event: e.SessionInfo) -> Fields:
    fields: Fields = {"model": event.model}
    if event.context_limit is not None:
        fields["model_context_limit"] = event.context_limit
    return fields


def _server(server: e.McpServerStatus) -> JsonValue:
    fields: Fields = {
        "server_name": server.name,
        "transport": server.transport,
        "status": server.status,
        "tools_count": server.tools_count,
    }
    if server.reason is not None:
        fields["reason"] = server.reason
    return fields
