"""Commands that change how the session goes on: agent, model and switches. The next turn sees the change, none before.

Each makes the new agent first and puts it in the place of the old one when nothing can fail any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from aura.config.resolve import Overrides, find_agent
from aura.config.spec import THINK_LEVELS, Configuration
from aura.runtime.commands.base import CommandContext, CommandFailed
from aura.runtime.commands.parsing import find_switch
from aura.runtime.selection import Selection


def agent(context: CommandContext) -> str:
    """List the visible agents, or go on with another one: with its own model, and the history as it is."""
    if not context.arguments:
        return _agent_list(context)
    selection = _with_agent(context, context.selection, context.arguments[0])
    taken = context.change(selection)
    lost = " Done is off: this agent may not use it." if selection.done and not taken.selection.done else ""
    return f"agent {taken.agent.spec.name}, model {_model_name(context)}.{lost}"


def model(context: CommandContext) -> str:
    """List the models that are known without asking anybody, or go on with another one, which is asked for first."""
    if not context.arguments:
        return _model_list(context)
    overrides = _model_overrides(context, context.arguments[0])
    candidate = context.current.prepare(replace(context.selection, overrides=context.override(overrides)))
    context.current.take(candidate, context.lane.scope)
    context.announce()
    window = context.agent.gauge.window
    return f"model {_model_name(context)}" + (f", {window} tokens of context" if window else "")


def think(context: CommandContext) -> str:
    """Show or set the think level."""
    if context.arguments:
        context.change(_with_think(context, context.selection, context.arguments[0]))
    return f"think: {context.agent.spec.model.think or 'not set'}"


def auto(context: CommandContext) -> str:
    """Show or set whether nobody is asked and open todos keep a turn going."""
    if context.arguments:
        context.change(_with_auto(context, context.selection, context.arguments[0]))
    return f"auto: {_spell(context.selection.auto)}"


def done(context: CommandContext) -> str:
    """Show or set whether the agent has the tool Done."""
    if context.arguments:
        _check_done(context, selection := _with_done(context, context.selection, context.arguments[0]))
        context.change(selection)
    return f"done: {_spell(context.selection.done)}"


def readbefore(context: CommandContext) -> str:
    """Show or set whether a file must be read before it is written over."""
    if not context.arguments:
        return _readbefore_line(context)
    if len(context.arguments) != 2 or context.arguments[0].lower() not in ("write", "delete", "all"):
        raise CommandFailed("usage: /readbefore [write|all on|off]")
    if context.arguments[0].lower() == "delete":
        raise CommandFailed("read-before for delete is not supported yet: no tool deletes files")
    context.change(_with_readbefore(context, context.selection, context.arguments[1]))
    return _readbefore_line(context)


def set_(context: CommandContext) -> str:
    """Change several settings, all or none; without any, show them."""
    if not context.arguments:
        return _settings(context)
    pairs = [_pair(word) for word in context.arguments]
    selection = context.selection
    # A new agent brings its own model along, so it comes before what is put over it.
    for key, value in sorted(pairs, key=lambda pair: pair[0] != "agent"):
        selection = _SETTERS[key](context, selection, value)
    if any(key == "done" for key, _ in pairs):
        _check_done(context, selection)
    context.change(selection)
    return _settings(context)


def reload(context: CommandContext) -> str:
    """Read the configuration again; when it cannot be used, the present one stays."""
    context.current.reload()
    context.announce()
    found = context.current.configuration
    return "\n".join(
        (
            f"agents: {len(found.agents)}",
            f"providers: {len(found.providers)}",
            f"custom commands: {len(found.commands)}",
            *(f"warning: {notice}" for notice in found.notices),
        )
    )


def _with_agent(context: CommandContext, selection: Selection, name: str) -> Selection:
    configuration = context.current.configuration
    found = find_agent(configuration, name)
    if found is None:
        raise CommandFailed(f"there is no agent named {name}; known agents: {', '.join(_visible(configuration))}")
    start = context.current.start.overrides
    kept = Overrides(
        max_steps=start.max_steps,
        token_budget=start.token_budget,
        read_before_write=selection.overrides.read_before_write,
    )
    return replace(selection, agent=found.name, overrides=kept)


def _with_think(context: CommandContext, selection: Selection, level: str) -> Selection:
    switch = find_switch(level)
    level = level.lower() if switch is None else _spell(switch)
    if level not in THINK_LEVELS:
        raise CommandFailed(f"{level} is no think level; use one of {', '.join(THINK_LEVELS)}")
    return replace(selection, overrides=replace(selection.overrides, think=level))


def _with_context(context: CommandContext, selection: Selection, tokens: str) -> Selection:
    if not tokens.isascii() or not tokens.isdigit() or len(tokens) > 12:
        raise CommandFailed(f"context={tokens} is no number of tokens")
    return replace(selection, overrides=replace(selection.overrides, context=int(tokens)))


def _with_auto(context: CommandContext, selection: Selection, word: str) -> Selection:
    return replace(selection, auto=_switch("auto", word))


def _with_done(context: CommandContext, selection: Selection, word: str) -> Selection:
    return replace(selection, done=_switch("done", word))


def _with_readbefore(context: CommandContext, selection: Selection, word: str) -> Selection:
    overrides = replace(selection.overrides, read_before_write=_switch("readbefore.write", word))
    return replace(selection, overrides=overrides)


_SETTERS: Mapping[str, Callable[[CommandContext, Selection, str], Selection]] = {
    "agent": _with_agent,
    "auto": _with_auto,
    "context": _with_context,
    "done": _with_done,
    "readbefore.write": _with_readbefore,
    "think": _with_think,
    "window": _with_context,
}
_LATER = frozenset(("mode", "sandbox", "verbose", "readbefore.delete"))


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    key = key.lower()
    if not equals or not value:
        raise CommandFailed(f"{word} is not of the form key=value")
    if key in _LATER:
        raise CommandFailed(f"{key} is not supported yet")
    if key not in _SETTERS:
        raise CommandFailed(f"there is no setting {key}; known settings: {', '.join(_SETTERS)}")
    return key, value


def _check_done(context: CommandContext, selection: Selection) -> None:
    if selection.done and not context.current.prepare(selection).selection.done:
        raise CommandFailed("the agent may not use Done, by its tools.enabled and tools.disabled")


def _model_overrides(context: CommandContext, text: str) -> Overrides:
    """Read `provider/model`; what stands before the slash is a provider only if there is one of that name."""
    provider, slash, name = text.partition("/")
    if slash and name and provider.lower() in context.current.configuration.providers:
        return Overrides(provider=provider.lower(), model=name)
    return Overrides(provider=context.agent.spec.model.provider.name, model=text)


def _agent_list(context: CommandContext) -> str:
    name = context.agent.spec.name
    shown = [one for one in context.current.configuration.agents.values() if not one.hidden or one.name == name]
    lines = (f"{'*' if one.name == name else ' '} {one.name}  {one.description}".rstrip() for one in shown)
    return "\n".join(lines)


def _model_list(context: CommandContext) -> str:
    configuration = context.current.configuration
    now = _model_name(context)
    names = {now}
    for one in configuration.agents.values():
        names.add(f"{one.model.provider.name}/{one.model.name}")
    for provider in configuration.providers.values():
        plain = [name for name in provider.models.include if "*" not in name and provider.models.accept(name)]
        names.update(f"{provider.name}/{name}" for name in plain)
    return "\n".join(f"{'*' if name == now else ' '} {name}" for name in sorted(names))


def _settings(context: CommandContext) -> str:
    spec, selection = context.agent.spec, context.selection
    values = {
        "agent": spec.name,
        "auto": _spell(selection.auto),
        "context": str(context.agent.gauge.window or "not known yet"),
        "done": _spell(selection.done),
        "model": _model_name(context),
        "readbefore.write": _spell(spec.tools.read_before_write),
        "think": spec.model.think or "not set",
    }
    return "\n".join(f"{key}={value}" for key, value in values.items())


def _readbefore_line(context: CommandContext) -> str:
    return f"write: {_spell(context.agent.spec.tools.read_before_write)}"


def _model_name(context: CommandContext) -> str:
    spec = context.agent.spec.model
    return f"{spec.provider.name}/{spec.name}"


def _visible(configuration: Configuration) -> list[str]:
    return [one.name for one in configuration.agents.values() if not one.hidden]


def _switch(what: str, word: str) -> bool:
    value = find_switch(word)
    if value is None:
        raise CommandFailed(f"{what} is on or off, not {word}")
    return value


def _spell(value: bool) -> str:
    return "on" if value else "off"
