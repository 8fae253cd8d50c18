"""The one way a tool call takes, whoever asks for it (SHAPES.md section 3):

resolve → schema → gates → at most one question → tool.started → executor → filters → tool.finished.

No call gets lost: whatever goes wrong becomes a result with an error text, and every call emits both events. What a
whole batch does is `engine.batch`'s business; which gates and filters there are stands in their `chain` modules.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, replace
from typing import Literal

from aura import limits
from aura.conversation import Call
from aura.engine.bounded import cut_middle
from aura.engine.filters.base import FilterContext
from aura.engine.gates import base as gates
from aura.engine.gates import policy
from aura.engine.history import History
from aura.engine.lane import Answer, InputRequired, Lane, PersistFailed, Question
from aura.engine.scope import Cancelled, Scope
from aura.engine.tools import schema
from aura.engine.tools.base import Tool, ToolContext, ToolError
from aura.engine.tools.toolbox import Toolbox
from aura.errors import AuraError
from aura.events import Notice, Option, ToolFinished, ToolOutput, ToolProgress, ToolStarted

Interruption = InputRequired | Cancelled | PersistFailed

CANCELLED = "cancelled"
NOBODY_TO_ASK = "this call needs an answer from the user, and this run does not wait for one"
NOT_RECORDED = "not run: the call could not be recorded"
NOT_RUN = "not run: an earlier call of this message needs an answer from the user, and this run does not wait for one"

_ANSWERS = (
    Option("allow", "Run this call."),
    Option("allow_session", "Run it, and calls like it for the rest of the session."),
    Option("deny", "Do not run it."),
)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a call happens: the agent at work, its tools, its conversation."""

    lane: Lane
    toolbox: Toolbox
    history: History


@dataclass(frozen=True, slots=True)
class Cleared:
    """A call that passed all gates, with the arguments it is to run with."""

    call: Call
    tool: Tool


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended. `text` is what enters the conversation; `error` is None unless status is error.

    `interruption`: the call ended because the run cannot go on like this. `started`: tool.started was emitted.
    """

    call: Call
    status: Literal["ok", "error"]
    text: str
    error: str | None = None
    interruption: Interruption | None = None
    started: bool = False


class _Refused(Exception):
    """The call does not run; the text is what the model is told."""

    def __init__(self, text: str, interruption: Interruption | None = None) -> None:
        super().__init__(text)
        self.interruption = interruption


def perform(call: Call, site: Site, scope: Scope | None = None) -> CallResult:
    """Take one call all the way. Raises nothing of its own: only what the lane's `emit` raises."""
    cleared = clear(call, site)
    if isinstance(cleared, CallResult):
        return finish(cleared, site)
    start(cleared, site)
    return finish(execute(cleared, site, scope or site.lane.scope), site)


def clear(call: Call, site: Site) -> Cleared | CallResult:
    """Resolve and validate the call, pass it through the gates, ask if they want it; nothing has happened yet."""
    try:
        site.lane.scope.check()
        tool = site.toolbox.find(call.name)
        if tool is None:
            raise _Refused(site.toolbox.explain_missing(call.name))
        _validate(call, tool)
        checked, asks = _pass_gates(call, tool, site)
        if asks:
            _ask(checked, asks, site)
        return Cleared(checked, tool)
    except _Refused as refused:
        return failed(call, str(refused), refused.interruption)
    except InputRequired as interruption:
        return failed(call, NOBODY_TO_ASK, interruption)
    except Cancelled as interruption:
        return failed(call, CANCELLED, interruption)
    except AuraError as error:
        return failed(call, f"the approval could not be asked for: {error.message}")


def start(cleared: Cleared, site: Site) -> None:
    """Emit tool.started; it is committed when this returns, unless the tool changes nothing."""
    _emit_started(cleared.call, site, durable=not cleared.tool.spec.read_only)


def execute(cleared: Cleared, site: Site, scope: Scope) -> CallResult:
    """Run the tool under `scope`. Any thread; emits nothing durable; every failure becomes a result."""
    call = cleared.call
    try:
        scope.check()
        text = cleared.tool.run(call.arguments, _context(call, site, scope))
    except ToolError as error:
        result = failed(call, str(error))
    except InputRequired as interruption:
        result = failed(call, NOBODY_TO_ASK, interruption)
    except Cancelled as interruption:
        result = failed(call, CANCELLED, interruption)
    except OSError as error:
        result = failed(
            call, f"{error.strerror or 'the system refused'}{f': {error.filename}' if error.filename else ''}"
        )
    except AuraError as error:
        result = failed(call, error.message)
    except Exception as error:
        # A fault of one tool must not take the run with it.
        logger.exception("tool %s failed", call.name)
        reason = f"{type(error).__name__}: {error}"[: limits.MESSAGE_EXCERPT_BYTES]
        result = failed(call, f"{call.name} failed unexpectedly ({reason})")
    else:
        result = CallResult(call, "ok", text)
    return replace(result, started=True)


def finish(result: CallResult, site: Site, pending_tokens: int = 0) -> CallResult:
    """Pass the result through the filters and emit tool.finished, after tool.started if that is still to be done.

    `pending_tokens`: results of the same batch that are not in the conversation yet.
    """
    call = result.call
    if not result.started:
        _emit_started(call, site, durable=False)
    filtered = cut_middle(_filtered(call, result.text, site, pending_tokens), limits.RESULT_MAX_BYTES)
    text = _NO_TEXT.sub("\ufffd", filtered)
    error = None if result.error is None else _NO_TEXT.sub("\ufffd", result.error)
    if error is not None:
        error = cut_middle(error, limits.RESULT_ERROR_MAX_BYTES)
    site.lane.emit(
        ToolFinished(
            source=site.lane.source, call_id=call.id, name=call.name, status=result.status, result=text, error=error
        )
    )
    return replace(result, text=text, error=error, started=True)


