"""Writes a session as another program's JSON lines: kept records as they were, and new ones for other messages.

The two formats of this kind give the new records; here is what they share. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from aura.conversation import Message, is_shown_to_model
from aura.jsontypes import JsonValue
from aura.wire import canonical
from aura.wire.formats.drafts import find_origin


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines without line ends, in order. `left_out` counts stored messages that have no place in the format."""

    lines: tuple[bytes, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """A message that the source had not, and its index in the session."""

    index: int
    message: Message


def kept_records(messages: Sequence[Message], source: str) -> list[JsonValue | bytes]:
    """Return the records that an import from `source` kept, in their old order; bytes are lines that were no JSON."""
    origins = (find_origin(message) for message in messages)
    records = [item for origin in origins if origin is not None and origin.format == source for item in origin.records]
    return [record for _, record in sorted(records, key=lambda item: item[0])]


def fresh_messages(messages: Sequence[Message], source: str) -> Iterator[Fresh]:
    """Yield the messages of the conversation that were not imported from `source`."""
    for index, message in enumerate(messages):
        if _is_foreign(message, source) and is_shown_to_model(message):
            yield Fresh(index, message)


def write_lines(messages: Sequence[Message], source: str, write: Callable[[Fresh], Sequence[JsonValue]]) -> Lines:
    """Return the kept records, then the ones that `write` makes of the other messages."""
    old = kept_records(messages, source)
    lines = [record if isinstance(record, bytes) else canonical.encode(record) for record in old]
    for fresh in fresh_messages(messages, source):
        lines += map(canonical.encode, write(fresh))
    left_out = sum(_is_foreign(message, source) and not is_shown_to_model(message) for message in messages)
    return Lines(tuple(lines), left_out)


def _is_foreign(message: Message, source: str) -> bool:
    origin = find_origin(message)
    return origin is None or origin.format != source
