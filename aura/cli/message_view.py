"""What is shown of one message, to people and as JSON: the same wherever a command shows messages."""

from __future__ import annotations

from aura.cli.table import one_line, short_time
from aura.clock import parse_time
from aura.conversation import Message
from aura.jsontypes import JsonValue
from aura.runtime.history import Placed
from aura.wire import canonical
from aura.wire.automation import message_fields

Fields = dict[str, JsonValue]


def placed_fields(placed: Placed, *, thinking: bool = False) -> Fields:
    """Return a message as `GET /v1/session/messages` has it; `index` is null for a system message."""
    return {**message_fields(placed.message, 0, thinking=thinking), "index": placed.index}


def title_text(placed: Placed) -> str:
    """Return the line above a message: its index, who says it, when."""
    message = placed.message
    place = "-" if placed.index is None else str(placed.index)
    who = f"tool {message.tool_name}".rstrip() if message.role == "tool" else message.role
    return one_line(f"[{place}] {who}  {_time_text(message.created_at)}")


def call_texts(message: Message) -> list[str]:
    """Return a line for each call that a message asks for."""
    return [one_line(f"{call.name} {canonical.encode(call.arguments).decode()}") for call in message.calls]


def _time_text(text: str) -> str:
    try:
        return short_time(parse_time(text))
    except ValueError:
        return text  # an imported message may have none, or something of its own
