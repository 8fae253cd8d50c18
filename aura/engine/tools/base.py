"""What a tool is: a definition that the model sees, and a function that runs one call.

A tool decides nothing about permission: gates do that before it runs, filters look at its result after
(SHAPES.md section 3). One module per tool, or per small family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aura.config.spec import BashSpec
from aura.engine.history import History
from aura.engine.lane import Answer, Question
from aura.engine.scope import Scope
from aura.engine.tools.reads import ReadTracker
from aura.jsontypes import JsonObject, JsonValue

OnProgress = Callable[[float, "float | None", "str | None"], None]  # (progress, total, message)


class ToolError(Exception):
    """The call failed; the text is what the model is told."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool's face.

    `read_only`: it changes nothing, so its start need not be durable. `parallel`: it may run beside others of one
    batch. `path_parameter`: the argument that policy patterns match (engine.md 6.4): a path, or Bash's command.
    `ends_turn`: a call that went well ends the turn after its batch. `own_schema`: the parameters were declared by us
    and are checked here; else whoever declared them checks them.
    """

    name: str
    description: str
    parameters: JsonObject
    read_only: bool = False
    parallel: bool = True
    path_parameter: str | None = None
    ends_turn: bool = False
    own_schema: bool = True


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call may use.

    `environment` holds no secret; `output` shows a line live, `progress` how far a call is; `history` holds the todos.
    `spill_dir` is where output goes that is too long to show: it is made when needed and removed by whoever named it.
    """

    call_id: str
    workdir: Path
    scope: Scope
    environment: Mapping[str, str]
    output: Callable[[str], None]
    progress: OnProgress
    ask: Callable[[Question], Answer]
    process_started: Callable[[int, str], None]
    reads: ReadTracker
    history: History
    bash: BashSpec
    spill_dir: Path


class Tool(Protocol):
    """One tool. `run` is called on the run thread or one of its `gather` threads."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's face."""
        ...

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Run one call with arguments that fit the schema; return what the model reads. Raises `ToolError`."""
        ...
