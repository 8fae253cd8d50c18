"""An agent that is ready to work, as values: what a turn is given. It does nothing, and imports no part of a turn."""

from __future__ import annotations

from dataclasses import dataclass

from aura.config.spec import AgentSpec
from aura.engine.filters.base import ContextUse
from aura.engine.providers.base import Provider
from aura.engine.tools.toolbox import Toolbox


@dataclass(slots=True)
class Gauge:
    """How full the model's context is, in tokens; 0 when unknown. The run thread writes it, filters read it."""

    used: int = 0
    window: int = 0

    def read(self) -> ContextUse:
        """Return both numbers as filters take them."""
        return ContextUse(used_tokens=self.used, window_tokens=self.window)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that is ready to work: spec, provider, tools, rendered prompt, and the gauge of its context."""

    spec: AgentSpec
    provider: Provider
    toolbox: Toolbox
    prompt: str
    gauge: Gauge
