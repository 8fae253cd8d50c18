"""Plain text for people: aligned columns, times, one-line texts. It never writes a control character."""

from __future__ import annotations

from collections.abc import Sequence

from aura.clock import format_time

GAP = "  "
SHORT_REVISION_CHARS = 12


def one_line(text: str) -> str:
    """Return `text` on one line: white space and control characters, escape sequences included, become spaces."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def clean_lines(text: str) -> list[str]:
    """Return the lines of `text`, tabs expanded, control characters, escape sequences included, as spaces."""
    lines = text.expandtabs(4).replace("\r\n", "\n").rstrip("\n").split("\n")
    return ["".join(char if char.isprintable() else " " for char in line) for line in lines]


def shorten(text: str, columns: int) -> str:
    """Return `text` on one line, cut to `columns` on the screen, with an ellipsis where it was cut."""
    line = one_line(text)
    if width(line) <= columns:
        return line
    kept, used = [], 1
    for char in line:
        used += width(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + "…"


def width(text: str) -> int:
    """Return how many columns `text` takes on a screen."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def format_rows(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Return rows as aligned lines. The columns in `right` are aligned to the right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return "".join(_line(row, widths, right) + "\n" for row in rows)


def short_time(at_ms: int) -> str:
    """Return a Unix time as UTC text to the second."""
    return format_time(at_ms)[:19].replace("T", " ") + "Z"


def _line(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    cells = []
    for index, (cell, columns) in enumerate(zip(row, widths, strict=True)):
        padding = " " * (columns - width(cell))
        cells.append(padding + cell if index in right else cell + padding)
    return GAP.join(cells).rstrip()
