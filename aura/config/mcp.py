"""MCP server files: `config/mcp/**.yaml` to `McpServerSpec` (engine.md section 9, contract.md: MCP servers).

It starts and contacts no server. What a variable expands to is a secret: no error shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aura import limits
from aura.config.addresses import find_address_problem
from aura.config.expansion import NEVER_SECRET, VARIABLE
from aura.config.files import YAML_SUFFIXES, list_files, read_text
from aura.config.headers import HEADER_NAME, find_header_problem
from aura.config.readers import Choice, Duration, Flag, SecretTexts, Text, Texts
from aura.config.schema import Later, Place, Settings, Table, read_entries, read_settings
from aura.config.spec import HttpTarget, McpServerSpec, Secret, StdioTarget
from aura.config.yaml_text import Tree, parse_yaml

NAME_PATTERN = re.compile(r"[a-z0-9](?:_?[a-z0-9-])*")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE = Choice(("stdio", "http"))

_COMMON: Table = {
    "type": _TYPE,
    "timeout": Duration(1, limits.MCP_TIMEOUT_MAX_MS),
    "disabled": Flag(),
    "required": Flag(),
    "deferred": Later("deferred tools are"),
    "condition": Later("conditions are"),
}
_STDIO: Table = {
    **_COMMON,
    "command": Text("the name or path of a program", secret=True),
    "args": Texts("--stdio", blank=True, secret=True),
    "env": SecretTexts("variables", ENV_NAME, "API_TOKEN: ${API_TOKEN}"),
    "sandbox": Flag(),
}
_HTTP: Table = {
    **_COMMON,
    "url": Text("an address such as http://127.0.0.1:8000/mcp", secret=True),
    "headers": SecretTexts("header names", HEADER_NAME, "Authorization: Bearer ${API_TOKEN}"),
}
MCP_TABLES: Mapping[str, Table] = {"stdio": _STDIO, "http": _HTTP}


@dataclass(frozen=True, slots=True)
class RawServer:
    """One server as its file has it: checked key by key, variables not yet expanded."""

    name: str
    type: str
    place: Place
    settings: Settings

    @property
    def disabled(self) -> bool:
        """True for a server that is not to be used, and of which no variable is looked for."""
        return self.settings.get("disabled", False)


def read_servers(home: Path) -> dict[str, RawServer]:
    """Return the servers of one home by lower-cased name, disabled ones too.

    Raises `ConfigInvalid` for a bad file, key or value, two servers with one name, and `sandbox: true`.
    """
    found: dict[str, RawServer] = {}
    for path in list_files(home, "mcp", YAML_SUFFIXES):
        tree = parse_yaml(read_text(path), path)
        for name, entry in read_entries(tree, Place(path, tree.line), "MCP servers").items():
            server = _read_entry(name, entry, path)
            first = found.setdefault(server.name, server)
            if first is not server:
                problem = f"{first.place.path}:{first.place.line} has a server of this name already"
                raise server.place.error(problem, hint="Rename one of the two.")
    return found


def resolve_server(raw: RawServer, environ: Mapping[str, str]) -> McpServerSpec:
    """Return the complete server, its variables expanded from `environ`.

    Raises `ConfigInvalid` for a missing `command` or `url`, a variable that is not set, and a value that no command
    line or header can carry.
    """
    expand = _Expander(raw, environ)
    target = _stdio(raw, expand) if raw.type == "stdio" else _http(raw, expand)
    settings = raw.settings
    named = _variables(settings.texts_by_name("headers").values())
    return McpServerSpec(
        name=raw.name,
        source=raw.place.path,
        target=target,
        written=_written(raw),
        timeout_ms=settings.get("timeout", limits.MCP_TIMEOUT_MS),
        required=settings.get("required", False),
        secrets=tuple(Secret(value) for value in sorted(expand.secrets)),
        secret_variables=tuple(name for name in named if name not in NEVER_SECRET),
    )


def _read_entry(name: str, entry: Tree, path: Path) -> RawServer:
    place = Place(path, entry.line, name)
    lower = name.lower()
    if not NAME_PATTERN.fullmatch(lower) or len(lower) > limits.CONFIG_NAME_MAX_CHARS:
        hint = "Use letters, digits, dashes and single underscores between them."
        raise place.error("this is no name for an MCP server", hint=hint)
    kind = _read_type(entry, place)
    settings = read_settings(entry, MCP_TABLES[kind], place)
    if settings.get("sandbox", False):
        problem = "the sandbox is asked for, and this version has none"
        raise settings.place("sandbox", place).error(problem, hint="Leave it out to run the server without a sandbox.")
    return RawServer(lower, kind, place, settings)


def _read_type(entry: Tree, place: Place) -> str:
    """Return the type alone, because it decides which other keys there are."""
    entries = read_entries(entry, place, "values, such as command: my-server")
    if "type" not in entries:
        return "stdio"
    settings = read_settings(Tree({"type": entries["type"]}, entry.line), {"type": _TYPE}, place)
    return settings.get("type", "stdio")


class _Expander:
    """Expands the variables of one server and remembers every value that must not be shown."""

    def __init__(self, raw: RawServer, environ: Mapping[str, str]) -> None:
        self._raw = raw
        self._environ = environ
        self.secrets: set[str] = set()

    def text(self, key: str, text: str, find_problem: Callable[[str], str | None], *, secret: bool = False) -> Secret:
        """Return `text` of the key expanded; with `secret`, all of it is one. Raises `ConfigInvalid`."""
        place = self._raw.settings.place(key, self._raw.place)
        for name in _variables([text]):
            if name not in self._environ:
                hint = "Set it, or disable the server with disabled: true."
                raise place.error(f"the variable {name} is not set", hint=hint)
            self.secrets.add(self._environ[name])
        value = VARIABLE.sub(lambda match: self._environ[match[1]], text)
        if secret:
            self.secrets.add(value)
        problem = find_problem(value)
        if problem is not None:
            raise place.error(problem)
        return Secret(value)


def _stdio(raw: RawServer, expand: _Expander) -> StdioTarget:
    settings = raw.settings
    command = expand.text("command", settings.get("command", ""), find_nul_problem)
    if not command.reveal().strip():
        place = settings.place("command", raw.place)
        raise place.error("the key command is missing or empty", hint="Name the program to start.")
    return StdioTarget(
        command=command,
        args=tuple(expand.text("args", text, find_nul_problem) for text in settings.texts("args")),
        env=tuple(
            (name, expand.text("env", text, find_nul_problem, secret=True))
            for name, text in settings.texts_by_name("env").items()
        ),
    )


def _http(raw: RawServer, expand: _Expander) -> HttpTarget:
    settings = raw.settings
    if not settings.get("url", ""):
        raise raw.place.error("the key url is missing", hint="Use an address such as http://127.0.0.1:8000/mcp.")
    return HttpTarget(
        url=expand.text("url", settings.get("url", ""), find_server_address_problem),
        headers=tuple(
            (name, expand.text("headers", text, find_header_problem, secret=True))
            for name, text in settings.texts_by_name("headers").items()
        ),
    )


def _written(raw: RawServer) -> tuple[str, ...]:
    settings = raw.settings
    if raw.type == "stdio":
        return ("stdio", settings.get("command", ""), *settings.texts("args"), *settings.texts_by_name("env"))
    return ("http", settings.get("url", "").partition("?")[0], *settings.texts_by_name("headers"))


def _variables(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for text in texts for name in VARIABLE.findall(text)))


def find_nul_problem(value: str) -> str | None:
    """Say what is wrong with a part of a command line, None when nothing is."""
    return "a value holds a NUL character, which no command line can carry" if "\0" in value else None


def find_server_address_problem(value: str) -> str | None:
    """Say what is wrong with a server's address, None when nothing is."""
    return find_address_problem(value, password_key="headers", query=True)
