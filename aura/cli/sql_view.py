"""How `aura sql` prints an answer: as a table, as JSON, as lines of JSON, as CSV. It asks nothing.

NULL and an empty text always look different, and a blob is lower-case hex. Lines of JSON and CSV leave as rows come;
a table and a JSON object are printed when the answer is whole, so that a failure leaves standard output alone.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from aura import limits
from aura.cli import streams
from aura.cli.table import GAP, format_rows, one_line, shorten, width
from aura.jsontypes import JsonValue
from aura.runtime.sql import End, Head, Part, Row, Rows, Value

Shape = Literal["table", "json", "ndjson", "csv"]

_NULL = "NULL"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to ask and to print. `row_limit` None: no limit."""

    shape: Shape
    timeout_ms: int
    row_limit: int | None


class Printer(Protocol):
    """Prints one answer, part by part."""

    def take(self, part: Part) -> None:
        """Take the next part; after `End` all is printed."""


def make_printer(shape: Shape) -> Printer:
    """Return a printer for one answer."""
    match shape:
        case "table":
            return _TablePrinter()
        case "json":
            return _JsonPrinter()
        case "ndjson":
            return _LinePrinter()
        case "csv":
            return _CsvPrinter()


class _TablePrinter:
    def __init__(self) -> None:
        self._head: tuple[str, ...] = ()
        self._rows: list[Row] = []

    def take(self, part: Part) -> None:
        match part:
            case Head(columns):
                self._head = columns
            case Rows(rows):
                self._rows += rows
            case End():
                screen = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
                streams.write_stdout(table_text(self._head, self._rows, screen))


class _JsonPrinter:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._rows: list[JsonValue] = []

    def take(self, part: Part) -> None:
        match part:
            case Head(columns):
                self._names = distinct(columns)
            case Rows(rows):
                self._rows += [_fields(self._names, row) for row in rows]
            case End(cut):
                fields: JsonValue = {"columns": list(self._names), "rows": self._rows, "truncated": cut}
                streams.write_stdout(streams.json_line(fields))


class _LinePrinter:
    def __init__(self) -> None:
        self._names: list[str] = []

    def take(self, part: Part) -> None:
        match part:
            case Head(columns):
                self._names = distinct(columns)
            case Rows(rows):
                streams.write_stdout(b"".join(streams.json_line(_fields(self._names, row)) for row in rows))


class _CsvPrinter:
    def take(self, part: Part) -> None:
        match part:
            case Head(columns):
                streams.write_stdout(_csv_line(columns))
            case Rows(rows):
                streams.write_stdout("".join(map(_csv_line, rows)))


def table_text(head: Sequence[str], rows: Sequence[Row], columns: int | None) -> str:
    """Return rows as an aligned table, cut to `columns` of a screen if given; as blocks where that is too narrow."""
    if not head:
        return ""
    names = [one_line(name) for name in head]
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(names, *cells, strict=True)]
    if columns is not None and not _fit(widths, columns):
        return "".join(_block(names, row, columns, number) for number, row in enumerate(cells, 1))
    if columns is not None:
        names = [shorten(name, limit) for name, limit in zip(names, widths, strict=True)]
        cells = [[shorten(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in cells]
    right = frozenset(index for index, column in enumerate(zip(*rows, strict=True)) if _is_numeric(column))
    lines = ["-" * max(map(width, column)) for column in zip(names, *cells, strict=True)]
    return format_rows([names, lines, *cells], right)


def cell_text(value: Value) -> str:
    """Return a value on one line, without control characters. NULL is bare, a text that reads like it is quoted."""
    match value:
        case None:
            return _NULL
        case bytes():
            return value.hex()
        case str():
            line = one_line(value)
            return f"'{line}'" if line == _NULL else line
        case _:
            return str(value)


def distinct(names: Sequence[str]) -> list[str]:
    """Return names for the keys of an object: a repeated one gets a number."""
    taken: list[str] = []
    for name in names:
        number, key = 1, name
        while key in taken:
            number += 1
            key = f"{name}_{number}"
        taken.append(key)
    return taken


def _fit(widths: list[int], columns: int) -> bool:
    """Make the widest columns narrower until a row fits, in place; False when that would leave nothing to read."""
    while sum(widths) + len(GAP) * (len(widths) - 1) > columns:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= limits.SQL_CELL_MIN_COLUMNS:
            return False
        widths[widest] -= 1
    return True


def _block(names: Sequence[str], row: Sequence[str], columns: int, number: int) -> str:
    label = max(map(width, names))
    room = max(limits.SQL_CELL_MIN_COLUMNS, columns - label - len(GAP))
    lines = [(name, shorten(cell, room)) for name, cell in zip(names, row, strict=True)]
    return f"-- row {number} --\n" + format_rows(lines)


def _is_numeric(column: Sequence[Value]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in column)


def _fields(names: Sequence[str], row: Row) -> JsonValue:
    return {name: _json_value(value) for name, value in zip(names, row, strict=True)}


def _json_value(value: Value) -> JsonValue:
    match value:
        case bytes():
            return value.hex()
        case float() if not math.isfinite(value):
            return str(value)  # JSON has no infinity
        case _:
            return value


def _csv_line(row: Sequence[Value]) -> str:
    """Return a record of CSV. NULL is nothing at all, an empty text is two quotes, as PostgreSQL has it."""
    return ",".join(map(_csv_field, row)) + os.linesep


def _csv_field(value: Value) -> str:
    match value:
        case None:
            return ""
        case bytes():
            return value.hex()
        case str() if not value or value != value.strip() or any(char in value for char in ',"\r\n'):
            return '"' + value.replace('"', '""') + '"'
        case _:
            return str(value)
