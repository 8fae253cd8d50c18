"""Writes rollout files of the Codex CLI: imported records word for word, other messages as like records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aura.conversation import Header, Message
from aura.jsontypes import JsonValue
from aura.wire import canonical
from aura.wire.formats.codex import NAME
from aura.wire.formats.lines import Fresh, Lines, kept_records, write_lines
from aura.wire.images import data_url


def write_session(header: Header, messages: Sequence[Message]) -> Lines:
    """Return the session's lines. A session that was not imported from this format begins with a `session_meta`."""

    def write(fresh: Fresh) -> Sequence[JsonValue]:
        at = fresh.message.created_at or header.updated_at
        return [{"timestamp": at, "type": "response_item", "payload": item} for item in _items(fresh.message)]

    written = write_lines(messages, NAME, write)
    if kept_records(messages, NAME):
        return written
    return replace(written, lines=(canonical.encode(_head(header)), *written.lines))


def _head(header: Header) -> JsonValue:
    payload: JsonValue = {
        "id": header.id,
        "timestamp": header.created_at,
        "cwd": "",
        "originator": "aura",
        "cli_version": "",
        "base_instructions": {"text": header.system} if header.system else None,
    }
    return {"timestamp": header.created_at, "type": "session_meta", "payload": payload}


def _items(message: Message) -> list[JsonValue]:
    if message.role == "tool":
        output: JsonValue = _content(message, "input_text") if message.images else message.content
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": output}]
    if message.role == "user":
        return [{"type": "message", "role": "user", "content": _content(message, "input_text")}]
    items: list[JsonValue] = []
    if message.thinking:
        summary: JsonValue = [{"type": "summary_text", "text": message.thinking}]
        items.append({"type": "reasoning", "summary": summary, "encrypted_content": None})
    if message.content or not (message.calls or message.thinking):
        items.append({"type": "message", "role": "assistant", "content": _content(message, "output_text")})
    for call in message.calls:
        arguments = canonical.encode(call.arguments).decode()
        items.append({"type": "function_call", "name": call.name, "arguments": arguments, "call_id": call.id})
    return items


def _content(message: Message, kind: str) -> list[JsonValue]:
    parts: list[JsonValue] = [{"type": kind, "text": message.content}] if message.content else []
    urls = (data_url(image) for image in message.images)
    return parts + [{"type": "input_image", "image_url": url} for url in urls if url]
