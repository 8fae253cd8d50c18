"""What `session import` reads: names become files, and a file becomes pieces, each of them one conversation.

A piece is a whole file, or one line of a file that has a document per line; such a file is read line by line, so that
its size does not matter. It stores nothing.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from itertools import islice
from pathlib import Path
from typing import cast

from aura import limits
from aura.errors import AuraError, BadRequest
from aura.jsontypes import JsonValue
from aura.runtime import files
from aura.wire import canonical
from aura.wire.document import not_a_document
from aura.wire.formats.detect import Format, document_format, find_line_format, is_whole_conversation

_SUFFIXES = (".json", ".jsonl", ".ndjson")
_PATTERN_CHARS = frozenset("*?[")
_BLANK = b" \t\r\n"
_OPENINGS = (b"{", b"[", b"\xef")  # of JSON, and of a byte order mark


@dataclass(frozen=True, slots=True)
class Input:
    """One file to read, or `-`. `bytes_count` is its size, 0 where nobody knows it."""

    name: str
    bytes_count: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One conversation of an input. `line` counts from 1 in a file of several, and is None for a whole file.

    `value` is the decoded JSON of the formats that are one value, None for those that are lines.
    """

    line: int | None
    format: Format
    data: bytes
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A piece that cannot be read, and why."""

    line: int | None
    error: AuraError


def is_plain(name: str) -> bool:
    """Tell whether a name stands for one input, and not for a directory or a pattern."""
    return not os.path.isdir(name) and not _is_pattern(name)


def find_inputs(name: str) -> Sequence[Input]:
    """Return the files that a name stands for, in the order of their names: of a directory, those in it at any depth
    that end in .json, .jsonl or .ndjson. Raises `BadRequest` when a directory or pattern has none."""
    if name == files.STANDARD_STREAM or is_plain(name):
        return [Input(name, _size(name))]
    found = _walk(name) if os.path.isdir(name) else filter(os.path.isfile, glob.iglob(name, recursive=True))
    inputs = [Input(path, _size(path)) for path in sorted(found)]
    if not inputs:
        raise BadRequest(
            f"{name} holds no file to import", hint=f"Name files, or a directory with {', '.join(_SUFFIXES)} files."
        )
    return inputs


def read_pieces(name: str, wanted: Format | None, max_bytes: int = limits.IMPORT_MAX_BYTES) -> Iterator[Piece | Spoilt]:
    """Yield the conversations of the file `name`, or of standard input for `-`; a bad line does not stop the others,
    nor does a bad first one, though such a file is read into memory as a whole.

    `wanted` is the format, None to find it out. Raises `BadRequest` when the file cannot be read, and with
    `details.reason` `too_large` when one document has more than `max_bytes`; `InvalidSession` for what is no JSON.
    """
    with _opened(name, max_bytes) as stream:
        yield from _Reader(stream, name, wanted, max_bytes).run()


class _Reader:
    def __init__(self, stream: BufferedReader, name: str, wanted: Format | None, max_bytes: int) -> None:
        self._stream = stream
        self._name = name
        self._wanted = wanted
        self._max_bytes = max_bytes
        self._head: list[bytes] = []  # lines that were read to find the format out

    def run(self) -> Iterator[Piece | Spoilt]:
        if self._wanted in ("claude-code", "codex"):
            yield Piece(None, self._wanted, self._rest())
            return
        first = self._look_ahead()
        try:
            value = canonical.decode(first)
        except canonical.NotCanonical:
            yield from self._whole()  # a document over several lines, a bad line before good ones, or nothing
            return
        found = self._find_lines(value)
        if found is not None:
            yield Piece(None, found, self._rest())
        elif not self._is_more():
            yield Piece(None, self._format(value), self._rest(), value)
        elif is_whole_conversation(value):
            yield from self._lines()
        else:
            yield from self._whole()

    def _look_ahead(self) -> bytes:
        """Return the first line that is not blank, b"" when there is none."""
        while True:
            line = self._read_line()
            self._head.append(line)
            if not line or line.strip(_BLANK):
                return line

    def _is_more(self) -> bool:
        if sum(bool(line.strip(_BLANK)) for line in self._head) > 1:
            return True
        while start := self._stream.peek(limits.FILE_PIECE_BYTES):
            if start.strip(_BLANK):
                return True
            self._head.append(self._stream.readline(len(start)))
        return False

    def _find_lines(self, value: JsonValue) -> Format | None:
        for _ in range(limits.DETECT_LINES_COUNT):
            found = self._line_format(value)
            if found is not None or not isinstance(value, dict) or "messages" in value:
                return found
            line = self._look_ahead()
            try:
                value = canonical.decode(line)
            except canonical.NotCanonical:
                return None
        return None

    def _line_format(self, value: JsonValue) -> Format | None:
        found = find_line_format(value)
        return found if self._wanted in (None, found) else None

    def _format(self, value: JsonValue) -> Format:
        return self._wanted or document_format(value)

    def _whole(self) -> Iterator[Piece | Spoilt]:
        data = self._rest()
        try:
            value = canonical.decode(data)
        except canonical.NotCanonical as error:
            yield from self._after_a_bad_line(data, not_a_document(error))
        else:
            yield Piece(None, self._format(value), data, value)

    def _after_a_bad_line(self, data: bytes, error: AuraError) -> Iterator[Piece | Spoilt]:
        """Yield what is in a file that is no JSON as a whole, and whose first line tells nothing."""
        for line in islice(BytesIO(data), limits.DETECT_LINES_COUNT):
            try:
                value = canonical.decode(line)
            except canonical.NotCanonical:
                continue
            found = self._line_format(value)
            if found is not None:
                yield Piece(None, found, data)
                return
            if is_whole_conversation(value):
                self._head = data.split(b"\n")
                yield from self._lines()
                return
        yield Spoilt(None, error)

    def _rest(self) -> bytes:
        pieces, size = self._head, sum(map(len, self._head))
        self._head = []
        while piece := self._stream.read(limits.FILE_PIECE_BYTES):
            size += len(piece)
            if size > self._max_bytes:
                raise files.too_large(self._name, self._max_bytes)
            pieces.append(piece)
        return b"".join(pieces)

    def _lines(self) -> Iterator[Piece | Spoilt]:
        for number, line in enumerate(self._all_lines(), 1):
            if isinstance(line, AuraError):
                yield Spoilt(number, line)
                continue
            body = line.strip(_BLANK)
            if not body:
                continue
            try:
                value = canonical.decode(body)
            except canonical.NotCanonical as error:
                yield Spoilt(number, not_a_document(error))
            else:
                yield Piece(number, self._format(value), body, value)

    def _all_lines(self) -> Iterator[bytes | AuraError]:
        yield from self._head
        self._head = []
        while True:
            try:
                line = self._read_line()
            except BadRequest as error:
                self._skip_line()
                yield error
                continue
            if not line:
                return
            yield line

    def _read_line(self) -> bytes:
        line = self._stream.readline(self._max_bytes + 1)
        if len(line) > self._max_bytes:
            raise files.too_large(self._name, self._max_bytes)
        return line

    def _skip_line(self) -> None:
        while line := self._stream.readline(limits.FILE_PIECE_BYTES):
            if line.endswith(b"\n"):
                return


@contextmanager
def _opened(name: str, max_bytes: int) -> Iterator[BufferedReader]:
    if name == files.STANDARD_STREAM:
        if sys.stdin is None:
            raise BadRequest("standard input is closed", hint="Name a file.")
        try:
            yield cast(BufferedReader, sys.stdin.buffer)
        except OSError as error:
            raise files.unreadable("standard input", error) from error
        return
    try:
        with open(name, "rb") as file:
            if _size(name) > max_bytes and not _may_be_lines(file.peek(limits.FILE_PIECE_BYTES)):
                raise files.too_large(name, max_bytes)
            yield file
    except OSError as error:
        raise files.unreadable(name, error) from error


def _may_be_lines(start: bytes) -> bool:
    return start.lstrip(_BLANK)[:1] in _OPENINGS


def _is_pattern(name: str) -> bool:
    return bool(_PATTERN_CHARS & set(name)) and not os.path.lexists(name)


def _walk(name: str) -> Iterator[str]:
    for directory, _, names in os.walk(name):
        yield from (str(Path(directory) / each) for each in names if each.endswith(_SUFFIXES))


def _size(name: str) -> int:
    try:
        status = os.stat(name)
    except (OSError, ValueError):
        return 0  # reading it says what is wrong
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
