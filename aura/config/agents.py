"""Agent files: `config/agents/**.md` to `RawAgent`, and inheritance between them (engine.md 1.3 and 1.5).

A raw agent is what somebody wrote, checked key by key. Links to providers and defaults are added in `build.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from aura import limits
from aura.config.features import FEATURES_TABLE, POLICY_TABLE
from aura.config.files import MARKDOWN_SUFFIXES, list_files
from aura.config.markdown import read_markdown
from aura.config.readers import Choice, Flag, Number, Text, Texts, Whole, describe
from aura.config.schema import Later, Place, Settings, Table, overlay, read_settings
from aura.config.spec import THINK_LEVELS

_NAME_MAX = limits.CONFIG_NAME_MAX_CHARS
_ONE_LINE = re.compile(r"\S(?:[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\S)?")
NAME = Text(f"one line of at most {_NAME_MAX} characters", re.compile(rf"(?=.{{1,{_NAME_MAX}}}\Z){_ONE_LINE.pattern}"))
MODEL = Text("the name of a model, on one line", _ONE_LINE)
CONTEXT = Whole(1, limits.CONTEXT_MAX_TOKENS, "tokens")
THINK = Choice(THINK_LEVELS, booleans={True: "on", False: "off"})

_GENERATION: Table = {
    "temperature": Number(0, 5),
    "top_p": Number(0, 1),
    "frequency_penalty": Number(-2, 2),
    "presence_penalty": Number(-2, 2),
    "max_output_tokens": Whole(1, limits.CONTEXT_MAX_TOKENS, "tokens"),
    "stop": Texts("END"),
    "seed": Whole(-(2**63), 2**63 - 1),
    "top_k": Later("top_k is"),
    "think_budget": Later("think_budget is"),
}
AGENT_TABLE: Table = {
    "name": NAME,
    "description": Text(),
    "inherit": Texts("Base"),
    "model": {
        "provider": Text("the name of a provider", _ONE_LINE),
        "name": MODEL,
        "context": CONTEXT,
        "think": THINK,
        "generation": _GENERATION,
    },
    "tools": {"enabled": Texts("*"), "disabled": Texts("Bash"), "policy": POLICY_TABLE},
    "features": FEATURES_TABLE,
    "hide": Flag(),
    "default": Flag(),
    "response_format": Later("response formats are"),
    "thinking": Later("handling earlier thinking is"),
    "hooks": Later("hooks are"),
    "system": Later("system prompts of their own are"),
    "mode": Later("modes are"),
    "subagent": Later("sub-agents are"),
    "agentsmd": Later("AGENTS.md is"),
    "fallback": Later("failover is"),
    "files": Later("loading files into the prompt is"),
}
_OWN_KEYS = frozenset({"name", "inherit", "default", "hide"})  # a hidden base must not hide its children


@dataclass(frozen=True, slots=True)
class RawAgent:
    """One agent as its files have it. `home` is the config home of its file, `place` its first line.

    `body_path` is the file that `body` stands in: a parent's, where the agent has no body of its own.
    """

    name: str
    home: Path
    place: Place
    settings: Settings
    body: str
    body_path: Path


def read_agents(home: Path) -> dict[str, RawAgent]:
    """Return the agents of one home by lower-cased name.

    Raises `ConfigInvalid` for a bad file, key or value, and for two agents with one name.
    """
    found: dict[str, RawAgent] = {}
    for path in list_files(home, "agents", MARKDOWN_SUFFIXES):
        agent = _read_file(path, home)
        first = found.setdefault(agent.name.lower(), agent)
        if first is not agent:
            problem = f"{first.place.path} has an agent named {first.name} already"
            raise agent.settings.place("name", agent.place).error(problem, hint="Rename one of the two.")
    return found


def inherit(agents: Mapping[str, RawAgent]) -> dict[str, RawAgent]:
    """Return the agents, by the same lower-cased names, with what they inherit.

    Parents are laid over one another from left to right, the agent over them: a key that is set wins, lists whole. An
    empty body is that of the first parent with one. `name`, `inherit`, `default` and `hide` are not inherited.

    Raises `ConfigInvalid` for an unknown parent and for agents that inherit from each other in a circle.
    """
    parents = {key: _parents(agent, agents) for key, agent in agents.items()}
    try:
        order = list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        agent = agents[circle[0]]
        shown = " → ".join(agents[key].name for key in circle)
        raise agent.settings.place("inherit", agent.place).error(
            f"agents inherit from each other in a circle: {shown}", hint="Take one of them out of inherit."
        ) from None
    merged: dict[str, RawAgent] = {}
    for key in order:
        merged[key] = _merge(agents[key], [merged[parent] for parent in parents[key]])
    return {key: merged[key] for key in agents}


def _read_file(path: Path, home: Path) -> RawAgent:
    file = read_markdown(path)
    place = Place(path, file.frontmatter.line)
    settings = read_settings(file.frontmatter, AGENT_TABLE, place)
    name = settings.find("name", str)
    if name is None:
        raise place.error("the key name is missing", hint="Add a line such as name: main.")
    return RawAgent(name, home, place, settings, file.body, path)


def _parents(agent: RawAgent, agents: Mapping[str, RawAgent]) -> list[str]:
    keys = [name.lower() for name in agent.settings.texts("inherit")]
    for key in keys:
        if key not in agents:
            known = ", ".join(sorted(other.name for other in agents.values() if other is not agent)) or "none"
            place = agent.settings.place("inherit", agent.place)
            raise place.error(f"there is no agent named {describe(key)}", hint=f"Other agents here: {known}.")
    return keys


def _merge(agent: RawAgent, parents: list[RawAgent]) -> RawAgent:
    inherited = overlay(parent.settings for parent in parents).items.items()
    from_parents = Settings({key: setting for key, setting in inherited if key not in _OWN_KEYS})
    body_from = next((one for one in (agent, *parents) if one.body), agent)
    return replace(
        agent,
        settings=overlay([from_parents, agent.settings]),
        body=body_from.body,
        body_path=body_from.body_path,
    )
