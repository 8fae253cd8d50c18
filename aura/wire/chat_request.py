"""What a chat request says, as values (gateway.md 2.6). Reading one from JSON is `aura.wire.schemas.chat`'s job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aura.conversation import Call
from aura.jsontypes import JsonObject


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the caller's conversation: a user's, an assistant's, or a tool's result."""

    role: str
    content: str
    calls: tuple[Call, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the caller would run itself."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to `/v1/chat/completions`, valid. `max_tokens` limits nothing: it only decides `finish_reason`.

    `messages` has no system messages and none that are empty, and ends with a user's message or a tool's result.
    """

    model: str | None
    messages: tuple[ChatMessage, ...]
    stream: bool = False
    max_tokens: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    tools: tuple[OfferedTool, ...] = ()

    @property
    def prompt(self) -> str | None:
        """The user's message to be answered, None when the caller brings results of its own tools."""
        last = self.messages[-1]
        return last.content if last.role == "user" else None

    @property
    def earlier(self) -> tuple[ChatMessage, ...]:
        """The conversation before the prompt."""
        return self.messages if self.prompt is None else self.messages[:-1]
