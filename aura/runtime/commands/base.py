"""What a slash command is: a name, what `/help` says of it, and a function on the held session between two turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aura.config.resolve import Overrides
from aura.engine.agent import Agent
from aura.engine.history import History
from aura.engine.lane import Lane
from aura.runtime.agents import Candidate
from aura.runtime.commands.parsing import Invocation
from aura.runtime.current import CurrentAgent
from aura.runtime.selection import Selection, overlay


class CommandFailed(Exception):
    """The command could not do what it was asked, and changed nothing; the text is for the person who asked."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command may look at and change. `known` are the built-in commands."""

    lane: Lane
    history: History
    current: CurrentAgent
    invocation: Invocation
    known: Mapping[str, Command]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the command."""
        return self.invocation.arguments

    @property
    def agent(self) -> Agent:
        """The agent that the next turn works with."""
        return self.current.agent

    @property
    def selection(self) -> Selection:
        """What that agent was made of."""
        return self.current.selection

    def override(self, overrides: Overrides) -> Overrides:
        """Return the session's overrides with these over them."""
        return overlay(self.selection.overrides, overrides)

    def change(self, selection: Selection) -> Candidate:
        """Let another agent take over from the next turn on; return it. Raises `ConfigInvalid` and `McpUnavailable`."""
        candidate = self.current.prepare(selection)
        self.current.take(candidate)
        self.announce()
        return candidate

    def announce(self) -> None:
        """Make conversation and status say which agent works now, and tell what its MCP servers want told."""
        for notice in self.current.take_notices():
            self.lane.emit(notice)
        self.current.store(self.history)
        self.lane.emit(self.current.status())


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command. `most` is how many words it takes, None for any number."""

    name: str
    hints: str
    summary: str
    run: Callable[[CommandContext], str]
    most: int | None = 0
    aliases: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """How it is typed."""
        return f"{self.name} {self.hints}".rstrip()
