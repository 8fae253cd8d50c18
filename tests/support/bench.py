"""A place to run tool calls in: a lane in memory, a toolbox over a directory, a history."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aura.config.spec import ToolsSpec
from aura.conversation import Call
from aura.engine import batch
from aura.engine.call import CallResult, Site, perform
from aura.engine.history import History
from aura.engine.tools.toolbox import Toolbox
from aura.jsontypes import JsonValue
from tests.support.lane import RecordingLane


@dataclass
class Bench:
    """Runs calls by name and arguments."""

    workdir: Path
    lane: RecordingLane = field(default_factory=RecordingLane)
    spec: ToolsSpec = field(default_factory=ToolsSpec)
    history: History = field(default_factory=History)
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.environ.get("PATH", os.defpath)})
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.toolbox = Toolbox(
            spec=self.spec,
            workdir=self.workdir,
            environment=self.environment,
            spill_dir=self.workdir / ".spill",
            **self.options,
        )

    def call(self, name: str, **arguments: JsonValue) -> CallResult:
        """Perform one call."""
        return perform(Call("call_1", name, arguments), Site(self.lane, self.toolbox, self.history))

    def ok(self, name: str, **arguments: JsonValue) -> str:
        """Perform one call that must succeed; return its text."""
        result = self.call(name, **arguments)
        assert result.status == "ok", result.text
        return result.text

    def error(self, name: str, **arguments: JsonValue) -> str:
        """Perform one call that must fail; return its error."""
        result = self.call(name, **arguments)
        assert result.status == "error", result.text
        assert result.error is not None
        assert result.text == f"Error: {result.error}"
        return result.error

    def batch(self, *calls: tuple[str, Mapping[str, JsonValue]]) -> batch.BatchOutcome:
        """Perform calls as one message's batch, with the ids c0, c1, …"""
        made = [Call(f"c{position}", name, arguments) for position, (name, arguments) in enumerate(calls)]
        return batch.run(made, self.lane, self.toolbox, self.history)
