"""Makes agents ready to work: configuration, provider, tools, MCP servers, rendered prompt. It contacts no provider."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aura.clock import Clock
from aura.config.prompt import prompt_variables, render_prompt
from aura.config.resolve import (
    Overrides,
    find_agent,
    get_agent,
    load_configuration,
    secret_values,
    secret_variables,
    with_overrides,
)
from aura.config.spec import Configuration, Homes
from aura.engine.executors.environment import child_environment, erase_from_environ
from aura.engine.io import IoThread
from aura.engine.mcp.servers import McpServers
from aura.engine.providers.base import Provider
from aura.engine.providers.registry import build_provider
from aura.engine.tools.registry import BUILT_IN
from aura.engine.tools.toolbox import Toolbox
from aura.engine.turn import Agent, Gauge
from aura.errors import ResumeFailed


@dataclass(slots=True)
class AgentFactory:
    """Agents of one configuration for one workspace. Providers are built once, servers connected once. One thread at
    a time.
    """

    configuration: Configuration
    workdir: Path
    io: IoThread
    clock: Clock
    servers: McpServers
    overrides: Overrides = field(default_factory=Overrides)
    environment: Mapping[str, str] = field(default_factory=dict)
    _providers: dict[str, Provider] = field(default_factory=dict)

    def make(self, chosen: str | None, stored: str | None) -> Agent:
        """Return the agent `chosen` on the command line, else the session's `stored` one, else the default.

        Its MCP servers are connected then, which may block for as long as they may take to start. Raises
        `ConfigInvalid`, `McpUnavailable`, and `ResumeFailed` when the stored agent is no longer configured.
        """
        if chosen is None and stored is not None and find_agent(self.configuration, stored) is None:
            raise ResumeFailed(
                f"the session was served with the agent {stored}, which is not configured",
                hint="Configure it, or choose another with --agent.",
            )
        spec = get_agent(self.configuration, chosen or stored)
        spec = with_overrides(self.configuration, spec, self.overrides)
        prompt = render_prompt(spec, prompt_variables(spec, self.configuration.homes, self.workdir))
        provider = self._provider(spec.model.provider.name)
        gauge = Gauge()
        tools = (*BUILT_IN, *self.servers.connect(spec.mcp))
        toolbox = Toolbox(
            spec=spec.tools,
            workdir=self.workdir,
            environment=self.environment,
            spill_dir=Path(tempfile.mkdtemp(prefix="aura-output-")),
            context_use=gauge.read,
            tools=tools,
        )
        return Agent(spec, provider, toolbox, prompt, gauge)

    def _provider(self, name: str) -> Provider:
        if name not in self._providers:
            spec = self.configuration.providers[name.lower()]
            self._providers[name] = build_provider(spec, self.io, self.clock)
        return self._providers[name]


def make_factory(homes: Homes, workdir: Path, io: IoThread, clock: Clock, overrides: Overrides) -> AgentFactory:
    """Load the configuration and return its factory. Tokens of providers and servers leave this process's environment.

    Main thread, before any child process is started. Raises `ConfigInvalid`.
    """
    configuration = load_configuration(homes, os.environ)
    for name in sorted(secret_variables(configuration)):
        erase_from_environ(name)
    environment = child_environment(secret_values(configuration))
    servers = McpServers(io, workdir, environment)
    return AgentFactory(configuration, workdir, io, clock, servers, overrides, environment)
