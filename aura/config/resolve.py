"""Loads the whole configuration of the homes, and picks an agent out of it (engine.md 1.3, 1.5 and 1.8).

Homes are read in order; of two agents, providers or servers with one name the later home's wins whole, features merge
key by key. Everything that can be checked without contacting anybody is checked here. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from aura.config.agents import CONTEXT, MODEL, THINK, RawAgent, inherit, read_agents
from aura.config.build import build_agent, build_shared, check_model, get_provider
from aura.config.commands import read_commands
from aura.config.expansion import yaml_expand
from aura.config.features import MAX_STEPS, TOKEN_BUDGET, read_features, sandbox_notice
from aura.config.fingerprint import with_fingerprint
from aura.config.homes import Homes
from aura.config.kinds import read_kind_notices
from aura.config.mcp import RawServer, read_servers, resolve_server
from aura.config.prompt import is_template, prompt_variables, render_prompt
from aura.config.providers import RawProvider, read_providers, resolve_provider
from aura.config.readers import Reader, Unacceptable, describe
from aura.config.schema import Settings, overlay
from aura.config.spec import AgentSpec, CommandSpec, Configuration, Think
from aura.errors import ConfigInvalid

V = TypeVar("V", int, str)

_THINK_SPELLINGS: Mapping[str, Think] = {"false": "off", "0": "off", "true": "on", "1": "on"}


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a command line or a resumed session puts over an agent. None leaves the agent's own value.

    `think` is off, on, low, medium or high; false, 0, true and 1 are taken too. `max_steps` counts model calls,
    `token_budget` tokens, 0 for no limit, `context` the tokens of the window.
    """

    provider: str | None = None
    model: str | None = None
    think: str | None = None
    max_steps: int | None = None
    token_budget: int | None = None
    context: int | None = None
    read_before_write: bool | None = None


def load_configuration(homes: Homes, environ: Mapping[str, str]) -> Configuration:
    """Return all agents, providers, MCP servers and commands of the homes, resolved and checked. `environ` gives the
    tokens.

    Reads files only; contacts nobody; any thread may call it. A configuration without agents is returned as such:
    `get_agent` refuses it.

    Raises `ConfigInvalid` naming file, line, key and the accepted values for anything that cannot be used.
    """
    notices = [notice for home in homes.layers for notice in read_kind_notices(home)]
    raw_providers: dict[str, RawProvider] = {}
    raw_agents: dict[str, RawAgent] = {}
    raw_servers: dict[str, RawServer] = {}
    commands: dict[str, CommandSpec] = {}
    for home in homes.layers:
        raw_providers |= read_providers(home)
        raw_agents |= read_agents(home)
        raw_servers |= read_servers(home)
        commands |= read_commands(home)
    features = overlay(read_features(home) for home in homes.layers)

    resolved = {key: resolve_provider(raw, environ) for key, raw in sorted(raw_providers.items())}
    providers = {key: provider for key, (provider, _) in resolved.items()}
    servers = {key: resolve_server(raw, environ) for key, raw in sorted(raw_servers.items()) if not raw.disabled}
    merged = inherit(raw_agents)
    expand = yaml_expand(environ)
    agents = {
        key: build_agent(raw, features, providers, servers, expand=expand, server_names=raw_servers)
        for key, raw in sorted(merged.items())
    }
    _check_one_default(list(merged.values()))
    _check_prompts(agents, homes)

    for agent in agents.values():
        notices += resolved[agent.model.provider.name][1]
    notices += _sandbox_notices(merged, features)
    return Configuration(
        homes,
        agents,
        providers,
        tuple(dict.fromkeys(notices)),
        dict(sorted(commands.items())),
        servers,
        mirror=features.get("mirror.enabled", False),
        shared=build_shared(features, homes.layers[-1], expand, raw_servers),
    )


def find_agent(configuration: Configuration, name: str) -> AgentSpec | None:
    """Return the agent of that name, in any case, hidden ones too; None when there is none."""
    return configuration.agents.get(name.lower())


