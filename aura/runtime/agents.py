"""Makes agents ready to work: configuration, provider, tools, MCP servers, rendered prompt. It contacts no provider."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from aura.clock import Clock
from aura.config.homes import Homes
from aura.config.prompt import prompt_variables, render_prompt
from aura.config.resolve import get_agent, load_configuration, secret_values, secret_variables, with_overrides
from aura.config.spec import Configuration, ProviderSpec
from aura.engine.agent import Agent, Gauge
from aura.engine.executors.environment import child_environment, erase_from_environ
from aura.engine.io import IoThread
from aura.engine.mcp.servers import McpServers
from aura.engine.providers.base import Provider
from aura.engine.providers.registry import build_provider
from aura.engine.tools.done import DoneTool
from aura.engine.tools.reads import ReadTracker
from aura.engine.tools.registry import BUILT_IN
from aura.engine.tools.toolbox import Toolbox
from aura.runtime.selection import Selection


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent that could take over, and the selection that it was made of."""

    selection: Selection
    agent: Agent


@dataclass(frozen=True, slots=True)
class AgentFactory:
    """Agents of one configuration for one session. Each provider is built once, each MCP server connected once. One
    thread at a time.

    What the agents of a session share outlives each of them: which files were read, how full the context is, where long
    outputs go, which servers are connected. `environ` is the environment at the start, with secrets.
    """

    configuration: Configuration
    workdir: Path
    io: IoThread
    clock: Clock
    environ: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    spill_dir: Path
    servers: McpServers
    gauge: Gauge = field(default_factory=Gauge)
    reads: ReadTracker = field(default_factory=ReadTracker)
    providers: dict[str, tuple[ProviderSpec, Provider]] = field(default_factory=dict)

    def make(self, selection: Selection, *, prefix: str = "--") -> Candidate:
        """Return the selected agent. `prefix` stands before the name of an override in an error.

        The candidate's selection names its agent, and has `done` only if the agent has that tool. MCP servers of the
        agent that are not connected yet are, which may take as long as they may take to start. Raises `ConfigInvalid`
        and `McpUnavailable`.
        """
        own = get_agent(self.configuration, selection.agent)
        spec = with_overrides(self.configuration, own, selection.overrides, prefix=prefix)
        prompt = render_prompt(spec, prompt_variables(spec, self.configuration.homes, self.workdir))
        provider = self._provider(spec.model.provider.name)
        own_tools = (*BUILT_IN, DoneTool()) if selection.done else BUILT_IN
        toolbox = Toolbox(
            spec=spec.tools,
            workdir=self.workdir,
            environment=self.environment,
            spill_dir=self.spill_dir,
            reads=self.reads,
            context_use=self.gauge.read,
            tools=(*own_tools, *self.servers.connect(spec.mcp, self.environment, spec.accepts_mcp_tool)),
            auto=selection.auto,
        )
        agent = Agent(spec, provider, toolbox, prompt, self.gauge)
        has_done = selection.done and toolbox.find(DoneTool.spec.name) is not None
        return Candidate(replace(selection, agent=spec.id, done=has_done), agent)

    def reread(self) -> AgentFactory:
        """Return a factory of the configuration as the files have it now. Providers that did not change are kept, and
        so are connected MCP servers; lost and failed ones are tried again.

        Raises `ConfigInvalid`; this factory is as good as before in any case.
        """
        configuration = load_configuration(self.configuration.homes, self.environ)
        # Late for a new one: a thread may be reading the environment. To let commands see a token would be worse.
        erased = _erase_secrets(configuration)
        secrets = secret_values(configuration)
        environment = {
            name: value for name, value in self.environment.items() if name not in erased and value not in secrets
        }
        kept = {name: made for name, made in self.providers.items() if configuration.providers.get(name) == made[0]}
        self.servers.forget_failures()
        return replace(self, configuration=configuration, environment=environment, providers=kept)

    def forget_failures(self, server: str | None = None) -> None:
        """Let the next agent try lost and failed MCP servers again, or only this one."""
        self.servers.forget_failures(server)

    def close(self) -> None:
        """Close the MCP servers and remove the long outputs that were put aside."""
        self.servers.close()
        shutil.rmtree(self.spill_dir, ignore_errors=True)

    def _provider(self, name: str) -> Provider:
        if name not in self.providers:
            spec = self.configuration.providers[name]
            self.providers[name] = (spec, build_provider(spec, self.io, self.clock))
        return self.providers[name][1]


def make_factory(homes: Homes, workdir: Path, io: IoThread, clock: Clock) -> AgentFactory:
    """Load the configuration and return its factory. Tokens of providers and servers leave this process's environment.

    Main thread, before any child process is started. Raises `ConfigInvalid`.
    """
    environ = dict(os.environ)
    configuration = load_configuration(homes, environ)
    _erase_secrets(configuration)
    environment = child_environment(secret_values(configuration))
    spill_dir = Path(tempfile.mkdtemp(prefix="aura-output-"))
    servers = McpServers(io, workdir)
    return AgentFactory(configuration, workdir, io, clock, environ, environment, spill_dir, servers)


def _erase_secrets(configuration: Configuration) -> frozenset[str]:
    names = secret_variables(configuration)
    for name in sorted(names):
        if name in os.environ:
            erase_from_environ(name)
    return names
