"""Slash commands of a served session: a small table of name to function (contract.md, HTTP API; engine.md section 7).

A command is a run of kind `command`; it answers with one `command.result`. Those that change which session is served
are rejected before a run exists. The table grows; nothing else decides what is a command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aura import events as e
from aura.engine.history import History
from aura.engine.lane import TurnOutcome
from aura.engine.turn import Agent
from aura.errors import BadRequest
from aura.runs import RunError
from aura.runtime.lane import MainLane

REJECTED: frozenset[str] = frozenset(("/resume", "/load", "/fork", "/name", "/clear", "/new", "/exit", "/quit"))


class CommandFailed(Exception):
    """The command could not do what it was asked; the text is for the person who asked."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command may look at and change."""

    agent: Agent
    history: History
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command: what `/help` says of it, and what it does."""

    name: str
    usage: str
    summary: str
    run: Callable[[CommandContext], str]


def check_command(text: str) -> None:
    """Raise `BadRequest` unless `text` names a command that a served session takes."""
    if not text.startswith("/"):
        raise BadRequest("a command starts with '/'", hint="Submit it as a prompt instead.")
    name = _split(text)[0].lower()
    if name in REJECTED:
        raise BadRequest(f"{name} would change the served session", hint="Use `aura session` or another server.")
    if name not in COMMANDS:
        raise BadRequest(f"{name} is not a command", hint="`/help` lists them.")


def run_command(lane: MainLane, agent: Agent, history: History, text: str) -> TurnOutcome:
    """Run a checked command and record its result. Run thread only."""
    if lane.scope.reason is not None:
        error = RunError("cancelled", "the run was cancelled", details={"reason": lane.scope.reason})
        return TurnOutcome("cancelled", error)
    words = _split(text)
    command = COMMANDS[words[0].lower()]
    try:
        message = command.run(CommandContext(agent, history, tuple(words[1:])))
    except CommandFailed as failed:
        lane.emit(e.CommandResult(command=text, message="", error=str(failed)))
        return TurnOutcome("failed", RunError("command_failed", str(failed)))
    lane.emit(e.CommandResult(command=text, message=message))
    return TurnOutcome("completed", content=message)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text) or [text]
    except ValueError:
        return text.split()


def _help(context: CommandContext) -> str:
    if not context.arguments:
        return "\n".join(f"{command.usage:<18} {command.summary}" for command in COMMANDS.values())
    name = "/" + context.arguments[0].removeprefix("/").lower()
    if name not in COMMANDS:
        raise CommandFailed(f"{name} is not a command")
    return f"{COMMANDS[name].usage}\n{COMMANDS[name].summary}"


def _tools(context: CommandContext) -> str:
    definitions = context.agent.toolbox.definitions()
    return "\n".join(f"{tool.name:<14} {tool.description.splitlines()[0]}" for tool in definitions) or "no tools"


def _todo(context: CommandContext) -> str:
    todos = context.history.todos
    items = todos.get("items") if todos else None
    if not isinstance(items, list) or not items:
        return "no todos"
    return "\n".join(f"{n}. [{item['status']}] {item['content']}" for n, item in enumerate(items, 1))


def _policy(context: CommandContext) -> str:
    policy = context.agent.spec.tools.policy
    rows = (("auto", policy.auto), ("confirm", policy.confirm), ("deny", policy.deny))
    return "\n".join(f"{name}: {', '.join(patterns) or '-'}" for name, patterns in rows)


def _stats(context: CommandContext) -> str:
    messages = context.history.messages
    usage = context.history.meta.get("cumulative_usage")
    tokens = usage if isinstance(usage, dict) else {}
    calls = sum(len(message.calls) for message in messages)
    return (
        f"messages: {len(messages)}\ntool calls: {calls}\n"
        f"input tokens: {tokens.get('input', 0)}\noutput tokens: {tokens.get('output', 0)}"
    )


def _save(context: CommandContext) -> str:
    if context.arguments:
        context.history.title = " ".join(context.arguments)
    return f"saved as {context.history.title!r}" if context.history.title else "saved"


COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command("/help", "/help [command]", "List the commands, or explain one.", _help),
        Command("/policy", "/policy", "Show which calls run, ask or are denied.", _policy),
        Command("/save", "/save [title]", "Save the session, with a new title if one is given.", _save),
        Command("/stats", "/stats", "Count messages, calls and tokens of the session.", _stats),
        Command("/todo", "/todo", "Show the todo list.", _todo),
        Command("/tools", "/tools", "List the tools that the agent has.", _tools),
    )
}
