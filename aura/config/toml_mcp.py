"""`[mcp.servers.<name>]` of a TOML file to `McpServerSpec` (gateway.md 1.6). It starts and contacts no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aura import limits
from aura.config.expansion import NEVER_SECRET
from aura.config.headers import HEADER_NAME, find_header_problem, lower_names, lower_pairs
from aura.config.interpolation import as_written, inserted_variables
from aura.config.mcp import ENV_NAME, NAME_PATTERN, find_nul_problem, find_server_address_problem
from aura.config.readers import Choice, SecretTexts, Text, Texts, Whole
from aura.config.schema import Later, Place, Settings, Table, read_entries, read_settings
from aura.config.spec import HttpTarget, McpServerSpec, Secret, StdioTarget
from aura.config.yaml_text import Tree

_TRANSPORT = Choice(("stdio", "http_streamable", "sse"))
_COMMON: Table = {"transport": _TRANSPORT, "description": Text(), "scratchpad": Later("the scratchpad is")}
_STDIO: Table = {
    **_COMMON,
    "cmd": Texts("my-server", secret=True),
    "args": Texts("--stdio", blank=True, secret=True),
    "env": SecretTexts("variables", ENV_NAME, 'API_TOKEN: "{{ env.API_TOKEN }}"'),
}
_HTTP: Table = {
    **_COMMON,
    "url": Text("an address such as http://127.0.0.1:9000/mcp", secret=True),
    "headers": SecretTexts("header names", HEADER_NAME, 'authorization: "Bearer {{ env.API_TOKEN }}"'),
    "headers_from_request": SecretTexts("header names", HEADER_NAME, 'authorization: "x-user-authorization"'),
    "connect_timeout_secs": Whole(1, limits.MCP_TIMEOUT_MAX_MS // 1000, "seconds"),
}
TOML_MCP_TABLES: Mapping[str, Table] = {"stdio": _STDIO, "http_streamable": _HTTP, "sse": _HTTP}


def build_servers(tree: Tree, place: Place) -> tuple[McpServerSpec, ...]:
    """Return the servers of the table `tree`, which stands at `place`, by name.

    Raises `ConfigInvalid` for a bad name, key or value, a missing key, and two names that differ in their case only.
    """
    found: dict[str, McpServerSpec] = {}
    for name, entry in read_entries(tree, place, "MCP servers").items():
        where = Place(place.path, 0, f"{place.key}.{name}")
        lower = name.lower()
        if not NAME_PATTERN.fullmatch(lower) or len(lower) > limits.CONFIG_NAME_MAX_CHARS:
            hint = "Use letters, digits, dashes and single underscores between them."
            raise where.error("this is no name for an MCP server", hint=hint)
        if lower in found:
            raise where.error("there is a server of this name already", hint="Rename one of the two.")
        found[lower] = _server(lower, entry, where)
    return tuple(found[name] for name in sorted(found))


def _server(name: str, entry: Tree, place: Place) -> McpServerSpec:
    entries = read_entries(entry, place, 'values, such as transport = "stdio"')
    if "transport" not in entries:
        raise place.error("the key transport is missing", hint=f"Use {_TRANSPORT.accepts}.")
    alone = read_settings(Tree({"transport": entries["transport"]}, 0), {"transport": _TRANSPORT}, place)
    transport = alone.get("transport", "")
    settings = read_settings(entry, TOML_MCP_TABLES[transport], place)
    headers = settings.texts_by_name("headers")
    return McpServerSpec(
        name=name,
        source=place.path,
        target=_stdio(settings, place) if transport == "stdio" else _http(settings, place, transport == "sse"),
        written=_written(transport, settings),
        timeout_ms=settings.get("connect_timeout_secs", limits.MCP_TIMEOUT_MS // 1000) * 1000,
        secrets=tuple(Secret(value) for value in sorted(_secret_values(settings))),
        secret_variables=tuple(name for name in inserted_variables(headers.values()) if name not in NEVER_SECRET),
        description=settings.get("description", ""),
    )


def _stdio(settings: Settings, place: Place) -> StdioTarget:
    command = settings.texts("cmd")
    if not command:
        raise settings.place("cmd", place).error("the key cmd is missing or empty", hint="Name the program to start.")
    texts = [(key, text) for key in ("cmd", "args") for text in settings.texts(key)]
    parts = [_checked(text, settings.place(key, place), find_nul_problem) for key, text in texts]
    env_place = settings.place("env", place)
    env = settings.texts_by_name("env").items()
    return StdioTarget(
        command=parts[0],
        args=tuple(parts[1:]),
        env=tuple((name, _checked(text, env_place, find_nul_problem)) for name, text in env),
    )


def _http(settings: Settings, place: Place, legacy_sse: bool) -> HttpTarget:
    url = settings.get("url", "")
    url_place = settings.place("url", place)
    if not url:
        raise url_place.error(
            "the key url is missing or empty", hint="Use an address such as http://127.0.0.1:9000/mcp."
        )
    headers, headers_place = settings.texts_by_name("headers"), settings.place("headers", place)
    names = lower_names(headers, headers_place)
    return HttpTarget(
        url=_checked(url, url_place, find_server_address_problem),
        headers=tuple(
            (name, _checked(text, headers_place, find_header_problem))
            for name, text in zip(names, headers.values(), strict=True)
        ),
        headers_from_request=lower_pairs(
            settings.texts_by_name("headers_from_request"), settings.place("headers_from_request", place)
        ),
        legacy_sse=legacy_sse,
    )


def _checked(text: str, place: Place, find_problem: Callable[[str], str | None]) -> Secret:
    problem = find_problem(text)
    if problem is not None:
        raise place.error(problem)
    return Secret(str(text))


def _written(transport: str, settings: Settings) -> tuple[str, ...]:
    if transport == "stdio":
        command = map(as_written, settings.texts("cmd") + settings.texts("args"))
        return (transport, *command, *settings.texts_by_name("env"))
    url = as_written(settings.get("url", "")).partition("?")[0]
    pairs = settings.texts_by_name("headers_from_request")
    taken = tuple(f"{name}={as_written(text)}" for name, text in pairs.items())
    return (transport, url, *settings.texts_by_name("headers"), *taken)


def _secret_values(settings: Settings) -> set[str]:
    whole = [*settings.texts_by_name("env").values(), *settings.texts_by_name("headers").values()]
    texts = [*settings.texts("cmd"), *settings.texts("args"), settings.get("url", ""), *whole]
    return {str(text) for text in whole} | set(inserted_variables(texts).values())
