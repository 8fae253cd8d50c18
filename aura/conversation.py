"""Messages and conversations as values. Nothing here encodes, stores or sends them.

Field meanings come from engine.md section 3; interfaces.md sections 4 and 11 say how they differ in a saved document:
the system prompt is a field of the header, and saved history always holds complete call/result pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from aura.jsontypes import JsonObject, JsonValue

Role = Literal["system", "user", "assistant", "tool"]


class MessageType(IntEnum):
    """What a message is for (engine.md 3.4). Only NORMAL and SYNTHETIC ones are shown to a model."""

    NORMAL = 0
    SYNTHETIC = 1
    EPHEMERAL = 2
    DISPLAY_ONLY = 3
    BOOKMARK = 4
    METADATA = 5


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that an assistant message asks for."""

    id: str
    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `created_at` is RFC 3339 text as it was written, "" when unknown; `extra` keeps unknown keys."""

    role: Role
    content: str
    id: str = ""
    thinking: str = ""
    thinking_signature: str = ""
    images: Sequence[JsonValue] = ()
    calls: tuple[Call, ...] = ()
    tool_name: str = ""
    tool_call_id: str = ""
    type: int = MessageType.NORMAL
    tokens: JsonObject = field(default_factory=dict)
    created_at: str = ""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parent:
    """Lineage of a fork: the parent's id and the exact revision that was copied."""

    id: str
    revision: str


@dataclass(frozen=True, slots=True)
class Header:
    """Everything of a session document that is not a message. Times are RFC 3339 text as written."""

    id: str
    title: str
    created_at: str
    updated_at: str
    system: str = ""
    meta: JsonObject = field(default_factory=dict)
    todos: JsonObject | None = None
    frozen: bool = False
    parent: Parent | None = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A whole session document: its header and the canonical bytes of each message, in order."""

    header: Header
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a listing shows of a session (contract.md). `messages` counts stored non-system messages; times are Unix
    ms."""

    id: str
    title: str
    created_at_ms: int
    updated_at_ms: int
    revision: str
    messages: int
    frozen: bool
    parent: Parent | None


def is_shown_to_model(message: Message) -> bool:
    """Tell whether a model may see the message: internal kinds and stored system notices are for people."""
    return message.role != "system" and message.type in (
        MessageType.NORMAL,
        MessageType.SYNTHETIC,
        MessageType.EPHEMERAL,
    )


def find_broken_pair(messages: Sequence[Message]) -> tuple[int, str] | None:
    """Return (index, reason) of the first message that breaks "complete call/result pairs", or None.

    Every call has exactly one result, after it and before the next assistant or user message; every result names an
    open call; call ids are unique among the open ones (contract.md, row Checkpoints).
    """
    open_calls: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                return index, f"the tool result {message.tool_call_id!r} answers no open call"
            del open_calls[message.tool_call_id]
            continue
        if message.role == "system" or message.type in (
            MessageType.DISPLAY_ONLY,
            MessageType.BOOKMARK,
            MessageType.METADATA,
        ):
            continue
        if open_calls:
            call_id, asked = next(iter(open_calls.items()))
            return asked, f"the call {call_id!r} has no result"
        for call in message.calls:
            if message.role != "assistant":
                return index, f"a {message.role} message cannot ask for calls"
            if call.id in open_calls:
                return index, f"the call id {call.id!r} is used twice"
            open_calls[call.id] = index
    if open_calls:
        call_id, asked = next(iter(open_calls.items()))
        return asked, f"the call {call_id!r} has no result"
    return None


def count_non_system(messages: Sequence[Message]) -> int:
    """Return how many messages a Summary counts."""
    return sum(1 for message in messages if message.role != "system")


def with_meta(header: Header, changes: Mapping[str, JsonValue]) -> JsonObject:
    """Return the header's meta with `changes` applied; a value of None removes its key."""
    merged = {**header.meta, **changes}
    return {key: value for key, value in merged.items() if value is not None}
