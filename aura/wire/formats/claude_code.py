"""Session files of Claude Code, JSON lines: from records to messages. `claude_code_export` is the way back.

One answer of the model may be several records with one `message.id`; they become one message. What is no part of the
main conversation, side chains and records of unknown types among it, becomes metadata (docs/formats.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aura import ids
from aura.conversation import Call, Message, MessageType
from aura.jsontypes import JsonObject, JsonValue, items_at, object_at, text_at
from aura.wire.formats.blocks import read_content
from aura.wire.formats.drafts import Draft, Foreign, finish, first_title, note, seal
from aura.wire.formats.pairs import complete_pairs
from aura.wire.formats.records import Record, Repair, Repairs, read_records, read_time

NAME = "claude-code"
_CONVERSATION = frozenset(("user", "assistant"))
_MARKS = frozenset(("sessionId", "uuid", "leafUuid", "snapshot"))
_TITLES = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The parts of a model's answer that one record holds."""

    text: str
    thinking: str
    signature: str
    calls: tuple[Call, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.thinking or self.calls)


def is_record(value: JsonValue) -> bool:
    """Tell whether a JSON value is a record of this format and cannot be one of the others."""
    return isinstance(value, Mapping) and bool(text_at(value, "type")) and bool(_MARKS & set(value))


def read_session(data: bytes, *, id: str | None = None) -> Foreign:
    """Return the conversation of a whole file, in the order of the file.

    Without `id` the session has the source's, or one made of the bytes. Raises `InvalidSession` and `InvalidId`.
    """
    repairs = Repairs()
    records = list(read_records(data, repairs))
    side = _is_side_file(records)
    reader = _Reader(repairs, side_file=side)
    for record in records:
        reader.add(record)
    messages = [seal(draft, NAME) for draft in complete_pairs(reader.drafts, repairs)]
    conversation = finish(
        messages,
        id=id or _session_id(records, data, side),
        title=_title(records) or first_title(messages),
        system="",
        times=[read_time(text_at(record.value, "timestamp")) for record in records],
        imported={"format": NAME},
    )
    return Foreign(conversation, repairs.warnings())


class _Reader:
    def __init__(self, repairs: Repairs, *, side_file: bool) -> None:
        self.drafts: list[Draft] = []
        self._repairs = repairs
        self._side_file = side_file
        self._answer_at = -1  # where the answer is that the next record may go on with
        self._answer_id = ""

    def add(self, record: Record) -> None:
        kind = text_at(record.value, "type")
        side = isinstance(record.value, Mapping) and record.value.get("isSidechain") is True and not self._side_file
        if side or kind not in _CONVERSATION:
            self.drafts.append(_read_note(record))
        elif kind == "assistant":
            self._add_answer(record)
        else:
            self.drafts.extend(self._read_input(record))
            self._answer_at = -1

    def _add_answer(self, record: Record) -> None:
        message = object_at(record.value, "message")
        answer = self._read_answer(message)
        at, uuid = _time(record), text_at(record.value, "uuid")
        if answer.is_empty:
            self.drafts.append(_read_note(record))
        elif isinstance(record.value, Mapping) and record.value.get("isApiErrorMessage") is True:
            self.drafts.append(note(record, answer.text, at=at, kind=MessageType.DISPLAY_ONLY))
        elif self._answer_at >= 0 and text_at(message, "id") == self._answer_id:
            joined = _join(self.drafts[self._answer_at], record, answer)
            self.drafts[self._answer_at] = joined
        else:
            self._answer_at = len(self.drafts)
            self._answer_id = text_at(message, "id") or "\0"  # without an id nothing belongs to it
            self.drafts.append(Draft(_new_answer(answer, uuid, at), (record,)))

    def _read_answer(self, message: JsonObject) -> _Answer:
        content = message.get("content")
        if isinstance(content, str):
            return _Answer(content, "", "", ())
        texts, thoughts, signature, calls = [], [], "", []
        for block in items_at(message, "content"):
            match text_at(block, "type"):
                case "text":
                    texts.append(text_at(block, "text"))
                case "thinking":
                    thoughts.append(text_at(block, "thinking"))
                    signature = text_at(block, "signature") or signature
                case "tool_use":
                    calls.append(Call(text_at(block, "id"), text_at(block, "name"), object_at(block, "input")))
                case _:
                    self._repairs.add(Repair.PART)
        return _Answer("\n".join(texts), "\n".join(thoughts), signature, tuple(calls))

    def _read_input(self, record: Record) -> Iterator[Draft]:
        """Yield the results in a user record, then what the user said. The first message keeps the record."""
        content = object_at(record.value, "message").get("content")
        blocks = content if isinstance(content, list) else ()
        at, uuid = _time(record), text_at(record.value, "uuid")
        kept: tuple[Record, ...] = (record,)
        for block in blocks:
            if text_at(block, "type") == "tool_result":
                yield Draft(replace(self._read_result(block), id=uuid, created_at=at), kept)
                uuid, kept = "", ()
        said = [block for block in blocks if text_at(block, "type") != "tool_result"]
        read = read_content(content if isinstance(content, str) else said, self._repairs)
        if read.text or read.images:
            kind = MessageType.SYNTHETIC if _is_injected(record) else MessageType.NORMAL
            yield Draft(Message("user", read.text, id=uuid, images=read.images, type=kind, created_at=at), kept)
        elif kept:
            yield _read_note(record)

    def _read_result(self, block: JsonValue) -> Message:
        content = block.get("content") if isinstance(block, Mapping) else None
        read = read_content(content, self._repairs)
        return Message("tool", read.text, images=read.images, tool_call_id=text_at(block, "tool_use_id"))


