"""Takes a command from its text to its result (contract.md, HTTP API). Built-in ones come before custom ones.

A built-in command ends with one `command.result` and starts no turn. A custom one is a turn: its `command.result` says
which command it was, and its text goes to the model.
"""

from __future__ import annotations

from collections.abc import Mapping

from aura import events as e
from aura.config.spec import CommandSpec
from aura.engine.history import History
from aura.engine.lane import Lane, TurnOutcome
from aura.engine.providers.base import ProviderError
from aura.engine.scope import Cancelled
from aura.engine.turn import run_turn
from aura.errors import AuraError, BadRequest
from aura.runs import RunError
from aura.runtime.commands.base import Command, CommandContext, CommandFailed
from aura.runtime.commands.custom import expand
from aura.runtime.commands.parsing import Invocation, parse
from aura.runtime.commands.table import COMMANDS, LATER, REJECTED, find_command
from aura.runtime.current import CurrentAgent


def check_command(text: str, custom: Mapping[str, CommandSpec]) -> None:
    """Raise `BadRequest` unless `text` names a command that a served session takes. Any thread."""
    if not text.startswith("/"):
        raise BadRequest("a command starts with '/'", hint="Submit it as a prompt instead.")
    name = parse(text).name
    if name in REJECTED:
        raise BadRequest(f"{name} would change the served session", hint="Use `aura session` or another server.")
    if name in LATER:
        raise BadRequest(f"{name} is not supported yet", hint="`/help` lists the commands.")
    if find_command(name) is None and name[1:] not in custom:
        raise BadRequest(f"{_cut(name)} is not a command", hint="`/help` lists them.")


def run_command(lane: Lane, current: CurrentAgent, history: History, text: str) -> TurnOutcome:
    """Run a checked command and record its result. Run thread only."""
    invocation = parse(text)
    if lane.scope.reason is not None:
        return _cancelled(lane.scope.reason)
    command = find_command(invocation.name)
    if command is not None:
        return _run_built_in(command, CommandContext(lane, history, current, invocation, COMMANDS))
    custom = current.commands.get(invocation.name[1:])
    if custom is None:
        return _failed(lane, invocation, f"{invocation.name} is not a command any more")
    lane.emit(e.CommandResult(command=text, message=""))
    return run_turn(lane, current.agent, history, expand(custom.body, invocation))


def _run_built_in(command: Command, context: CommandContext) -> TurnOutcome:
    lane, invocation = context.lane, context.invocation
    try:
        if command.most is not None and len(invocation.arguments) > command.most:
            raise CommandFailed(f"too many words; usage: {command.usage}")
        message = command.run(context)
    except CommandFailed as failed:
        return _failed(lane, invocation, str(failed))
    except ProviderError as error:
        return _failed(lane, invocation, error.message)
    except AuraError as error:
        return _failed(lane, invocation, f"{error.message}. {error.hint}" if error.hint else error.message)
    except Cancelled as cancelled:
        return _cancelled(cancelled.reason)
    lane.emit(e.CommandResult(command=invocation.text, message=message))
    return TurnOutcome("completed", content=message)


def _failed(lane: Lane, invocation: Invocation, problem: str) -> TurnOutcome:
    lane.emit(e.CommandResult(command=invocation.text, message="", error=problem))
    return TurnOutcome("failed", RunError("command_failed", problem))


def _cancelled(reason: str) -> TurnOutcome:
    return TurnOutcome("cancelled", RunError("cancelled", "the run was cancelled", details={"reason": reason}))


def _cut(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:100]}…"
