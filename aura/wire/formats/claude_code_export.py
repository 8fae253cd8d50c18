"""Writes session files of Claude Code: imported records word for word, other messages as records of the same shape."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from aura.conversation import Header, Message
from aura.jsontypes import JsonObject, JsonValue, text_at
from aura.wire.formats.claude_code import NAME
from aura.wire.formats.lines import Fresh, Lines, kept_records, write_lines
from aura.wire.images import JPEG

_CARRIED = ("cwd", "version", "gitBranch")


def write_session(header: Header, messages: Sequence[Message]) -> Lines:
    """Return the session's lines. New records continue the chain of `parentUuid` and repeat the last place."""
    old = [record for record in kept_records(messages, NAME) if isinstance(record, Mapping)]
    writer = _Writer(header, next((record for record in reversed(old) if text_at(record, "uuid")), {}))
    return write_lines(messages, NAME, writer.write)


class _Writer:
    def __init__(self, header: Header, last: JsonObject) -> None:
        self._header = header
        self._session_id = text_at(last, "sessionId") or header.id
        self._parent = text_at(last, "uuid")
        self._carried = {key: text_at(last, key) for key in _CARRIED}

    def write(self, fresh: Fresh) -> Sequence[JsonValue]:
        message = fresh.message
        own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"aura:{self._header.id}:{fresh.index}"))
        assistant = message.role == "assistant"
        record: dict[str, JsonValue] = {
            "parentUuid": self._parent or None,
            "isSidechain": False,
            "userType": "external",
            **self._carried,
            "sessionId": self._session_id,
            "type": "assistant" if assistant else "user",
            "message": _answer(message, own) if assistant else _input(message),
            "uuid": own,
            "timestamp": message.created_at or self._header.updated_at,
        }
        self._parent = own
        return [record]


def _answer(message: Message, own: str) -> JsonObject:
    blocks: list[JsonValue] = []
    if message.thinking:
        thinking = {"type": "thinking", "thinking": message.thinking, "signature": message.thinking_signature}
        blocks.append(thinking)
    if message.content:
        blocks.append({"type": "text", "text": message.content})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in message.calls
    ]
    return {"id": message.id or own, "type": "message", "role": "assistant", "content": blocks}


def _input(message: Message) -> JsonObject:
    images = [_image(image) for image in message.images]
    text: list[JsonValue] = [{"type": "text", "text": message.content}] if message.content else []
    if message.role == "tool":
        content: JsonValue = [*text, *images] if images else message.content
        return {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}],
        }
    return {"role": "user", "content": [*text, *images] if images else message.content}


def _image(image: JsonValue) -> JsonObject:
    data = text_at(image, "Data")
    source: dict[str, JsonValue] = {"type": "url", "url": text_at(image, "url")}
    if data:
        source = {"type": "base64", "media_type": text_at(image, "media_type") or JPEG, "data": data}
    return {"type": "image", "source": source}
