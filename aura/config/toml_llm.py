"""`[agent.llm]` of a TOML file: the model, and a provider of the agent's own (gateway.md 1.5).

It contacts no provider. Anthropic, bedrock and gemini come later; their place is `_TABLES`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from aura import limits
from aura.config.addresses import find_address_problem
from aura.config.agents import CONTEXT, MODEL
from aura.config.expansion import NEVER_SECRET
from aura.config.interpolation import as_written, inserted_variables
from aura.config.providers import URL_DEFAULTS
from aura.config.readers import Choice, Number, Text, Whole, describe
from aura.config.schema import Later, Place, Settings, Table, read_entries, read_settings
from aura.config.spec import GenerationSpec, ModelSpec, ParamsSpec, ProviderSpec, ProviderType, Secret
from aura.config.yaml_text import Tree
from aura.jsontypes import JsonValue
from aura.wire import canonical

_PROVIDERS: tuple[ProviderType, ...] = ("openai", "openrouter", "ollama", "script")
_PROVIDER = Choice(_PROVIDERS, later=("anthropic", "bedrock", "gemini"))
_MODEL_DEFAULTS: Mapping[str, str] = {"openai": "gpt-4o", "script": "scripted"}
# Of a request's body, what the program itself needs to be as it is.
_OWN_PARAMS = frozenset(("model", "messages", "stream", "stream_options", "tools"))

_COMMON: Table = {
    "provider": _PROVIDER,
    "model": MODEL,
    "max_tokens": Whole(1, limits.CONTEXT_MAX_TOKENS, "tokens"),
    "context_window": CONTEXT,
    "temperature": Number(0, 5),
}
_HTTP: Table = {
    **_COMMON,
    "api_key": Text('a key, such as "{{ env.OPENAI_API_KEY }}"', secret=True),
    "base_url": Text("an address such as http://127.0.0.1:8080/v1"),
    "additional_params": {},  # taken out before the table is used: its keys are the provider's
}
LLM_TABLES: Mapping[str, Table] = {
    "openai": {**_HTTP, "reasoning_effort": Choice(("none", "minimal", "low", "medium", "high", "xhigh"))},
    "openrouter": _HTTP,
    "ollama": {**_HTTP, "fallback_tool_parsing": Later("parsing tool calls out of text is")},
    "script": {**_COMMON, "file": Text("the path of the script file, relative to this file")},
}


def build_model(tree: Tree, place: Place, agent_id: str) -> ModelSpec:
    """Return the model that `[agent.llm]` describes, which stands at `place`. Without any key it is openai's gpt-4o.

    Raises `ConfigInvalid` for a key or value that cannot be used, a missing key or file, and a provider of a later
    version.
    """
    entries = read_entries(tree, place, 'values, such as provider = "openai"')
    named = {"provider": entries["provider"]} if "provider" in entries else {}
    kind = cast(ProviderType, read_settings(Tree(named, 0), {"provider": _PROVIDER}, place).get("provider", "openai"))
    params = entries.get("additional_params") if kind != "script" else None
    rest = {name: entry for name, entry in entries.items() if entry is not params}
    settings = read_settings(Tree(rest, 0), LLM_TABLES[kind], place)
    name = settings.get("model", _MODEL_DEFAULTS.get(kind, ""))
    if not name:
        raise place.error("the key model is missing", hint=f"Name a model of {kind}.")
    return ModelSpec(
        provider=_provider(kind, settings, params, place, agent_id),
        name=str(name),
        context=settings.find("context_window", int),
        generation=GenerationSpec(
            temperature=settings.find("temperature", float),
            max_output_tokens=settings.find("max_tokens", int),
            reasoning_effort=settings.find("reasoning_effort", str),
            additional=_params(params, Place(place.path, 0, f"{place.key}.additional_params")) if params else None,
        ),
    )


def _provider(kind: ProviderType, settings: Settings, params: Tree | None, place: Place, agent_id: str) -> ProviderSpec:
    key = settings.get("api_key", "")
    variables = inserted_variables([key, *(_texts(params) if params else ())])
    return ProviderSpec(
        name=f"{kind}@{agent_id}".lower(),
        type=kind,
        source=place.path,
        url=_url(kind, settings, place),
        token=_token(kind, key, settings.place("api_key", place)),
        file=_script(settings, place) if kind == "script" else None,
        token_variables=tuple(name for name in variables if name not in NEVER_SECRET),
        shown_name=kind,
    )


def _token(kind: str, key: str, place: Place) -> Secret | None:
    token = key.strip()
    if not token and kind in ("openai", "openrouter"):
        hint = 'Use a key such as "{{ env.OPENAI_API_KEY }}"; a server that needs none takes any text.'
        raise place.error("the key api_key is missing or empty", hint=hint)
    if not token.isascii() or not token.isprintable():
        raise place.error(
            "the key holds characters that an HTTP header cannot carry", hint="Use visible ASCII characters."
        )
    return Secret(token) if token else None


def _url(kind: str, settings: Settings, place: Place) -> str:
    text = settings.get("base_url", URL_DEFAULTS.get(kind, ""))
    problem = find_address_problem(text, password_key="api_key") if kind != "script" else None
    if problem is not None:
        raise settings.place("base_url", place).error(problem, hint="Use an address such as http://127.0.0.1:8080/v1.")
    return str(text).rstrip("/")


def _script(settings: Settings, place: Place) -> Path:
    text = settings.get("file", "")
    hint = f"Use the path of a script file, relative to {place.path.parent}."
    if not text:
        raise place.error("the key file is missing, which the provider script needs", hint=hint)
    where = settings.place("file", place)
    path = place.path.parent / text
    if not os.path.isfile(path):  # False, too, for what the system takes for no path at all
        raise where.error(f"there is no file {describe(text)}", hint=hint)
    return path


def _params(tree: Tree, place: Place) -> ParamsSpec:
    entries = read_entries(tree, place, "parameters of the provider's request")
    for name in entries:
        if name in _OWN_PARAMS:
            where = Place(place.path, 0, f"{place.key}.{name}")
            raise where.error("aura sets this parameter itself", hint="Leave it out.")
    sent = _json(tree, place, written=False)
    written = _json(tree, place, written=True)
    return ParamsSpec(Secret(canonical.encode(sent).decode()), canonical.encode(written).decode())


def _json(tree: Tree, place: Place, *, written: bool) -> JsonValue:
    value = tree.value
    if isinstance(value, str):
        return as_written(value) if written else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise place.error("found a number that JSON does not have", hint="Use a finite number.")
    if isinstance(value, tuple):
        return [_json(item, place, written=written) for item in value]
    if isinstance(value, Mapping):
        return {
            name: _json(item, Place(place.path, 0, f"{place.key}.{name}"), written=written)
            for name, item in value.items()
        }
    return value


def _texts(tree: Tree) -> Iterator[str]:
    value = tree.value
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
