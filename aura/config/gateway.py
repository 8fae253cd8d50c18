"""All agents that a gateway serves, of the homes and of TOML files, and which of them a request gets (gateway.md 2.6).

It reads files, contacts nobody and knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from aura import limits
from aura.clock import Clock, SystemClock
from aura.config.hitl import check_signing
from aura.config.readers import describe
from aura.config.resolve import secret_values, secret_variables
from aura.config.spec import AgentSpec, Configuration, HttpTarget
from aura.config.toml_agents import TomlAgents, read_toml_agents
from aura.errors import BadRequest, ConfigInvalid, ModelNotFound

_SHOWN_COUNT = 20  # ids that an error lists


@dataclass(frozen=True, slots=True)
class GatewayAgents:
    """The agents of a gateway.

    `agents` has all, hidden ones too, by id and in the order of the ids; ids are told apart without regard to case.
    `default` is the id of the agent for requests that name none, None when there is no such agent. `configuration` is
    that of the homes with the agents and providers of TOML files in it, by lower-cased id and name. `secret_values`
    are texts that no child process may have in its environment, `secret_variables` the names of variables to be erased.
    `notices` are the warnings of the start.
    """

    agents: Mapping[str, AgentSpec]
    default: str | None
    configuration: Configuration
    secret_values: frozenset[str] = field(repr=False)
    secret_variables: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()

    def select(self, model: str | None) -> AgentSpec:
        """Return the agent for a request that says `model`; None and white space say nothing.

        The only agent answers to everything. Otherwise it is the one with that id, in any case, or the default one.

        Raises `ModelNotFound` for an id that nobody has, and `BadRequest` when nothing is said and there is no default.
        """
        if len(self.agents) == 1:
            return next(iter(self.agents.values()))
        wanted = model if model is not None and model.strip() else self.default
        if wanted is None:
            problem = "the request names no model, and there is no default agent"
            raise BadRequest(problem, hint=self._known(), details={"param": "model"})
        found = self.agents.get(wanted) or self.configuration.agents.get(wanted.lower())
        if found is None:
            problem = f"The model `{describe(wanted)[1:-1]}` does not exist"
            raise ModelNotFound(problem, hint=self._known(), details={"param": "model"})
        return found

    def _known(self) -> str:
        return _known(self.agents)


def load_gateway(
    configuration: Configuration,
    toml: Path | None,
    environ: Mapping[str, str],
    default_agent: str | None,
    *,
    signing: bool = False,
    inactivity_timeout_ms: int = 0,
    clock: Clock | None = None,
) -> GatewayAgents:
    """Return all agents of `configuration` and of the TOML file or directory `toml`.

    `signing`: a secret for webhooks is set. `inactivity_timeout_ms` is the server's, 0 for none. An agent without a
    time of its own was created now. Reads files only; any thread may call it.

    Raises `ConfigInvalid` for bad files, no agent at all, two agents with one id, a default agent that is not there,
    and requests that would be signed but not encrypted.
    """
    now_ms = (clock or SystemClock()).now_ms()
    if toml is not None and configuration.shared.sandbox_problem is not None:
        raise ConfigInvalid(configuration.shared.sandbox_problem, hint="TOML agents run without a sandbox; disable it.")
    read = read_toml_agents(toml, environ, configuration.shared) if toml is not None else TomlAgents()
    agents = _by_id([*configuration.agents.values(), *read.agents], now_ms)
    if signing:
        check_signing(agents.values())
    merged = replace(
        configuration,
        agents={key.lower(): agent for key, agent in agents.items()},
        providers={**configuration.providers, **{one.model.provider.name: one.model.provider for one in read.agents}},
    )
    variables = secret_variables(merged)
    return GatewayAgents(
        agents=MappingProxyType(agents),
        default=_default(agents, default_agent),
        configuration=merged,
        secret_values=frozenset(_values(merged, environ, variables)),
        secret_variables=variables,
        notices=(*configuration.notices, *read.notices, *_late(agents, inactivity_timeout_ms)),
    )


def _by_id(agents: list[AgentSpec], now_ms: int) -> dict[str, AgentSpec]:
    found: dict[str, AgentSpec] = {}
    for agent in agents:
        first = found.setdefault(agent.id.lower(), agent)
        if first is not agent:
            problem = f"{agent.source}: {first.source} has an agent called {describe(first.id)} already"
            raise ConfigInvalid(problem, hint="Rename one of the two, or give it another alias.")
    if not found:
        hint = "Add one to a config home, or name a file with --agents."
        raise ConfigInvalid("there is no agent to serve", hint=hint)
    return {agent.id: _dated(agent, now_ms) for agent in sorted(found.values(), key=lambda agent: agent.id)}


def _dated(agent: AgentSpec, now_ms: int) -> AgentSpec:
    return agent if agent.created_at_ms is not None else replace(agent, created_at_ms=now_ms)


def _default(agents: Mapping[str, AgentSpec], name: str | None) -> str | None:
    if name is None:
        return next((agent.id for agent in agents.values() if agent.default), None)
    found = next((agent.id for agent in agents.values() if agent.id.lower() == name.lower()), None)
    if found is None:
        raise ConfigInvalid(f"the default agent {describe(name)} is not there", hint=_known(agents))
    return found


def _values(configuration: Configuration, environ: Mapping[str, str], variables: frozenset[str]) -> Iterator[str]:
    """Yield secrets: every token, and of the others those that are long enough to be one."""
    yield from secret_values(configuration)
    others = [environ.get(name, "") for name in variables]
    for agent in configuration.agents.values():
        webhook = agent.hitl.webhook if agent.hitl is not None else None
        if webhook is not None:
            others += [webhook.url.reveal(), *(value.reveal() for _, value in webhook.headers)]
        for server in agent.mcp:
            if isinstance(server.target, HttpTarget):
                others += [value.reveal() for _, value in server.target.headers]
    yield from (value for value in others if len(value) >= limits.MCP_SECRET_MIN_CHARS)


def _late(agents: Mapping[str, AgentSpec], inactivity_timeout_ms: int) -> Iterator[str]:
    """Yield a warning for each agent whose approvals a silent request does not live to see (gateway.md 1.2)."""
    for agent in agents.values():
        if agent.hitl is not None and 0 < inactivity_timeout_ms <= agent.hitl.timeout_ms:
            yield (
                f"{agent.source}: hitl.route.timeout_secs: {describe(agent.id)} waits {agent.hitl.timeout_ms} ms for an"
                f" approval, and a silent request ends after {inactivity_timeout_ms} ms"
            )


def _known(agents: Mapping[str, AgentSpec]) -> str:
    visible = [agent.id for agent in agents.values() if not agent.hidden]
    more = ", …" if len(visible) > _SHOWN_COUNT else ""
    return f"Agents here: {', '.join(visible[:_SHOWN_COUNT]) or 'hidden ones only'}{more}."
