"""Provider files: `config/providers/**.yaml` to `ProviderSpec` (engine.md 1.7, interfaces.md 5 and 6).

It contacts no provider and does not look into a script: that is the script provider's own work at start-up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aura import limits
from aura.config.addresses import find_address_problem
from aura.config.files import YAML_SUFFIXES, list_files, read_text
from aura.config.readers import Choice, Duration, Text, Texts, Whole
from aura.config.schema import Later, Place, Settings, Table, read_entries, read_settings
from aura.config.spec import PROVIDER_TYPES, NamesSpec, ProviderSpec, ProviderType, RetrySpec, Secret
from aura.config.yaml_text import Tree, parse_yaml

NAME_PATTERN = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{limits.CONFIG_NAME_MAX_CHARS - 1}}}")
_TYPES_LATER = ("anthropic", "google", "copilot", "codex")
_TYPE = Choice(PROVIDER_TYPES, later=_TYPES_LATER)
URL_DEFAULTS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://localhost:11434",
}
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")

_COMMON: Table = {
    "type": _TYPE,
    "models": {"include": Texts("qwen*"), "exclude": Texts("qwen*")},
    "retry": {
        "max_attempts": Whole(0, limits.RETRY_ATTEMPTS_MAX_COUNT),
        "base_delay": Duration(1, limits.RETRY_DELAY_MAX_MS),
        "max_delay": Duration(1, limits.RETRY_DELAY_MAX_MS),
    },
    "capabilities": Later("capabilities are"),
    "keep_alive": Later("keep_alive is"),
}
_SCRIPT: Table = {**_COMMON, "file": Text("the path of the script file, relative to the config home")}
_HTTP: Table = {
    **_COMMON,
    "url": Text("an address such as http://127.0.0.1:8080"),
    "token": Text("a token, or a variable such as ${LOCAL_TOKEN}", secret=True),
    "timeout": Duration(1, limits.PROVIDER_TIMEOUT_MAX_MS),
}


@dataclass(frozen=True, slots=True)
class RawProvider:
    """One provider as its file has it: checked key by key, not yet resolved. `home` is the config home of the file."""

    name: str
    type: ProviderType
    home: Path
    place: Place
    settings: Settings


def read_providers(home: Path) -> dict[str, RawProvider]:
    """Return the providers of one home by lower-cased name.

    Raises `ConfigInvalid` for a bad file, key or value, and for two providers with one name.
    """
    found: dict[str, RawProvider] = {}
    for path in list_files(home, "providers", YAML_SUFFIXES):
        for provider in _read_file(path, home):
            first = found.setdefault(provider.name, provider)
            if first is not provider:
                problem = f"{first.place.path}:{first.place.line} has a provider of this name already"
                raise provider.place.error(problem, hint="Rename one of the two.")
    return found


def resolve_provider(raw: RawProvider, environ: Mapping[str, str]) -> tuple[ProviderSpec, list[str]]:
    """Return the complete provider, with its token from `environ`, and notices.

    A `token` that names a variable which is not set or empty counts as missing: the token then comes from
    `AURA_PROVIDERS_<NAME>_TOKEN`, and if that is not set either, there is none, which is a notice and no error.

    Raises `ConfigInvalid` for a missing or unusable `url` or `file`, and for a token that no header can carry.
    """
    settings = raw.settings
    token, variables, notices = _token(raw, environ)
    spec = ProviderSpec(
        name=raw.name,
        type=raw.type,
        source=raw.place.path,
        url=_url(raw),
        token=token,
        file=_script(raw) if raw.type == "script" else None,
        timeout_ms=settings.get("timeout", limits.PROVIDER_TIMEOUT_MS),
        retry=_retry(raw),
        models=NamesSpec(settings.texts("models.include"), settings.texts("models.exclude")),
        token_variables=variables,
    )
    return spec, notices


def _read_file(path: Path, home: Path) -> list[RawProvider]:
    tree = parse_yaml(read_text(path), path)
    entries = read_entries(tree, Place(path, tree.line), "providers")
    return [_read_entry(name, entry, path, home) for name, entry in entries.items()]


def _read_entry(name: str, entry: Tree, path: Path, home: Path) -> RawProvider:
    place = Place(path, entry.line, name)
    if not NAME_PATTERN.fullmatch(name):
        hint = f"Use at most {limits.CONFIG_NAME_MAX_CHARS} letters, digits, dots, dashes and underscores."
        raise place.error("this is no name for a provider", hint=hint)
    kind = _read_type(entry, place)
    settings = read_settings(entry, _SCRIPT if kind == "script" else _HTTP, place)
    return RawProvider(name.lower(), kind, home, place, settings)


def _read_type(entry: Tree, place: Place) -> ProviderType:
    """Return the type alone, because it decides which other keys there are."""
    entries = read_entries(entry, place, "values, such as type: llamacpp")
    if "type" not in entries or entries["type"].value is None:
        raise place.error("the key type is missing", hint=f"Use {_TYPE.accepts}.")
    settings = read_settings(Tree({"type": entries["type"]}, entry.line), {"type": _TYPE}, place)
    return cast(ProviderType, settings.find("type", str))


def _url(raw: RawProvider) -> str:
    if raw.type == "script":
        return ""
    text = raw.settings.get("url", URL_DEFAULTS.get(raw.type, ""))
    place = raw.settings.place("url", raw.place)
    hint = "Use an address such as http://127.0.0.1:8080."
    if not text:
        raise raw.place.error(f"the key url is missing, which a provider of type {raw.type} needs", hint=hint)
    problem = find_address_problem(text)
    if problem:
        raise place.error(problem, hint=hint)
    return text.rstrip("/")


def _script(raw: RawProvider) -> Path:
    text = raw.settings.get("file", "")
    hint = f"Use the path of a script file, relative to {raw.home}."
    if not text:
        raise raw.place.error("the key file is missing, which a provider of type script needs", hint=hint)
    place = raw.settings.place("file", raw.place)
    if "\0" in text:
        raise place.error("the path holds a NUL character", hint=hint)
    path = raw.home / text
    if not path.is_file():
        raise place.error(f"there is no file {path}", hint=hint)
    return path


def _retry(raw: RawProvider) -> RetrySpec:
    settings, default = raw.settings, RetrySpec()
    base_ms = settings.get("retry.base_delay", default.base_delay_ms)
    max_ms = settings.get("retry.max_delay", max(default.max_delay_ms, base_ms))
    if max_ms < base_ms:
        problem = f"found {max_ms}ms, which is less than retry.base_delay with {base_ms}ms"
        raise settings.place("retry.max_delay", raw.place).error(problem, hint="Make it at least as long.")
    return RetrySpec(settings.get("retry.max_attempts", default.max_attempts), base_ms, max_ms)


def _token(raw: RawProvider, environ: Mapping[str, str]) -> tuple[Secret | None, tuple[str, ...], list[str]]:
    if raw.type == "script":
        return None, (), []
    text = raw.settings.get("token", "")
    named = [braced or bare for braced, bare in _VARIABLE.findall(text)]
    fallback = f"AURA_PROVIDERS_{re.sub('[^A-Z0-9]', '_', raw.name.upper())}_TOKEN"
    variables = tuple(dict.fromkeys([*named, fallback]))
    unset = [name for name in named if not environ.get(name)]
    expanded = "" if unset else _VARIABLE.sub(lambda match: environ[match[1] or match[2]], text)
    token = (expanded or environ.get(fallback, "")).strip()
    place = raw.settings.place("token", raw.place)
    if not token.isascii() or not token.isprintable():
        raise place.error(
            "the token holds characters that an HTTP header cannot carry", hint="Use visible ASCII characters."
        )
    if token:
        return Secret(token), variables, []
    notices = []
    if unset:
        names = " and ".join(dict.fromkeys(unset))
        notices.append(f"{place}: {names} is not set, so no token is sent")
    return None, variables, notices
