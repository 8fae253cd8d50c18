"""Reads foreign JSON lines into numbered records of which none is lost, and counts what had to be repaired.

A line that cannot be a value of a session document is kept as its text. It knows no format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from aura import limits
from aura.clock import format_time, parse_time
from aura.errors import InvalidSession
from aura.jsontypes import JsonValue
from aura.wire import canonical

UNKNOWN_TIME = format_time(0)  # for sources without times: the same file must give the same revision everywhere
_OUTER_LEVELS = 8  # what a document puts around a record
_LONE_SURROGATE = b"\\ud"


class Repair(Enum):
    """What an import had to change. The value says it to a person."""

    NO_RESULT = "calls without a result, each given an error result"
    NO_CALL = "results without a call, kept as metadata"
    SAME_ID = "calls with an id that was taken, renamed"
    NO_JSON = "lines that are no JSON, kept as text"
    SURROGATE = "records with half a surrogate pair, which became U+FFFD"
    PART = "content parts of an unknown kind, kept in the source record"


class Repairs:
    """The count of each repair of one import. One thread at a time."""

    def __init__(self) -> None:
        self._counts: Counter[Repair] = Counter()

    def add(self, repair: Repair, count: int = 1) -> None:
        """Count a repair."""
        self._counts[repair] += count

    def warnings(self) -> tuple[str, ...]:
        """Return one line for each kind of repair that was needed, in a fixed order."""
        return tuple(f"{repair.value}: {self._counts[repair]}" for repair in Repair if self._counts[repair])


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a source. `line` counts from 1; `text` stands instead of a value where a line is no JSON."""

    line: int
    value: JsonValue = None
    text: str | None = None


def read_records(data: bytes, repairs: Repairs) -> Iterator[Record]:
    """Yield a record for each line that is not blank. Raises `InvalidSession` for a line that is not UTF-8."""
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = raw.strip()
        if line:
            yield _read_record(number, line, repairs)


def read_value(number: int, value: JsonValue, repairs: Repairs) -> Record:
    """Return the record of a value that was decoded before."""
    if canonical.nests_beyond(value, limits.NESTING_MAX_COUNT - _OUTER_LEVELS):
        raise InvalidSession(f"record {number} has too many levels of nesting")
    if _is_changed(value):
        repairs.add(Repair.SURROGATE)
    return Record(number, value)


def read_time(value: JsonValue) -> str:
    """Return a time of a record as it was written, "" for what is no RFC 3339 time."""
    if not isinstance(value, str):
        return ""
    try:
        parse_time(value)
    except ValueError:
        return ""
    return value


def _read_record(number: int, line: bytes, repairs: Repairs) -> Record:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InvalidSession(f"line {number}: byte {error.start} is not UTF-8") from error
    try:
        value = canonical.decode(text)
    except canonical.NotCanonical:
        repairs.add(Repair.NO_JSON)
        return Record(number, text=text)
    levels = limits.NESTING_MAX_COUNT - _OUTER_LEVELS
    if line.count(b"[") + line.count(b"{") > levels and canonical.nests_beyond(value, levels):
        repairs.add(Repair.NO_JSON)
        return Record(number, text=text)
    if _LONE_SURROGATE in line.lower() and _is_changed(value):
        repairs.add(Repair.SURROGATE)
    return Record(number, value)


def _is_changed(value: JsonValue) -> bool:
    return canonical.decode(canonical.encode(value)) != value
