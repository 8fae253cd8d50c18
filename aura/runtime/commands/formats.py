"""Conversations as people and scripts read them: text, Markdown, JSON and JSON lines (engine.md 3.4 and 7.2). Pure.

These are views. What restores a session is the document that `aura session export` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aura.conversation import Message, MessageType
from aura.engine.history import History
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical

FORMATS: Mapping[str, str] = {
    "json": "json",
    "jsonl": "jsonl",
    "markdown": "markdown",
    "md": "markdown",
    "text": "text",
    "txt": "text",
}
SUFFIXES: Mapping[str, str] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
}
_FOR_PEOPLE = frozenset((MessageType.NORMAL, MessageType.DISPLAY_ONLY, MessageType.BOOKMARK))
_JSON = _FOR_PEOPLE | {MessageType.METADATA}
_LINES = frozenset((MessageType.NORMAL, MessageType.METADATA))


def render(wanted: str, history: History, *, thinking: bool) -> str:
    """Return the conversation in one of `FORMATS`' values. `thinking` goes into the JSON formats, if at all."""
    match wanted:
        case "json":
            objects = [_object(message, thinking) for message in _chosen(history, _JSON, system=True)]
            return canonical.encode({"messages": objects}).decode() + "\n"
        case "jsonl":
            lines = (_object(message, thinking) for message in _chosen(history, _LINES, system=True))
            return "".join(canonical.encode(line).decode() + "\n" for line in lines)
        case "markdown":
            title = [f"# {history.title}"] if history.title else []
            return "\n\n".join([*title, *map(_markdown, _chosen(history, _FOR_PEOPLE))]) + "\n"
        case _:
            return "\n\n".join(map(_text, _chosen(history, _FOR_PEOPLE))) + "\n"


def _chosen(history: History, types: frozenset[MessageType], *, system: bool = False) -> Iterator[Message]:
    if system and history.system:
        yield Message("system", history.system)
    yield from (message for message in history.messages if message.type in types)


def _object(message: Message, thinking: bool) -> JsonObject:
    calls: list[JsonValue] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls]
    optional: dict[str, JsonValue] = {
        "thinking": message.thinking if thinking else "",
        "tool_calls": calls,
        "tool_name": message.tool_name,
        "tool_call_id": message.tool_call_id,
        "created_at": message.created_at,
    }
    return {
        "role": message.role,
        "content": message.content,
        **{key: value for key, value in optional.items() if value},
    }


def _markdown(message: Message) -> str:
    parts = [f"## {_heading(message)}"]
    if message.role == "tool":
        parts.append(_fenced(message.content))
    elif message.content:
        parts.append(message.content)
    parts += [f"Call of {call.name}:\n\n{_fenced(canonical.encode(call.arguments).decode())}" for call in message.calls]
    return "\n\n".join(parts)


def _text(message: Message) -> str:
    lines = [f"[{_heading(message)}]"]
    if message.content:
        lines.append(message.content)
    lines += [f"(call of {call.name}: {canonical.encode(call.arguments).decode()})" for call in message.calls]
    return "\n".join(lines)


def _heading(message: Message) -> str:
    return f"Tool {message.tool_name}" if message.role == "tool" else message.role.capitalize()


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
