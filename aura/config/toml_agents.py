"""Agents in TOML files, in the layout of gateway.md section 1: one agent a file, complete in itself.

Orchestration, skills, the scratchpad, vector stores and parking come later: each has its `Later` in a table here, in
`toml_llm`, `toml_mcp` or `hitl`, which becomes a table when the feature comes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from aura import limits
from aura.config.agents import NAME
from aura.config.expansion import toml_expand
from aura.config.files import read_text
from aura.config.fingerprint import with_fingerprint
from aura.config.headless import HEADLESS_TABLE, build_headless
from aura.config.hitl import HITL_TABLE, build_hitl
from aura.config.interpolation import interpolate
from aura.config.readers import Flag, Found, Globs, LenientFlag, Text, Texts, Unacceptable, Whole, describe
from aura.config.schema import Later, Place, Settings, Table, read_settings
from aura.config.spec import AgentSpec, SharedSpec, ToolsSpec
from aura.config.toml_llm import build_model
from aura.config.toml_mcp import build_servers
from aura.config.toml_text import parse_toml
from aura.config.yaml_text import Tree
from aura.errors import ConfigInvalid

_MCP_TOOLS = "mcp__*"  # what the tools of servers are called; those of the program are not
_CREATED_MAX_MS = 253_402_300_799_999  # the last millisecond of the year 9999


@dataclass(frozen=True, slots=True)
class _NoTools:
    """False, or an empty list: a key of old files that may only say that there are no such tools."""

    accepts: str = "false, or [] (the program's own tools are enabled by builtin)"

    def read(self, value: Found) -> bool:
        if value is False or value == ():
            return False
        raise Unacceptable(f"found {describe(value)}")


AGENT_TABLE: Table = {
    "name": NAME,
    "alias": NAME,
    "description": Text(),
    "system_prompt": Text(),
    "context": Texts("You work at night.", blank=True),
    "turn_depth": Whole(0, limits.MAX_STEPS_MAX_COUNT - 1, "tool turns of one run", spelled=True),
    "created_at": Whole(0, _CREATED_MAX_MS, "milliseconds since 1970"),
    "model_owner": NAME,
    "mcp_filter": Globs(),
    "enable_client_tools": Flag(),
    "client_tool_filter": Globs(),
    "hidden": LenientFlag(),
    "nudge_last_turn": Later("reminding of the turns that are left is"),
    "nudge_turns_remaining": Later("reminding of the turns that are left is"),
    "skills": Later("skills are"),
    "scratchpad": Later("the scratchpad is"),
    "llm": {},  # taken out before the table is used, as mcp.servers is: their keys depend on their values
}
ROOT_TABLE: Table = {
    "memory_dir": Text("the path of a directory"),
    "agent": AGENT_TABLE,
    "mcp": {"sanitize_schemas": Flag(), "servers": {}},
    "tools": {"builtin": Globs("Read"), "filesystem": _NoTools(), "custom_tools": _NoTools()},
    "hitl": HITL_TABLE,
    "headless": HEADLESS_TABLE,
    "vector_stores": Later("vector stores are"),
    "orchestration": Later("orchestration is"),
}
_OLD_LAYOUT = "this is the old layout: a model belongs to its agent"


@dataclass(frozen=True, slots=True)
class TomlAgents:
    """The agents of TOML files, in the order of their paths. `notices` says, one line each, what has no effect yet."""

    agents: tuple[AgentSpec, ...] = ()
    notices: tuple[str, ...] = ()


def read_toml_agents(path: Path, environ: Mapping[str, str], shared: SharedSpec | None = None) -> TomlAgents:
    """Return the agents of the file `path`, or of all `*.toml` of the directory `path`.

    `environ` gives the variables. `shared` is what the features of the homes say: approvals and liveness where the file
    has none of its own, and limits of tools. Reads files only; any thread may call it.

    Raises `ConfigInvalid` naming file, key and what is accepted for anything that cannot be used; in one error all
    variables of all files that are not set.
    """
    paths = _find_files(path)
    trees = interpolate([(one, parse_toml(read_text(one), one)) for one in paths], environ)
    notices: list[str] = []
    agents = [_build(tree, one, shared or SharedSpec(), notices) for one, tree in zip(paths, trees, strict=True)]
    _check_names(agents)
    return TomlAgents(tuple(agents), tuple(notices))


def _find_files(path: Path) -> list[Path]:
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        return [path]
    try:
        found = sorted(one for one in path.iterdir() if one.suffix == ".toml" and not one.name.startswith("."))
    except OSError as error:
        raise ConfigInvalid(f"{path}: cannot be listed: {error.strerror}") from error
    if not found:
        raise ConfigInvalid(f"{path}: there is no *.toml", hint="Add an agent's file, such as main.toml.")
    if len(found) > limits.CONFIG_FILES_MAX_COUNT:
        raise ConfigInvalid(f"{path} holds more than {limits.CONFIG_FILES_MAX_COUNT} files")
    return found


def _build(tree: Tree, path: Path, shared: SharedSpec, notices: list[str]) -> AgentSpec:
    whole = Place(path, 0)
    if isinstance(tree.value, Mapping) and "llm" in tree.value:
        raise Place(path, 0, "llm").error(_OLD_LAYOUT, hint="Move the table [llm] to [agent.llm].")
    tree, llm = _take(tree, "agent", "llm")
    tree, servers = _take(tree, "mcp", "servers")
    settings = read_settings(tree, ROOT_TABLE, whole)
    name, prompt = (_required(settings, f"agent.{key}", whole) for key in ("name", "system_prompt"))
    alias = str(settings.get("agent.alias", ""))
    mcp = build_servers(servers, Place(path, 0, "mcp.servers"))
    hitl = build_hitl(settings, "hitl", whole, toml_expand, [server.name for server in mcp])
    own_headless = any(key.startswith("headless.") for key in settings.items)
    notices += _notices(settings)
    return with_fingerprint(
        AgentSpec(
            name=name,
            alias=alias,
            prompt="\n\n".join([prompt, *settings.texts("agent.context")]),
            prompt_is_template=False,
            model=build_model(llm, Place(path, 0, "agent.llm"), alias or name),
            source=path,
            prompt_source=path,
            home=path.parent,
            description=str(settings.get("agent.description", "")),
            hidden=settings.get("agent.hidden", False),
            tools=_tools(settings, shared.tools),
            mcp=mcp,
            mcp_filter=settings.texts("agent.mcp_filter") if "agent.mcp_filter" in settings.items else None,
            hitl=shared.hitl if hitl is None else hitl,
            headless=build_headless(settings, "headless") if own_headless else shared.headless,
            owner=str(settings.get("agent.model_owner", "")),
            created_at_ms=settings.find("agent.created_at", int),
            client_tools=settings.get("agent.enable_client_tools", False),
            client_tool_filter=settings.texts("agent.client_tool_filter"),
        )
    )


def _take(tree: Tree, section: str, key: str) -> tuple[Tree, Tree]:
    """Return the tree without the value at `section.key`, and that value, an empty mapping where there is none."""
    root = tree.value
    inner = root[section].value if isinstance(root, Mapping) and section in root else None
    if not isinstance(root, Mapping) or not isinstance(inner, Mapping) or key not in inner:
        return tree, Tree({}, 0)
    rest = {name: value for name, value in inner.items() if name != key}
    return Tree({**root, section: Tree(rest, 0)}, 0), inner[key]


def _required(settings: Settings, key: str, whole: Place) -> str:
    value = settings.find(key, str)
    if value is None:
        raise whole.error(f"the key {key} is missing", hint="An agent needs a name and a system_prompt in [agent].")
    return str(value)


def _tools(settings: Settings, shared: ToolsSpec) -> ToolsSpec:
    """Return the tools: those of servers, and of the program's own only what `builtin` names.

    The last tool turn is followed by one more model call, the answer: so many calls are `turn_depth` tool turns.
    """
    return replace(
        shared,
        enabled=(_MCP_TOOLS, *settings.texts("tools.builtin")),
        max_steps=settings.get("agent.turn_depth", limits.TURN_DEPTH_DEFAULT_COUNT) + 1,
    )


def _notices(settings: Settings) -> list[str]:
    found = []
    if "memory_dir" in settings.items:
        found.append(f"{settings.items['memory_dir'].place}: nothing is kept there yet")
    if settings.get("mcp.sanitize_schemas", False):
        place = settings.items["mcp.sanitize_schemas"].place
        found.append(f"{place}: schemas are not repaired yet; providers get them as the servers give them")
    return found


def _check_names(agents: list[AgentSpec]) -> None:
    """Raise `ConfigInvalid` for two agents with one name or alias. Ids are compared in `gateway`, with the homes'."""
    for key in ("name", "alias"):
        first: dict[str, AgentSpec] = {}
        for agent in agents:
            text = agent.alias if key == "alias" else agent.name
            if not text:
                continue
            other = first.setdefault(text.lower(), agent)
            if other is not agent:
                place = Place(agent.source, 0, f"agent.{key}")
                raise place.error(f"{other.source} has an agent of this {key} already", hint="Rename one of the two.")