def _new_answer(answer: _Answer, uuid: str, at: str) -> Message:
    return Message(
        "assistant",
        answer.text,
        id=uuid,
        thinking=answer.thinking,
        thinking_signature=answer.signature,
        calls=answer.calls,
        created_at=at,
    )


def _join(draft: Draft, record: Record, answer: _Answer) -> Draft:
    message = draft.message
    joined = replace(
        message,
        content="\n".join(filter(None, (message.content, answer.text))),
        thinking="\n".join(filter(None, (message.thinking, answer.thinking))),
        thinking_signature=answer.signature or message.thinking_signature,
        calls=message.calls + answer.calls,
    )
    return replace(draft, message=joined, records=(*draft.records, record))


def _read_note(record: Record) -> Draft:
    value = record.value
    kind, subtype = text_at(value, "type") or "unknown record", text_at(value, "subtype")
    label = f"{kind} {subtype}" if subtype else kind
    if isinstance(value, Mapping) and value.get("isSidechain") is True:
        label = f"side chain: {label}"
    said = text_at(value, "content") or text_at(value, "summary") or text_at(object_at(value, "message"), "content")
    text = f"{label}: {said}" if said else record.text if record.text is not None else label
    boundary = subtype.endswith("compact_boundary")
    kind_of_note = MessageType.BOOKMARK if boundary else MessageType.METADATA
    return note(record, text, at=_time(record), kind=kind_of_note)


def _is_injected(record: Record) -> bool:
    value = record.value
    marks = ("isMeta", "isCompactSummary")
    return isinstance(value, Mapping) and any(value.get(mark) is True for mark in marks)


def _is_side_file(records: Sequence[Record]) -> bool:
    """Tell whether the file is a subagent's own, in which everything is a side chain."""
    conversation = [record.value for record in records if text_at(record.value, "type") in _CONVERSATION]
    return bool(conversation) and all(
        isinstance(value, Mapping) and value.get("isSidechain") is True and text_at(value, "agentId")
        for value in conversation
    )


def _session_id(records: Sequence[Record], data: bytes, side: bool) -> str:
    found = _last(records, "sessionId")
    if side:
        found = f"{found}.agent-{_last(records, 'agentId')}"
    return found if ids.is_session_id(found) else f"{NAME}-{hashlib.sha256(data.strip()).hexdigest()[:32]}"


def _title(records: Sequence[Record]) -> str:
    for kind, key in _TITLES:
        found = _last((record for record in records if text_at(record.value, "type") == kind), key)
        if found:
            return " ".join(found.split())
    return ""


def _last(records: Iterable[Record], key: str) -> str:
    found = ""
    for record in records:
        found = text_at(record.value, key) or found
    return found


def _time(record: Record) -> str:
    return read_time(text_at(record.value, "timestamp"))
