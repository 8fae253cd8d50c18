"""A command group that imports a command when it is invoked, and lists its commands without importing any."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is (`module:attribute`) and the line that the list of commands shows of it."""

    target: str
    help: str

    def load(self) -> click.Command:
        """Import the command. From here on garbage is collected, but never looked for in what was loaded before."""
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        gc.freeze()
        gc.enable()
        assert isinstance(found, click.Command), self.target
        return found


class LazyGroup(click.Group):
    """A group over a table of `LazyCommand`s, listed in the table's order."""

    def __init__(self, name: str, *, commands: Mapping[str, LazyCommand], **settings: Any) -> None:
        super().__init__(name, **settings)
        self._table = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now, or None when there is no such one."""
        entry = self._table.get(cmd_name)
        return entry.load() if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into a help page."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._table.items()])
