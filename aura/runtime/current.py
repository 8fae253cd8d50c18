"""The agent at work in a held session, and how another one takes its place between two runs.

The agent is a frozen value that is replaced, never changed, and only by a command's run or at the start: a turn keeps
the one it began with.
"""

from __future__ import annotations

from collections.abc import Mapping

from aura import events as e
from aura.config.resolve import get_agent
from aura.config.spec import AgentSpec, CommandSpec, Configuration
from aura.engine.agent import Agent
from aura.engine.history import History
from aura.engine.mcp.servers import McpServers
from aura.engine.providers.base import ProviderError
from aura.engine.scope import Scope
from aura.errors import AuraError, Internal, provider_failure
from aura.jsontypes import JsonObject
from aura.runtime.agents import AgentFactory, Candidate
from aura.runtime.selection import Selection, restore_selection, store_selection


class CurrentAgent:
    """Which agent works in the session. Changed by one thread at a time, between turns; any thread may read it."""

    def __init__(self, factory: AgentFactory, candidate: Candidate, start: Selection) -> None:
        """Begin with `candidate`. `start` is what the command line says. Use `restore_agent`."""
        self._factory = factory
        self._taken = candidate
        self._start = start
        self._set_window(candidate.agent.gauge.window)

    @property
    def agent(self) -> Agent:
        """The agent that the next turn works with."""
        return self._taken.agent

    @property
    def selection(self) -> Selection:
        """What it was made of."""
        return self._taken.selection

    @property
    def start(self) -> Selection:
        """What the command line says."""
        return self._start

    @property
    def configuration(self) -> Configuration:
        """The configuration that it comes from."""
        return self._factory.configuration

    @property
    def own(self) -> AgentSpec:
        """The agent as it is configured, with nothing put over it."""
        return get_agent(self.configuration, self.selection.agent)

    @property
    def commands(self) -> Mapping[str, CommandSpec]:
        """The custom commands, by lower-cased name without the slash."""
        return self.configuration.commands

    def prepare(self, selection: Selection) -> Candidate:
        """Return the agent that `selection` makes, without a change. Raises `ConfigInvalid` and `McpUnavailable`."""
        return self._factory.make(selection, prefix="")

    def take(self, candidate: Candidate, contact: Scope | None = None) -> None:
        """Put `candidate` in the place of the agent. With `contact` its provider is asked about the model before.

        Raises `ProviderError` and `Cancelled`; then nothing has changed.
        """
        agent = candidate.agent
        same = _model_of(agent) == _model_of(self.agent)
        if contact is not None:
            window = agent.provider.context_tokens(agent.spec.model.name, contact)
        else:
            window = agent.gauge.window if same else 0
        self._taken = candidate
        self._set_window(window)
        self._factory.servers.keep(agent.spec.mcp)

    def take_notices(self) -> list[e.Notice]:
        """Return what somebody should know of the MCP servers that were connected since the last time."""
        return mcp_notices(self._factory.servers)

    def reload(self) -> None:
        """Read the configuration again and make the agent anew.

        Raises `ConfigInvalid` and `McpUnavailable`; then nothing has changed.
        """
        factory = self._factory.reread()
        candidate = factory.make(self.selection, prefix="")
        self._factory = factory
        self.take(candidate)

    def reconnect(self, server: str | None = None) -> None:
        """Connect lost and failed MCP servers again, or only `server`; the agent gets their tools.

        One that fails again is a notice. Raises `McpUnavailable` for one that is required; then nothing has changed.
        """
        self._factory.forget_failures(server)
        self.take(self.prepare(self.selection))

    def store(self, history: History) -> None:
        """Make the conversation say which agent works on it: system prompt and meta."""
        history.system = self.agent.prompt
        store_selection(history.meta, self.agent.spec, self.own)

    def status(self) -> e.StatusChanged:
        """Return the status between two runs."""
        spec, gauge = self.agent.spec, self.agent.gauge
        return e.StatusChanged(
            agent=spec.name,
            mode=None,
            provider=spec.model.provider.name,
            model=spec.model.name,
            iteration=0,
            tokens_used=gauge.used,
            tokens_max=gauge.window,
        )

    def _set_window(self, tokens: int) -> None:
        self.agent.gauge.window = self.agent.spec.model.context or tokens


def restore_agent(
    factory: AgentFactory, start: Selection, meta: JsonObject, scope: Scope
) -> tuple[CurrentAgent, tuple[str, ...]]:
    """Return the agent that a session with this `meta` goes on with, and notices of what could not be restored.

    Contacts the provider only for a model that is restored or replaced. Raises `ResumeFailed`, `ConfigInvalid`,
    `McpUnavailable`, and a provider's failure under its own code (contract.md, Serve; engine.md, appendix J).
    """
    restored = restore_selection(factory.configuration, start, meta)
    current = CurrentAgent(factory, factory.make(restored.selection), start)
    if restored.contact:
        try:
            current.take(Candidate(current.selection, current.agent), scope)
        except ProviderError as error:
            raise _startup_error(error) from error
    return current, restored.notices


def mcp_notices(servers: McpServers) -> list[e.Notice]:
    """Return what is to be said of the MCP servers that were connected since the last time."""
    return [e.Notice(level="warning", origin="mcp", message=text) for text in servers.take_notices()]


def _model_of(agent: Agent) -> tuple[str, str, int | None]:
    return agent.spec.model.provider.name, agent.spec.model.name, agent.spec.model.context


def _startup_error(error: ProviderError) -> AuraError:
    failure = error.run_error()
    made = provider_failure(failure.code, failure.message, failure.details)
    return made or Internal(failure.message, details=failure.details)
