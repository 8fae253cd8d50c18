"""What a session has chosen: its agent and what is put over it, as a value and as the session's meta (engine.md 3.5).

Pure. It makes no agent and contacts nobody: `agents.py` does the first, `current.py` the second.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, fields, replace

from aura.config.resolve import Overrides, find_agent, get_agent, with_overrides
from aura.config.spec import AgentSpec, Configuration
from aura.errors import ConfigInvalid, ResumeFailed
from aura.jsontypes import JsonObject, JsonValue

_NOT_SENT = "false"  # what meta.think says when nothing about reasoning is sent; a chosen "off" is stored as such
_POLICY = "read_before_policy"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which agent a session is served with, None for the default one, and what is put over it.

    `auto`: nobody is asked, and a turn goes on while todos are left. `done`: the agent has the tool Done.
    """

    agent: str | None = None
    overrides: Overrides = field(default_factory=Overrides)
    auto: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What a resumed session goes on with. `notices`: what of the stored could not be used.

    `contact`: the model is another than the agent's or the stored one, so its provider is to be asked first.
    """

    selection: Selection
    notices: tuple[str, ...] = ()
    contact: bool = False


def restore_selection(configuration: Configuration, start: Selection, meta: JsonObject) -> Restored:
    """Return what a session with this `meta` goes on with, when it is started with `start` (engine.md 3.7).

    An agent that `start` names replaces the stored agent, think level and model. Other overrides of `start` win over
    the stored ones. Raises `ResumeFailed` for a stored agent or mode that is not configured, and `ConfigInvalid`.
    """
    stored = _read_overrides(meta)
    if start.agent is not None:
        stored = replace(stored, provider=None, model=None, think=None)
    name = start.agent or _stored_agent(configuration, meta)
    own = get_agent(configuration, name)
    usable, notices = _usable(configuration, own, stored)
    selection = replace(start, agent=own.id, overrides=overlay(usable, start.overrides))
    final = with_overrides(configuration, own, selection.overrides)
    return Restored(selection, tuple(notices), _is_contacted(own, final, start, meta))


def store_selection(meta: MutableMapping[str, JsonValue], spec: AgentSpec, own: AgentSpec) -> None:
    """Write into `meta` that the session is served with `spec`, which was made of the configured agent `own`."""
    meta["agent"] = spec.id
    meta["think"] = spec.model.think or _NOT_SENT
    meta["model"] = spec.model.name
    meta["provider"] = spec.model.provider.name
    meta.pop("mode", None)
    policy = _find_mapping(meta, _POLICY)
    policy.pop("Write", None)
    if spec.tools.read_before_write != own.tools.read_before_write:
        policy["Write"] = spec.tools.read_before_write
    meta[_POLICY] = policy
    if not policy:
        del meta[_POLICY]


def overlay(below: Overrides, above: Overrides) -> Overrides:
    """Return `below` with everything that `above` sets over it."""
    names = [item.name for item in fields(Overrides)]
    return replace(below, **{name: getattr(above, name) for name in names if getattr(above, name) is not None})


def _stored_agent(configuration: Configuration, meta: JsonObject) -> str | None:
    hint = "Configure it, or choose an agent with --agent."
    mode = _find_text(meta, "mode")
    if mode is not None:
        raise ResumeFailed(f"the session was served in the mode {mode}, which is not configured", hint=hint)
    name = _find_text(meta, "agent")
    if name is not None and find_agent(configuration, name) is None:
        raise ResumeFailed(f"the session was served with the agent {name}, which is not configured", hint=hint)
    return name


def _read_overrides(meta: JsonObject) -> Overrides:
    write = _find_mapping(meta, _POLICY).get("Write")
    return Overrides(
        provider=_find_text(meta, "provider"),
        model=_find_text(meta, "model"),
        think=_find_text(meta, "think"),
        read_before_write=write if isinstance(write, bool) else None,
    )


def _usable(configuration: Configuration, own: AgentSpec, stored: Overrides) -> tuple[Overrides, list[str]]:
    """Return the stored overrides that change something and can be used, and a notice for each other one."""
    usable, notices = Overrides(), []
    model = Overrides(provider=stored.provider, model=stored.model)
    if _pair(own, stored) == (own.model.provider.name, own.model.name):
        model = Overrides()
    think = Overrides(think=stored.think)
    if stored.think == _NOT_SENT:
        think = Overrides(think=None if own.model.think in (None, "off") else "off")
    for part in (model, think, Overrides(read_before_write=stored.read_before_write)):
        try:
            with_overrides(configuration, own, part, prefix="the stored ")
        except ConfigInvalid as error:
            notices.append(f"not restored: {error.message}")
        else:
            usable = overlay(usable, part)
    return usable, notices


def _is_contacted(own: AgentSpec, final: AgentSpec, start: Selection, meta: JsonObject) -> bool:
    """Tell whether a model is restored or replaced (contract.md, Serve; engine.md, appendix J)."""
    stored = _read_overrides(meta)
    if stored.model is None and stored.provider is None:
        return False
    before, now = _pair(own, stored), (final.model.provider.name, final.model.name)
    replaced = (start.overrides.model is not None or start.overrides.provider is not None) and now != before
    restored = start.agent is None and now == before and now != (own.model.provider.name, own.model.name)
    return replaced or restored


def _pair(own: AgentSpec, stored: Overrides) -> tuple[str, str]:
    return (stored.provider or own.model.provider.name).lower(), stored.model or own.model.name


def _find_text(meta: JsonObject, key: str) -> str | None:
    value = meta.get(key)
    return value if isinstance(value, str) and value else None


def _find_mapping(meta: Mapping[str, JsonValue], key: str) -> dict[str, JsonValue]:
    value = meta.get(key)
    return dict(value) if isinstance(value, Mapping) else {}
