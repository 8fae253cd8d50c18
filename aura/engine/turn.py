"""One turn: from an input to exactly one typed outcome (DESIGN.md section 5; contract.md, Outcomes and codes).

The loop calls the model, runs its calls, saves, and goes on until the model asks for nothing more. It talks to the
world through its `Lane` only, and it returns an outcome instead of events: what is terminal is the runtime's
business.
"""

from __future__ import annotations

from collections.abc import Sequence

from aura import events as e
from aura import limits
from aura.clock import format_time
from aura.conversation import Message, MessageType
from aura.engine import batch
from aura.engine.agent import Agent
from aura.engine.call import CallResult
from aura.engine.history import History
from aura.engine.lane import InputRequired, Lane, PersistFailed, TurnOutcome
from aura.engine.progress import Waiting, show_deltas
from aura.engine.providers.base import ProviderError, Reply, Request
from aura.engine.retry import stream_with_retry
from aura.engine.scope import Cancelled, Reason
from aura.engine.tools import todos
from aura.ids import new_message_id
from aura.runs import Outcome, RunError

_NUDGE = "Items of the todo list are not completed. Go on with them, and keep the list up to date."


def run_turn(lane: Lane, agent: Agent, history: History, text: str | None) -> TurnOutcome:
    """Work on one user input until it is answered. Run thread only.

    `text` None goes on with a history that ends with what a model has to answer: results of calls that somebody else
    made. `history` gains the input, the answers and all results; a rejected input adds nothing. Raises nothing but
    faults of this program.
    """
    try:
        if text is not None and not text.strip():
            return _failed("rejected", RunError("input_rejected", "the prompt is empty"))
        lane.scope.check()
        agent.gauge.window = _window(lane, agent)
        if _has_no_room(history, text or "", agent.gauge.window):
            return _failed("rejected", RunError("input_rejected", "the prompt does not fit into the context"))
        _take_input(lane, history, text)
        return _iterate(lane, agent, history)
    except Cancelled as cancelled:
        return _cancelled(cancelled.reason)
    except InputRequired as question:
        return _failed("blocked", RunError("input_required", str(question)))
    except ProviderError as error:
        return _failed("failed", error.run_error())
    except PersistFailed as failed:
        return _failed("failed", failed.error)
    finally:
        _answer_open_calls(lane, history)


def _iterate(lane: Lane, agent: Agent, history: History) -> TurnOutcome:
    tools = agent.spec.tools
    for iteration in range(1, tools.max_steps + 1):
        lane.scope.check()
        if 0 < tools.token_budget <= _spent_tokens(history):
            return _failed("failed", RunError("token_budget", f"the budget of {tools.token_budget} tokens is used up"))
        reply = _call_model(lane, agent, history, iteration)
        if not reply.calls:
            if not (agent.toolbox.auto and todos.has_open(history)):
                return TurnOutcome("completed", content=reply.content)
            _nudge(lane, history)
            continue
        outcome = batch.run(reply.calls, lane, agent.toolbox, history)
        for message in outcome.messages:
            history.append(message)
        _emit_tool_usage(lane, reply)
        lane.checkpoint(history)
        if outcome.interruption is not None:
            raise outcome.interruption
        summary = _find_end(agent, outcome.results)
        if summary is not None:
            return TurnOutcome("completed", content=reply.content if reply.content.strip() else summary)
    return _failed("failed", RunError("max_steps", f"the run used its {tools.max_steps} model calls"))


def _find_end(agent: Agent, results: Sequence[CallResult]) -> str | None:
    """Return what the first call said that ends the turn, None when none of them does."""
    for result in results:
        tool = agent.toolbox.find(result.call.name)
        if result.status == "ok" and tool is not None and tool.spec.ends_turn:
            return result.text
    return None


def _nudge(lane: Lane, history: History) -> None:
    """Go on although the model has stopped: chat templates want a user message between two answers."""
    now_ms = lane.clock.now_ms()
    history.append(
        Message(
            role="user",
            content=_NUDGE,
            id=new_message_id(now_ms),
            type=MessageType.SYNTHETIC,
            created_at=format_time(now_ms),
        )
    )
    lane.emit(e.Notice(level="info", origin="auto", message="todos are left, so the model was asked to go on"))


def _answer_open_calls(lane: Lane, history: History) -> None:
    """Give calls that an interruption left open their error result: saved history holds complete pairs."""
    now_ms = lane.clock.now_ms()
    for call in history.open_calls():
        history.append(
            Message(
                role="tool",
                content="Error: the run ended before this call had a result",
                id=new_message_id(now_ms),
                tool_name=call.name,
                tool_call_id=call.id,
                created_at=format_time(now_ms),
            )
        )


