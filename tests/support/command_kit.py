"""A held session in memory for tests of slash commands: real configuration and agents, a scripted model, no store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from aura import events as e
from aura.clock import SystemClock
from aura.config.homes import Homes
from aura.config.resolve import Overrides
from aura.config.spec import Configuration
from aura.conversation import Call, Message
from aura.engine.agent import Agent
from aura.engine.history import History
from aura.engine.io import IoThread
from aura.engine.lane import TurnOutcome
from aura.engine.mcp.servers import McpServers
from aura.engine.scope import Scope
from aura.runtime.agents import AgentFactory, Candidate, make_factory
from aura.runtime.commands.dispatch import check_command, run_command
from aura.runtime.current import CurrentAgent, restore_agent
from aura.runtime.selection import Selection
from tests.support.lane import RecordingLane, StillAlarm


@dataclass
class Lane(RecordingLane):
    """A lane of one run."""

    run_id: str = "run_1"


@dataclass
class Desk:
    """Writes a configuration, opens a session on it and types commands."""

    root: Path
    io: IoThread
    history: History = field(default_factory=History)
    lane: Lane = field(default_factory=Lane)
    factories: list[AgentFactory] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.root / "work"
        self.work.mkdir()
        self.agent("main", default=True, description="The first")
        self.provider("script", models=["scripted", "other"])
        self.current: CurrentAgent

    def write(self, name: str, text: str) -> Path:
        """Write a file of the config home."""
        path = self.root / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def agent(self, name: str, text: str = "You are {{ Agent }} on {{ Model.Name }}.", **keys: Any) -> None:
        """Write an agent."""
        front = {"name": name, "model": {"provider": "script", "name": "scripted"}} | keys
        self.write(f"config/agents/{name}.md", f"---\n{yaml.safe_dump(front)}---\n{text}\n")

    def provider(
        self,
        name: str,
        models: list[str],
        turns: list[Mapping[str, Any]] | None = None,
        only: Mapping[str, list[str]] | None = None,
        **keys: Any,
    ) -> None:
        """Write a scripted provider and its script. `only` is the provider's key `models`."""
        script = {"models": models, "context": 1000, "turns": turns or [{"content": "ok", "repeat": "forever"}]}
        self.write(f"{name}.script.yaml", yaml.safe_dump(script))
        fields = {"type": "script", "file": f"{name}.script.yaml"} | keys | ({"models": dict(only)} if only else {})
        self.write(f"config/providers/{name}.yaml", yaml.safe_dump({name: fields}))

    def command(self, name: str, body: str, **keys: Any) -> None:
        """Write a custom command."""
        self.write(f"config/commands/{name}.md", f"---\n{yaml.safe_dump({'name': name} | keys)}---\n{body}\n")

    def open(self, agent: str | None = None, **overrides: Any) -> tuple[str, ...]:
        """Start the session as a server would; return the notices."""
        home = self.root / "home"
        factory = make_factory(Homes((home,), home, self.work), self.work, self.io, SystemClock())
        self.factories.append(factory)
        start = Selection(agent, Overrides(**overrides))
        self.current, notices = restore_agent(factory, start, self.history.meta, Scope(StillAlarm()))
        self.current.store(self.history)
        return notices

    def type(self, text: str) -> TurnOutcome:
        """Check and run a command."""
        if not hasattr(self, "current"):
            self.open()
        check_command(text, self.current.commands)
        return run_command(self.lane, self.current, self.history, text)

    def ok(self, text: str) -> str:
        """Run a command that must work; return its result."""
        outcome = self.type(text)
        assert outcome.outcome == "completed", outcome.error
        assert outcome.content is not None
        assert self.lane.events[-1] == e.CommandResult(command=text, message=outcome.content)
        return outcome.content

    def fails(self, text: str) -> str:
        """Run a command that must fail and change nothing; return its error."""
        before = self.state() if hasattr(self, "current") else None
        outcome = self.type(text)
        assert outcome.outcome == "failed"
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.retryable, outcome.content) == ("command_failed", False, None)
        assert self.lane.events[-1] == e.CommandResult(command=text, message="", error=outcome.error.message)
        assert before is None or before == self.state()
        return outcome.error.message

    def state(self) -> tuple[object, ...]:
        """Return what a command may change."""
        agent, history = self.current.agent, self.history
        return agent, dict(history.meta), history.system, history.title, list(history.messages)

    def say(self, *messages: Message) -> None:
        """Put messages into the conversation."""
        for message in messages:
            self.history.append(message)

    def close(self) -> None:
        """Remove what the factories made."""
        for factory in self.factories:
            factory.close()


@contextmanager
def open_desk(root: Path) -> Iterator[Desk]:
    """Yield a desk; its io thread ends with it."""
    io = IoThread()
    desk = Desk(root, io)
    try:
        yield desk
    finally:
        desk.close()
        io.close()


def current_of(agent: Agent, folder: Path) -> CurrentAgent:
    """Return a ready-made agent as the one at work, for hosts whose configuration does not matter."""
    configuration = Configuration(Homes((folder,), folder, folder), {agent.spec.name.lower(): agent.spec}, {})
    io = IoThread()
    servers = McpServers(io, folder)
    factory = AgentFactory(configuration, folder, io, SystemClock(), {}, {}, folder, servers, gauge=agent.gauge)
    selection = Selection(agent.spec.name)
    return CurrentAgent(factory, Candidate(selection, agent), selection)


def user(text: str) -> Message:
    """Return a user message."""
    return Message("user", text, id=f"u-{text}")


def answer(text: str, *names: str, thinking: str = "") -> Message:
    """Return an answer that calls the tools `names`."""
    return Message("assistant", text, id=f"a-{text}", thinking=thinking, calls=tuple(Call(f"c-{n}", n) for n in names))


def result(name: str, text: str = "done") -> Message:
    """Return the result of the call of tool `name`."""
    return Message("tool", text, id=f"t-{name}", tool_name=name, tool_call_id=f"c-{name}")
