"""Rollout files of the Codex CLI, JSON lines: from records to messages (docs/formats.md). `codex_export` writes them.

Each record is `{timestamp, type, payload}`; the oldest files hold the payloads alone. The conversation is in the
`response_item` records; everything else, which repeats or describes it, becomes metadata.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aura import ids
from aura.conversation import Call, Message, MessageType
from aura.jsontypes import JsonObject, JsonValue, items_at, object_at, text_at
from aura.wire.formats.blocks import Content, read_content
from aura.wire.formats.drafts import Draft, Foreign, finish, first_title, note, seal
from aura.wire.formats.openai import read_arguments
from aura.wire.formats.pairs import complete_pairs
from aura.wire.formats.records import Record, Repairs, read_records, read_time

NAME = "codex"
_TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))
_CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call"))
_RESULTS = frozenset(("function_call_output", "custom_tool_call_output"))
_INJECTED = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>")


def is_record(value: JsonValue) -> bool:
    """Tell whether a JSON value is a record of this format and cannot be one of the others."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("payload"), Mapping):
        return text_at(value, "type") in _TYPES
    is_old_head = "type" not in value and {"id", "timestamp"} <= set(value) and "messages" not in value
    return is_old_head or "record_type" in value


def read_session(data: bytes, *, id: str | None = None) -> Foreign:
    """Return the conversation of a whole file.

    Without `id` the session has the source's, or one made of the bytes. Raises `InvalidSession` and `InvalidId`.
    """
    repairs = Repairs()
    records = list(read_records(data, repairs))
    reader = _Reader(repairs)
    for record in records:
        reader.add(record)
    messages = [seal(draft, NAME) for draft in complete_pairs(reader.drafts, repairs)]
    head = _head(records)
    conversation = finish(
        messages,
        id=id or _session_id(head, data),
        title=first_title(messages),
        system=text_at(object_at(head, "base_instructions"), "text") or text_at(head, "instructions"),
        times=[_time(record) for record in records],
        imported={"format": NAME},
    )
    return Foreign(conversation, repairs.warnings())


class _Reader:
    def __init__(self, repairs: Repairs) -> None:
        self.drafts: list[Draft] = []
        self._repairs = repairs
        self._answer_at = -1  # where the answer is that the next item may go on with

    def add(self, record: Record) -> None:
        item = _find_item(record.value)
        kind = text_at(item, "type")
        if kind == "message" and text_at(item, "role") == "assistant":
            self._add_text(record, read_content(item.get("content"), self._repairs))
        elif kind == "reasoning":
            self._add_thinking(record, _read_thinking(item))
        elif kind in _CALLS:
            self._add_call(record, _read_call(item))
        elif kind in _RESULTS:
            self._end_answer(Draft(self._read_result(item, _time(record)), (record,)))
        elif kind == "message" and text_at(item, "role") == "user":
            self._end_answer(self._read_input(record, item))
        else:
            self.drafts.append(_read_note(record, item))

    def _add_text(self, record: Record, content: Content) -> None:
        draft = self._open_answer()
        if draft is None or draft.message.content or draft.message.calls:
            self._begin_answer(record, Message("assistant", content.text, images=content.images))
        else:
            self._go_on(record, replace(draft.message, content=content.text, images=content.images))

    def _add_thinking(self, record: Record, thinking: str) -> None:
        draft = self._open_answer()
        if draft is None or draft.message.content or draft.message.calls:
            self._begin_answer(record, Message("assistant", "", thinking=thinking))
        else:
            joined = "\n".join(filter(None, (draft.message.thinking, thinking)))
            self._go_on(record, replace(draft.message, thinking=joined))

    def _add_call(self, record: Record, call: Call) -> None:
        draft = self._open_answer()
        if draft is None:
            self._begin_answer(record, Message("assistant", "", calls=(call,)))
        else:
            self._go_on(record, replace(draft.message, calls=(*draft.message.calls, call)))

    def _open_answer(self) -> Draft | None:
        return self.drafts[self._answer_at] if self._answer_at >= 0 else None

    def _begin_answer(self, record: Record, message: Message) -> None:
        self._answer_at = len(self.drafts)
        own_id = text_at(_find_item(record.value), "id")
        self.drafts.append(Draft(replace(message, id=own_id, created_at=_time(record)), (record,)))

    def _go_on(self, record: Record, message: Message) -> None:
        draft = self.drafts[self._answer_at]
        self.drafts[self._answer_at] = replace(draft, message=message, records=(*draft.records, record))

    def _end_answer(self, draft: Draft) -> None:
        self._answer_at = -1
        self.drafts.append(draft)

    def _read_result(self, item: JsonObject, at: str) -> Message:
        output = item.get("output")
        read = read_content(output.get("content") if isinstance(output, Mapping) else output, self._repairs)
        call_id, name = text_at(item, "call_id"), text_at(item, "name")
        return Message("tool", read.text, images=read.images, tool_name=name, tool_call_id=call_id, created_at=at)

    def _read_input(self, record: Record, item: JsonObject) -> Draft:
        read = read_content(item.get("content"), self._repairs)
        kind = MessageType.SYNTHETIC if read.text.lstrip().startswith(_INJECTED) else MessageType.NORMAL
        at = _time(record)
        message = Message("user", read.text, images=read.images, type=kind, id=text_at(item, "id"), created_at=at)
        return Draft(message, (record,))


