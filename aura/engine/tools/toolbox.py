"""The tools of one agent in one session, with everything a call of them needs. It runs nothing: `engine.call` does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aura.config.spec import ToolsSpec
from aura.engine.filters.base import ContextUse, Filter
from aura.engine.filters.chain import FILTERS
from aura.engine.gates.base import Gate
from aura.engine.gates.chain import GATES
from aura.engine.providers.base import ToolDefinition
from aura.engine.tools.base import Tool
from aura.engine.tools.reads import ReadTracker
from aura.engine.tools.registry import BUILT_IN


def _unknown_use() -> ContextUse:
    return ContextUse(used_tokens=0, window_tokens=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """What an agent can do. `tools` are all there are; `spec` says which of them are enabled.

    `environment` is what child processes get, without secrets (`executors.environment`). `spill_dir` is the session's
    directory for outputs that are too long to show. `context_use` is asked before each result is filtered. With
    `auto` nobody is asked: approvals are given and questions answer themselves (engine.md 4.6).
    """

    spec: ToolsSpec
    workdir: Path
    environment: Mapping[str, str]
    spill_dir: Path
    reads: ReadTracker = field(default_factory=ReadTracker)
    context_use: Callable[[], ContextUse] = _unknown_use
    tools: tuple[Tool, ...] = BUILT_IN
    gates: tuple[Gate, ...] = GATES
    filters: tuple[Filter, ...] = FILTERS
    auto: bool = False

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the enabled tools as a model sees them."""
        return tuple(
            ToolDefinition(tool.spec.name, tool.spec.description, tool.spec.parameters)
            for tool in self.tools
            if self._is_enabled(tool.spec.name)
        )

    def find(self, name: str) -> Tool | None:
        """Return the enabled tool of this name, case-sensitive, or None."""
        return next((tool for tool in self.tools if tool.spec.name == name and self._is_enabled(name)), None)

    def explain_missing(self, name: str) -> str:
        """Return what the model is told when `find` has nothing for `name`."""
        if any(tool.spec.name == name for tool in self.tools):
            return f"the tool {name} is disabled for this agent"
        names = ", ".join(definition.name for definition in self.definitions())
        shown = name if len(name) <= 100 else f"{name[:100]}…"
        return f"there is no tool named {shown!r}; the tools are: {names or 'none'}"

    def _is_enabled(self, name: str) -> bool:
        # Nothing enabled explicitly means everything; disabled always wins (engine.md, appendix E).
        included = not self.spec.enabled or _matches_any(self.spec.enabled, name)
        return included and not _matches_any(self.spec.disabled, name)


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), name) for pattern in patterns)
