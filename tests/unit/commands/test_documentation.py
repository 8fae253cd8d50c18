"""docs/commands.md names every command, alias, argument and format that there is, and none that there is not."""

from __future__ import annotations

import re
from pathlib import Path

from aura.runtime.commands.formats import FORMATS
from aura.runtime.commands.table import COMMANDS, LATER, REJECTED

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `/")]


def first_cell(row: str) -> str:
    return row.replace("\\|", "\N{BROKEN BAR}").split("|")[1].replace("\N{BROKEN BAR}", "|")


def test_every_command_has_a_row_with_its_arguments_and_aliases() -> None:
    cells = [first_cell(row) for row in ROWS]
    for command in COMMANDS.values():
        (cell,) = [cell for cell in cells if cell.startswith((f" `{command.name} ", f" `{command.name}`"))]
        assert command.usage in cell.replace("…", "..."), command.name
        assert all(f"`{alias}`" in cell for alias in command.aliases), command.name


def test_the_refused_ones_are_named_in_rows_of_their_own() -> None:
    named = [set(re.findall(r"`(/\w+)`", first_cell(row))) for row in ROWS]
    assert REJECTED in named
    assert LATER in named


def test_the_page_names_no_command_that_there_is_not() -> None:
    known = {name for command in COMMANDS.values() for name in (command.name, *command.aliases)} | REJECTED | LATER
    named = {name for row in ROWS for name in re.findall(r"`(/\w+)", first_cell(row))}
    assert named == known


def test_every_export_format_is_named() -> None:
    row = next(row for row in ROWS if row.startswith("| `/export"))
    assert all(f"`{name}`" in row for name in FORMATS)