def _call_model(lane: Lane, agent: Agent, history: History, iteration: int) -> Reply:
    _emit_status(lane, agent, iteration)
    message_id, reply = _stream(lane, agent, history)
    agent.gauge.used = reply.input_tokens + reply.output_tokens
    _count_usage(history, reply)
    tokens = {"total": reply.output_tokens} if reply.output_tokens else {}
    history.append(
        Message(
            role="assistant",
            content=reply.content,
            id=message_id,
            thinking=reply.thinking,
            calls=reply.calls,
            tokens=tokens,
            created_at=format_time(lane.clock.now_ms()),
        )
    )
    usage = e.Usage(
        provider=agent.spec.model.provider.name,
        model=agent.spec.model.name,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
    )
    lane.emit(e.MessageAssistant(message_id=message_id, content=reply.content, tool_calls=reply.calls, usage=usage))
    for call in reply.calls:
        lane.emit(e.ToolRequested(source=lane.source, call_id=call.id, name=call.name, args=call.arguments))
    _emit_status(lane, agent, iteration)
    return reply


def _emit_tool_usage(lane: Lane, reply: Reply) -> None:
    if not (reply.input_tokens or reply.output_tokens):
        return
    ids = tuple(call.id for call in reply.calls)
    usage = e.ToolUsage(
        source=lane.source, call_ids=ids, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens
    )
    lane.emit(usage)


def _stream(lane: Lane, agent: Agent, history: History) -> tuple[str, Reply]:
    """Return the id of the message that is being written, and the reply; each try writes a message of its own."""
    request = _request(agent, history)
    retry = agent.spec.model.provider.retry
    waiting = Waiting(lane, request.model)
    for attempt in range(1, limits.PARSE_ATTEMPTS_COUNT + 1):
        message_id = new_message_id(lane.clock.now_ms())
        on_delta = show_deltas(lane, message_id, waiting)
        try:
            with waiting.shown():
                return message_id, stream_with_retry(
                    agent.provider, request, lane.scope, on_delta, retry, waiting.for_retry
                )
        except ProviderError as error:
            if error.kind != "malformed" or attempt == limits.PARSE_ATTEMPTS_COUNT:
                raise
            lane.emit(e.Notice(level="warning", origin="provider", message=f"asking again: {error.message}"))
    raise AssertionError("the loop returns or raises")


def _request(agent: Agent, history: History) -> Request:
    model = agent.spec.model
    return Request(
        model=model.name,
        system=agent.prompt,
        messages=history.view(),
        tools=agent.toolbox.definitions(),
        think=model.think,
        generation=model.generation,
    )


def _take_input(lane: Lane, history: History, text: str | None) -> None:
    if text is None:
        last = history.messages[-1]
        lane.emit(e.RunStarted(run_id=lane.run_id, message_id=last.id))
        return
    now_ms = lane.clock.now_ms()
    message_id = new_message_id(now_ms)
    history.append(Message(role="user", content=text, id=message_id, created_at=format_time(now_ms)))
    lane.emit(e.MessageUser(message_id=message_id, content=text))
    lane.emit(e.RunStarted(run_id=lane.run_id, message_id=message_id))


def _emit_status(lane: Lane, agent: Agent, iteration: int) -> None:
    lane.emit(
        e.StatusChanged(
            agent=agent.spec.name,
            mode=None,
            provider=agent.spec.model.provider.name,
            model=agent.spec.model.name,
            iteration=iteration,
            tokens_used=agent.gauge.used,
            tokens_max=agent.gauge.window,
        )
    )


def _window(lane: Lane, agent: Agent) -> int:
    model = agent.spec.model
    if model.context is not None:
        return model.context
    try:
        return agent.provider.context_tokens(model.name, lane.scope)
    except ProviderError as error:  # the model call itself will tell whether the provider is really away
        lane.emit(e.Notice(level="warning", origin="provider", message=f"context size unknown: {error.message}"))
        return 0


def _has_no_room(history: History, text: str, window: int) -> bool:
    if window <= 0:
        return False
    chars = len(text) + sum(len(message.content) for message in history.view())
    return chars // limits.CHARS_PER_TOKEN > window * limits.INPUT_MAX_PERCENTAGE // 100


def _count_usage(history: History, reply: Reply) -> None:
    spent = history.meta.get("cumulative_usage")
    spent = spent if isinstance(spent, dict) else {}
    history.meta["cumulative_usage"] = {
        "input": int(spent.get("input", 0)) + reply.input_tokens,
        "output": int(spent.get("output", 0)) + reply.output_tokens,
    }


def _spent_tokens(history: History) -> int:
    spent = history.meta.get("cumulative_usage")
    return int(spent.get("input", 0)) + int(spent.get("output", 0)) if isinstance(spent, dict) else 0


def _cancelled(reason: Reason) -> TurnOutcome:
    match reason:
        case "input_required":
            return _failed("blocked", RunError("input_required", "the run may not wait for an answer"))
        case "policy_stop":
            return _failed("blocked", RunError("policy_stop", "a policy stopped the run"))
        case _:
            error = RunError("cancelled", "the run was cancelled", details={"reason": reason})
            return _failed("cancelled", error)


def _failed(outcome: Outcome, error: RunError) -> TurnOutcome:
    return TurnOutcome(outcome, error)