def _find_item(value: JsonValue) -> JsonObject:
    """Return the item of a `response_item` record, or an old file's bare one; an empty object for other records."""
    if not isinstance(value, Mapping):
        return {}
    if isinstance(value.get("payload"), Mapping):
        return object_at(value, "payload") if text_at(value, "type") == "response_item" else {}
    return value if "type" in value else {}


def _read_thinking(item: JsonObject) -> str:
    parts = [*items_at(item, "summary"), *items_at(item, "content")]
    return "\n".join(filter(None, (text_at(part, "text") for part in parts)))


def _read_call(item: JsonObject) -> Call:
    call_id = text_at(item, "call_id") or text_at(item, "id")
    match text_at(item, "type"):
        case "local_shell_call":
            return Call(call_id, "local_shell", object_at(item, "action"))
        case "custom_tool_call":
            return Call(call_id, text_at(item, "name"), {"input": text_at(item, "input")})
        case _:
            return Call(call_id, text_at(item, "name"), read_arguments(item.get("arguments")))


def _read_note(record: Record, item: JsonObject) -> Draft:
    value = record.value
    payload = item or object_at(value, "payload")
    outer, inner = text_at(value, "type") or text_at(value, "record_type"), text_at(payload, "type")
    label = " ".join(dict.fromkeys(word for word in (outer, inner, text_at(payload, "role")) if word))
    said = read_content(payload.get("content"), Repairs()).text if inner == "message" else text_at(payload, "message")
    text = record.text if record.text is not None else f"{label or 'unknown record'}: {said}" if said else label
    kind = MessageType.BOOKMARK if outer == "compacted" else MessageType.METADATA
    return note(record, text or "unknown record", at=_time(record), kind=kind)


def _head(records: Sequence[Record]) -> JsonObject:
    """Return what the file says of its session: the first `session_meta`, or an old file's first record."""
    for record in records:
        if text_at(record.value, "type") == "session_meta":
            payload = object_at(record.value, "payload")
            return object_at(payload, "meta") or payload
    first = records[0].value if records else None
    return first if isinstance(first, Mapping) and "type" not in first else {}


def _session_id(head: JsonObject, data: bytes) -> str:
    found = text_at(head, "id")
    return found if ids.is_session_id(found) else f"{NAME}-{hashlib.sha256(data.strip()).hexdigest()[:32]}"


def _time(record: Record) -> str:
    return read_time(text_at(record.value, "timestamp"))
