"""Makes a complete `AgentSpec` of a raw agent: defaults, features of the homes, and the link to its provider."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

from aura.config.agents import RawAgent
from aura.config.expansion import Expand
from aura.config.features import build_tools, choose_servers, sandbox_notice
from aura.config.fingerprint import with_fingerprint
from aura.config.headless import build_headless
from aura.config.hitl import build_hitl
from aura.config.readers import describe
from aura.config.schema import Place, Settings, overlay
from aura.config.spec import AgentSpec, GenerationSpec, McpServerSpec, ModelSpec, ProviderSpec, SharedSpec, Think
from aura.errors import ConfigInvalid

_NO_PROVIDER = "There is no provider; add a file such as config/providers/local.yaml."


def build_agent(
    raw: RawAgent,
    features: Settings,
    providers: Mapping[str, ProviderSpec],
    servers: Mapping[str, McpServerSpec],
    *,
    expand: Expand,
    server_names: Collection[str],
) -> AgentSpec:
    """Return the agent, complete. `raw` has inherited already, `features` are those of all homes.

    `expand` puts variables into what may be secret; `server_names` are those of all servers, disabled ones too. Raises
    `ConfigInvalid` when the agent names no model or provider, one that is not there, or a model that its provider
    leaves out, and for approvals that cannot be asked for.
    """
    settings = overlay([features.under("features"), raw.settings])
    return with_fingerprint(
        AgentSpec(
            name=raw.name,
            prompt=raw.body,
            model=_model(raw, settings, providers),
            source=raw.place.path,
            prompt_source=raw.body_path,
            home=raw.home,
            description=settings.get("description", ""),
            hidden=settings.get("hide", False),
            default=settings.get("default", False),
            tools=build_tools(settings),
            mcp=choose_servers(settings, servers.values()),
            hitl=build_hitl(settings, "features.hitl", raw.place, expand, server_names),
            headless=build_headless(settings, "features.headless"),
        )
    )


def build_shared(features: Settings, home: Path, expand: Expand, server_names: Collection[str]) -> SharedSpec:
    """Return what the features of all homes, of which `home` is one, say for an agent that does not come from them.

    Raises `ConfigInvalid` for approvals that cannot be asked for.
    """
    settings = features.under("features")
    problem = None
    try:
        sandbox_notice(settings)
    except ConfigInvalid as error:
        problem = error.message
    return SharedSpec(
        tools=build_tools(settings),
        hitl=build_hitl(settings, "features.hitl", Place(home, 0), expand, server_names),
        headless=build_headless(settings, "features.headless"),
        sandbox_problem=problem,
    )


def get_provider(name: str, providers: Mapping[str, ProviderSpec], where: Place | str) -> ProviderSpec:
    """Return the provider of that name, in any case. `where` is the key or flag that names it.

    Raises `ConfigInvalid` listing the known providers.
    """
    provider = providers.get(name.lower())
    if provider is None:
        known = f"Known providers: {', '.join(providers)}." if providers else _NO_PROVIDER
        raise ConfigInvalid(f"{where}: there is no provider named {describe(name)}", hint=known)
    return provider


def check_model(model: ModelSpec, where: Place | str) -> None:
    """Raise `ConfigInvalid` when the provider leaves the model out, by `models` in its file."""
    provider = model.provider
    if provider.models.accept(model.name):
        return
    problem = f"the provider {provider.name} leaves out the model {describe(model.name)}"
    raise ConfigInvalid(f"{where}: {problem}", hint=f"See its key models in {provider.source}.")


def _model(raw: RawAgent, settings: Settings, providers: Mapping[str, ProviderSpec]) -> ModelSpec:
    name = _required(raw, settings, "model.name", "Add a line such as model: {provider: local, name: qwen}.")
    known = f"Known providers: {', '.join(providers)}." if providers else _NO_PROVIDER
    provider_name = _required(raw, settings, "model.provider", known)
    provider = get_provider(provider_name, providers, settings.place("model.provider", raw.place))
    model = ModelSpec(
        provider=provider,
        name=name,
        context=settings.find("model.context", int),
        think=cast("Think | None", settings.find("model.think", str)),
        generation=_generation(settings),
    )
    check_model(model, settings.place("model.name", raw.place))
    return model


def _required(raw: RawAgent, settings: Settings, key: str, hint: str) -> str:
    value = settings.find(key, str)
    if value is None:
        raise raw.place.error(f"the key {key} is missing", hint=hint)
    return value


def _generation(settings: Settings) -> GenerationSpec:
    prefix = "model.generation"
    return GenerationSpec(
        temperature=settings.find(f"{prefix}.temperature", float),
        top_p=settings.find(f"{prefix}.top_p", float),
        frequency_penalty=settings.find(f"{prefix}.frequency_penalty", float),
        presence_penalty=settings.find(f"{prefix}.presence_penalty", float),
        max_output_tokens=settings.find(f"{prefix}.max_output_tokens", int),
        stop=settings.texts(f"{prefix}.stop"),
        seed=settings.find(f"{prefix}.seed", int),
    )
