"""The way of a foreign conversation into a document: messages with the source records that they were made of.

Each record stands, word for word, in the `imported` field of exactly one message, so that an export can write the
source again. The field is this module's; no model ever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aura import ids
from aura.clock import parse_time
from aura.conversation import Conversation, Header, Message, MessageType, find_broken_pair
from aura.errors import InvalidSession
from aura.jsontypes import JsonObject, JsonValue, items_at, object_at, text_at
from aura.wire import canonical, document
from aura.wire.formats.records import UNKNOWN_TIME, Record

IMPORTED_KEY = "imported"
_TITLE_CHARS = 60  # of the first input, where a source has no title (engine.md 3.7)


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to be stored and the records that it keeps. `repaired`: the source has no such message."""

    message: Message
    records: tuple[Record, ...] = ()
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A foreign conversation as it will be stored, and what had to be repaired."""

    conversation: Conversation
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a stored message says of where it came from. `records` are (line, JSON value or text of the line)."""

    format: str
    records: tuple[tuple[int, JsonValue | bytes], ...]


def note(record: Record, text: str, *, at: str = "", kind: MessageType = MessageType.METADATA) -> Draft:
    """Return a record as a message that people may see and models do not."""
    return Draft(Message("system", text, type=kind, created_at=at), (record,))


def seal(draft: Draft, source: str) -> Message:
    """Return the message with its `imported` field."""
    fields: dict[str, JsonValue] = {"format": source, "records": [_record_fields(item) for item in draft.records]}
    if draft.repaired:
        fields["repaired"] = True
    return replace(draft.message, extra={**draft.message.extra, IMPORTED_KEY: fields})


def find_origin(message: Message) -> Origin | None:
    """Return where a message came from, None when it was not imported."""
    fields = object_at(message.extra, IMPORTED_KEY)
    source = text_at(fields, "format")
    if not source:
        return None
    return Origin(source, tuple(_read_origins(items_at(fields, "records"))))


def first_title(messages: Iterable[Message]) -> str:
    """Return the beginning of the first thing that a person said, on one line."""
    for message in messages:
        line = " ".join(message.content.split())
        if message.role == "user" and message.type == MessageType.NORMAL and line:
            return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"
    return ""


def finish(
    messages: Sequence[Message], *, id: str, title: str, system: str, times: Iterable[str], imported: JsonObject
) -> Conversation:
    """Return the conversation to be stored. `times` are those of its records, "" where one has none.

    Raises `InvalidSession` for messages that a document cannot hold, and `InvalidId`.
    """
    ids.check_session_id(id)
    known = sorted((time for time in times if time), key=parse_time) or [UNKNOWN_TIME]
    header = Header(
        id=id,
        title=canonical.clean(title),
        created_at=known[0],
        updated_at=known[-1],
        system=canonical.clean(system),
        extra={IMPORTED_KEY: imported},
    )
    broken = find_broken_pair(messages)
    assert broken is None, f"pairs were completed: {broken}"
    try:
        return Conversation(header, tuple(map(document.encode_message, messages)))
    except canonical.NotCanonical as error:
        raise InvalidSession(str(error)) from error


def _record_fields(record: Record) -> JsonObject:
    if record.text is not None:
        return {"line": record.line, "text": record.text}
    return {"line": record.line, "record": record.value}


def _read_origins(items: Sequence[JsonValue]) -> Iterator[tuple[int, JsonValue | bytes]]:
    for item in items:
        line = item.get("line") if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not isinstance(line, int):
            continue
        yield line, item["record"] if "record" in item else text_at(item, "text").encode()
