"""The agents that the gateway serves, by id (interfaces.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aura.config.spec import AgentSpec
from aura.errors import BadRequest, ModelNotFound


@dataclass(frozen=True, slots=True)
class GatewayAgents:
    """All agents by id, hidden ones too, and the default one's id."""

    agents: Mapping[str, AgentSpec]
    default: str | None = None

    def select(self, model: str | None) -> AgentSpec:
        """Return the agent that a request means (gateway.md 2.6)."""
        if len(self.agents) == 1:
            return next(iter(self.agents.values()))
        name = model or self.default
        if name is None:
            raise BadRequest("no model is named, and there is no default agent")
        if name not in self.agents:
            raise ModelNotFound(f"The model `{name}` does not exist", details={"param": "model"})
        return self.agents[name]