def failed(call: Call, message: str, interruption: Interruption | None = None) -> CallResult:
    """Return the result of a call that went wrong or was not run."""
    return CallResult(call, "error", f"Error: {message}", message, interruption)


def _validate(call: Call, tool: Tool) -> None:
    check = schema.find_problem if tool.spec.own_schema else schema.find_foreign_problem
    problem = check(tool.spec.parameters, call.arguments)
    if problem is not None:
        raise _Refused(f"invalid arguments for {call.name}: {problem}")


def _pass_gates(call: Call, tool: Tool, site: Site, *, rewritten: bool = False) -> tuple[Call, list[gates.Ask]]:
    """Return the call as it may run and what the gates want asked; a rewritten call starts again, once."""
    asks: list[gates.Ask] = []
    toolbox = site.toolbox
    context = gates.GateContext(
        tool.spec,
        toolbox.spec,
        toolbox.workdir,
        toolbox.environment,
        toolbox.reads,
        site.history,
        rewritten,
        toolbox.auto,
    )
    for gate in toolbox.gates:
        match _decide(gate, call, context):
            case gates.Allow():
                continue
            case gates.Ask() as ask:
                asks.append(ask)
            case gates.Refuse(text=text):
                raise _Refused(text)
            case gates.Stop(reason=reason):
                site.lane.scope.cancel("policy_stop")
                raise _Refused(reason, Cancelled("policy_stop"))
            case gates.Rewrite(arguments=arguments):
                if rewritten:
                    raise _Refused(f"the {gate.name} check wants to change the call a second time")
                changed = replace(call, arguments=arguments)
                _validate(changed, tool)
                return _pass_gates(changed, tool, site, rewritten=True)
    return call, asks


def _decide(gate: gates.Gate, call: Call, context: gates.GateContext) -> gates.Decision:
    try:
        return gate.decide(call, context)
    except Exception as error:
        logger.exception("gate %s failed on a call of %s", gate.name, call.name)
        raise _Refused(f"the {gate.name} check failed ({type(error).__name__}), so {call.name} was not run") from error


def _ask(call: Call, asks: list[gates.Ask], site: Site) -> None:
    """Ask for all gates at once; return only when the call may run."""
    patterns = [ask.pattern for ask in asks if ask.pattern is not None]
    # "For this session" must approve what every gate asked about, or it approves nothing for later.
    complete = len(patterns) == len(asks)
    question = Question(
        kind="confirm",
        question=f"Run {call.name}? {'; '.join(ask.reason for ask in asks)}.",
        options=_ANSWERS,
        tool=call.name,
        detail=_detail(call, site.toolbox),
        pattern=patterns[0] if complete else None,
    )
    answer: Answer = site.lane.ask(question)
    # A cancel in the same instant beats the approval.
    site.lane.scope.check()
    if not answer.allowed:
        raise _Refused(f"{call.name} was denied by the user")
    if answer.value == "allow_session" and complete:
        for pattern in patterns:
            policy.approve(site.history, pattern)


def _detail(call: Call, toolbox: Toolbox) -> str:
    tool = toolbox.find(call.name)
    parameter = tool.spec.path_parameter if tool is not None else None
    value = call.arguments.get(parameter) if parameter is not None else None
    text = value if isinstance(value, str) else json.dumps(call.arguments, ensure_ascii=False)
    encoded = _NO_TEXT.sub("\ufffd", text).encode("utf-8")
    if len(encoded) <= limits.APPROVAL_DETAIL_MAX_BYTES:
        return encoded.decode("utf-8")
    kept = encoded[: limits.APPROVAL_DETAIL_MAX_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n[… {len(encoded)} bytes in all …]"


def _context(call: Call, site: Site, scope: Scope) -> ToolContext:
    lane, toolbox = site.lane, site.toolbox
    return ToolContext(
        call_id=call.id,
        workdir=toolbox.workdir,
        scope=scope,
        environment=toolbox.environment,
        output=lambda line: lane.transient(ToolOutput(call.name, line, call.id)),
        progress=lambda done, total, text: lane.transient(ToolProgress(call.name, call.id, done, total, text)),
        ask=_answer_itself if toolbox.auto else lane.ask,
        process_started=lambda pid, start_time: lane.process_started(call.id, pid, start_time),
        reads=toolbox.reads,
        history=site.history,
        bash=toolbox.spec.bash,
        spill_dir=toolbox.spill_dir,
    )


def _answer_itself(question: Question) -> Answer:
    first = question.options[0].label if question.options else "proceed"
    return Answer([first] if question.multi_select else first)


def _filtered(call: Call, text: str, site: Site, pending_tokens: int) -> str:
    for item in site.toolbox.filters:
        try:
            context = FilterContext(site.toolbox.spec, site.toolbox.context_use(), pending_tokens)
            text = item.apply(call, text, context)
        except Exception as error:
            logger.exception("filter %s failed on a result of %s", item.name, call.name)
            message = f"the {item.name} filter failed ({type(error).__name__}); the result of {call.name} is unfiltered"
            site.lane.emit(Notice(source=site.lane.source, level="warning", origin=item.name, message=message))
    return text


def _emit_started(call: Call, site: Site, *, durable: bool) -> None:
    event = ToolStarted(source=site.lane.source, call_id=call.id, name=call.name, args=call.arguments)
    site.lane.emit(event, durable=durable)
