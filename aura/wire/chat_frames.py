"""Frames of a chat as bytes, and a whole chat as one document (gateway.md 2.7 and 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from aura.jsontypes import JsonValue
from aura.wire import canonical
from aura.wire.chat import Chunk, Fields, Named, Tokens

OPENING = b":\n\n"  # a comment: the headers go out at once, however long the first text takes
HEARTBEAT = b": heartbeat\n\n"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Completion:
    """What all chunks of one answer say: its id, its time in Unix seconds, and `provider/model`."""

    id: str
    created_s: int
    model: str

    def chunk(self, chunk: Chunk) -> bytes:
        """Return a chunk's frame."""
        choice: Fields = {"index": 0, "delta": chunk.delta}
        if chunk.finish_reason is not None:
            choice["finish_reason"] = chunk.finish_reason
        fields: Fields = {**self._head("chat.completion.chunk"), "choices": [choice]}
        if chunk.usage is not None:
            fields["usage"] = chunk.usage.fields()
        return b"data: %s\n\n" % canonical.encode(fields)

    def document(self, collected: Collected, session_id: str) -> Fields:
        """Return the answer of a request that does not stream."""
        message: Fields = {"role": "assistant", "content": collected.content}
        if collected.calls:
            message["tool_calls"] = list(collected.calls)
        choice: Fields = {"index": 0, "message": message, "finish_reason": collected.finish_reason}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": collected.usage.fields(),
            "metadata": {"chat_session_id": session_id},
        }

    def _head(self, kind: str) -> Fields:
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model}


def named_frame(named: Named) -> bytes:
    """Return the frame of an `aura.*` event."""
    return b"event: %s\ndata: %s\n\n" % (named.name.encode(), canonical.encode(named.payload))


@dataclass(slots=True)
class Collected:
    """A chat's chunks, collected. Of calls, those that the caller is to run itself are kept."""

    client_tools: frozenset[str] = frozenset()
    content: str = ""
    calls: list[JsonValue] = field(default_factory=list)
    finish_reason: str = "stop"
    usage: Tokens = field(default_factory=Tokens)

    def add(self, chunk: Chunk) -> None:
        """Take in the next chunk."""
        content = chunk.delta.get("content")
        if isinstance(content, str):
            self.content += content
        calls = chunk.delta.get("tool_calls")
        if isinstance(calls, list):
            self.calls += [_without_index(call) for call in calls if self._is_clients(call)]
        if chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
        if chunk.usage is not None:
            self.usage = chunk.usage

    def _is_clients(self, call: JsonValue) -> bool:
        function = call.get("function") if isinstance(call, dict) else None
        return isinstance(function, dict) and function.get("name") in self.client_tools


def _without_index(call: JsonValue) -> JsonValue:
    assert isinstance(call, dict)
    return {key: value for key, value in call.items() if key != "index"}


__all__ = ["DONE", "HEARTBEAT", "OPENING", "Collected", "Completion", "named_frame"]
