"""Commands that only look: they change nothing and ask nobody."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

from aura.engine.filters.size_guard import estimate_tokens
from aura.engine.tools import todos
from aura.jsontypes import JsonValue
from aura.runtime.commands.base import CommandContext, CommandFailed

_MCP_PREFIX = "mcp__"


def help_(context: CommandContext) -> str:
    """List all commands, or say of one what it does."""
    known, custom = context.known, context.current.commands
    if not context.arguments:
        taken = {name for command in known.values() for name in (command.name, *command.aliases)}
        rows = [(command.usage, command.summary) for command in known.values()]
        rows += [
            (f"/{one.name} {one.hints}".rstrip(), one.description)
            for name, one in custom.items()
            if f"/{name}" not in taken
        ]
        width = max(len(usage) for usage, _ in rows)
        return "\n".join(f"{usage:<{width}}  {summary}".rstrip() for usage, summary in rows)
    name = "/" + context.arguments[0].removeprefix("/").lower()
    for command in known.values():
        if name in (command.name, *command.aliases):
            also = f"\nalso: {', '.join(command.aliases)}" if command.aliases else ""
            return f"{command.usage}\n{command.summary}{also}"
    if name[1:] in custom:
        one = custom[name[1:]]
        return "\n".join(filter(None, (f"/{one.name} {one.hints}".rstrip(), one.description)))
    raise CommandFailed(f"{name} is not a command; /help lists them")


def tools(context: CommandContext) -> str:
    """List the agent's tools; with `debug` their parameters too, and those it may not use."""
    if context.arguments and context.arguments[0].lower() != "debug":
        raise CommandFailed("usage: /tools [debug]")
    toolbox = context.agent.toolbox
    definitions = toolbox.definitions()
    if not context.arguments:
        lines = [f"{tool.name:<14} {tool.description.splitlines()[0]}" for tool in definitions]
        return "\n".join(lines) or "no tools"
    shown = [f"{tool.name}\n{tool.description}\n{json.dumps(tool.parameters, indent=2)}" for tool in definitions]
    disabled = [tool.spec.name for tool in toolbox.tools if toolbox.find(tool.spec.name) is None]
    return "\n\n".join((*shown, f"disabled: {', '.join(disabled) or 'none'}"))


def policy(context: CommandContext) -> str:
    """Show the patterns of the policy, and what was approved for this session."""
    patterns = context.agent.spec.tools.policy
    approvals = context.history.meta.get("session_approvals")
    approved = [name for name, on in approvals.items() if on is True] if isinstance(approvals, Mapping) else []
    rows = (
        ("auto", patterns.auto),
        ("confirm", patterns.confirm),
        ("deny", patterns.deny),
        ("approved", tuple(approved)),
    )
    lines = [f"{name}: {', '.join(values) or '-'}" for name, values in rows]
    if context.selection.auto:
        lines.append("auto mode is on: what would ask is allowed")
    return "\n".join(lines)


def todo(context: CommandContext) -> str:
    """Show the todo list."""
    return todos.describe(context.history)


def stats(context: CommandContext) -> str:
    """Count messages, calls and tokens."""
    messages = context.history.messages
    usage = context.history.meta.get("cumulative_usage")
    tokens: Mapping[str, JsonValue] = usage if isinstance(usage, Mapping) else {}
    counts: dict[str, int] = defaultdict(int)
    for message in messages:
        for call in message.calls:
            counts[call.name] += 1
    calls = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return "\n".join(
        (
            f"messages: {len(messages)}",
            f"tool calls: {sum(counts.values())}" + (f" ({calls})" if calls else ""),
            f"input tokens: {tokens.get('input', 0)}",
            f"output tokens: {tokens.get('output', 0)}",
        )
    )


def ctx(context: CommandContext) -> str:
    """Show how full the context is: what the model counted last, and estimates of what fills it."""
    gauge, view = context.agent.gauge, context.history.view()
    window = f"{gauge.window} tokens" if gauge.window else "not known before the next model call"
    share = f" ({gauge.used * 100 // gauge.window}%)" if gauge.used and gauge.window else ""
    definitions = [json.dumps(tool.parameters) + tool.description for tool in context.agent.toolbox.definitions()]
    return "\n".join(
        (
            f"window: {window}",
            f"used: {gauge.used} tokens{share}" if gauge.used else "used: not known before the next model call",
            f"system prompt: about {estimate_tokens(context.agent.prompt)} tokens",
            f"tools: {len(definitions)}, about {sum(map(estimate_tokens, definitions))} tokens",
            f"messages: {len(view)}, about {sum(estimate_tokens(message.content) for message in view)} tokens",
        )
    )


def mcp(context: CommandContext) -> str:
    """List the MCP servers whose tools the agent has; with `reconnect`, after lost and failed ones were tried again."""
    match [word.lower() for word in context.arguments]:
        case [] | ["list"]:
            pass
        case ["reconnect"]:
            context.current.reconnect()
            context.announce()
        case ["reconnect", _]:
            context.current.reconnect(_mcp_server(context, context.arguments[1]))
            context.announce()
        case _:
            raise CommandFailed("usage: /mcp [list | reconnect [server]]")
    servers: dict[str, list[str]] = defaultdict(list)
    for tool in context.agent.toolbox.definitions():
        if tool.name.startswith(_MCP_PREFIX):
            server, _, name = tool.name.removeprefix(_MCP_PREFIX).partition("__")
            servers[server].append(name)
    return "\n".join(f"{server}: {', '.join(names)}" for server, names in servers.items()) or "no MCP servers"


def _mcp_server(context: CommandContext, name: str) -> str:
    names = [spec.name for spec in context.agent.spec.mcp]
    if name not in names:
        raise CommandFailed(f"there is no MCP server named {name}; the agent's: {', '.join(names) or 'none'}")
    return name