def get_agent(configuration: Configuration, name: str | None) -> AgentSpec:
    """Return the agent of that name, or for None the default one: `default: true`, else the first visible by name.

    Raises `ConfigInvalid` listing the known agents when there is no such agent.
    """
    agents = configuration.agents.values()
    if name is not None:
        found = find_agent(configuration, name)
    else:
        found = next((agent for agent in agents if agent.default), None)
        found = found or next((agent for agent in agents if not agent.hidden), None)
    if found is not None:
        return found
    visible = ", ".join(agent.name for agent in agents if not agent.hidden)
    problem = f"there is no agent named {describe(name)}" if name is not None else "there is no agent to choose"
    if visible:
        raise ConfigInvalid(problem, hint=f"Known agents: {visible}.")
    if agents and name is None:
        raise ConfigInvalid("every agent is hidden, and none has default: true", hint="Name one with --agent NAME.")
    searched = ", ".join(f"{home}/config/agents" for home in configuration.homes.layers)
    raise ConfigInvalid(problem, hint=f"Add a file such as main.md to one of: {searched}.")


def with_overrides(
    configuration: Configuration, agent: AgentSpec, overrides: Overrides, *, prefix: str = "--"
) -> AgentSpec:
    """Return the agent with the overrides over it and a new fingerprint.

    Raises `ConfigInvalid` for an unknown provider, a model that it leaves out, and a bad value. It names the override,
    with `prefix` before it: the default is for those that are flags.
    """
    model, tools = agent.model, agent.tools
    if overrides.provider is not None:
        model = replace(model, provider=get_provider(overrides.provider, configuration.providers, f"{prefix}provider"))
    if overrides.model is not None:
        model = replace(model, name=_read(MODEL, overrides.model, f"{prefix}model", str))
    if overrides.think is not None:
        think = _THINK_SPELLINGS.get(overrides.think, overrides.think)
        model = replace(model, think=cast(Think, _read(THINK, think, f"{prefix}think", str)))
    if overrides.max_steps is not None:
        tools = replace(tools, max_steps=_read(MAX_STEPS, overrides.max_steps, f"{prefix}max-steps", int))
    if overrides.token_budget is not None:
        tools = replace(tools, token_budget=_read(TOKEN_BUDGET, overrides.token_budget, f"{prefix}token-budget", int))
    if overrides.context is not None:
        model = replace(model, context=_read(CONTEXT, overrides.context, f"{prefix}context", int))
    if overrides.read_before_write is not None:
        tools = replace(tools, read_before_write=overrides.read_before_write)
    check_model(model, f"{prefix}provider" if overrides.model is None else f"{prefix}model")
    return with_fingerprint(replace(agent, model=model, tools=tools))


def secret_values(configuration: Configuration) -> frozenset[str]:
    """Return the text of every provider token, for taking it out of what others may see. Never log the result."""
    tokens = (provider.token for provider in configuration.providers.values())
    return frozenset(token.reveal() for token in tokens if token is not None)


def secret_variables(configuration: Configuration) -> frozenset[str]:
    """Return the names of the environment variables that hold or may hold a secret of a provider, an MCP server or a
    webhook.
    """
    agents = configuration.agents.values()
    providers = (name for provider in configuration.providers.values() for name in provider.token_variables)
    servers = (*configuration.servers.values(), *(server for agent in agents for server in agent.mcp))
    hitl = (agent.hitl for agent in agents if agent.hitl is not None)
    webhooks = (name for one in hitl if one.webhook is not None for name in one.webhook.secret_variables)
    return frozenset((*providers, *webhooks, *(name for server in servers for name in server.secret_variables)))


def _read(reader: Reader, value: str | int, flag: str, kind: type[V]) -> V:
    try:
        read = reader.read(value)
    except Unacceptable as error:
        raise ConfigInvalid(f"{flag}: {error.problem}", hint=f"Use {reader.accepts}.") from None
    if not isinstance(read, kind):
        raise TypeError(f"{flag} is read as {type(read).__name__}, not {kind.__name__}")
    return read


def _check_one_default(agents: Sequence[RawAgent]) -> None:
    marked = [agent for agent in agents if agent.settings.get("default", False)]
    if len(marked) > 1:
        first, second = marked[:2]
        problem = f"{first.name} in {first.place.path} is the default agent already"
        place = second.settings.place("default", second.place)
        raise place.error(problem, hint="Leave default: true in one agent only.")


def _check_prompts(agents: Mapping[str, AgentSpec], homes: Homes) -> None:
    """Render every template once, so that a mistake in one is found now and not in the first run."""
    for agent in agents.values():
        if is_template(agent.prompt):
            render_prompt(agent, prompt_variables(agent, homes, homes.launch_dir))


def _sandbox_notices(agents: Mapping[str, RawAgent], features: Settings) -> list[str]:
    shared = features.under("features")
    found = [sandbox_notice(overlay([shared, raw.settings])) for raw in agents.values()]
    return [notice for notice in found if notice is not None]
