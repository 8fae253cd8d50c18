"""All tool calls of one assistant message (engine.md 4.4): in order, read-only neighbours at the same time.

Every call gets exactly one result, also when the run is cancelled or blocked half-way. Neighbouring calls that change
nothing and may run together form a group: its gates run one after another, its tools concurrently. All other calls run
alone, so that a call sees what the calls before it did. What becomes of the run is the turn's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aura import ids, limits
from aura.clock import Clock, format_time
from aura.conversation import Call, Message
from aura.engine.call import (
    CANCELLED,
    NOT_RECORDED,
    NOT_RUN,
    CallResult,
    Cleared,
    Interruption,
    Site,
    clear,
    execute,
    failed,
    finish,
    start,
)
from aura.engine.filters.size_guard import estimate_tokens
from aura.engine.history import History
from aura.engine.lane import InputRequired, Lane, PersistFailed
from aura.engine.scope import Cancelled, Scope
from aura.engine.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The results and their tool messages, both in call order. `interruption`: why the run cannot go on, if so."""

    results: tuple[CallResult, ...]
    messages: tuple[Message, ...]
    interruption: Interruption | None = None


def run(calls: Sequence[Call], lane: Lane, toolbox: Toolbox, history: History) -> BatchOutcome:
    """Perform `calls` and return one result for each; `history` is not appended to.

    tool.finished events come in call order, each after its tool.started. Run thread only. Raises nothing of its own: a
    call whose start cannot be recorded is not run, and neither are those after it.
    """
    site = Site(lane, toolbox, history)
    results: list[CallResult] = []
    interruption: Interruption | None = None
    for group in _groups(calls, toolbox):
        pending_tokens = sum(estimate_tokens(result.text) for result in results)
        try:
            results += _run_group(group, site, interruption, pending_tokens)
        except PersistFailed as failure:  # before anything of the group was run: only starts must be durable
            results += _run_group(group, site, failure, pending_tokens)
            interruption = interruption or failure
        interruption = interruption or _first_interruption(results[-len(group) :])
    if interruption is None and lane.scope.reason is not None:
        interruption = Cancelled(lane.scope.reason)
    return BatchOutcome(tuple(results), tuple(_message(result, lane.clock) for result in results), interruption)


def _groups(calls: Sequence[Call], toolbox: Toolbox) -> Iterator[list[Call]]:
    group: list[Call] = []
    for call in calls:
        if _is_concurrent(call, toolbox):
            group.append(call)
            continue
        if group:
            yield group
        group = []
        yield [call]
    if group:
        yield group


def _is_concurrent(call: Call, toolbox: Toolbox) -> bool:
    tool = toolbox.find(call.name)
    return toolbox.spec.parallel and tool is not None and tool.spec.read_only and tool.spec.parallel


def _run_group(
    group: Sequence[Call], site: Site, interruption: Interruption | None, pending_tokens: int
) -> list[CallResult]:
    checked: list[Cleared | CallResult] = []
    for call in group:
        item = clear(call, site) if interruption is None else _not_run(call, interruption)
        checked.append(item)
        if isinstance(item, CallResult):
            interruption = interruption or item.interruption
    ready = [item for item in checked if isinstance(item, Cleared)]
    for item in ready:
        start(item, site)
    executed = iter(_execute(ready, site))
    finished: list[CallResult] = []
    for item in checked:
        result = finish(next(executed) if isinstance(item, Cleared) else item, site, pending_tokens)
        pending_tokens += estimate_tokens(result.text)
        finished.append(result)
    return finished


def _execute(ready: Sequence[Cleared], site: Site) -> list[CallResult]:
    if len(ready) < 2:
        return [execute(item, site, site.lane.scope) for item in ready]

    def job(item: Cleared, scope: Scope) -> CallResult:
        return execute(item, site, scope)

    jobs = [lambda scope, item=item: job(item, scope) for item in ready]
    outcomes = site.lane.scope.gather(jobs, limits.PARALLEL_CALLS_MAX_COUNT)
    return [_result_of(item, outcome) for item, outcome in zip(ready, outcomes, strict=True)]


def _result_of(item: Cleared, outcome: CallResult | Exception) -> CallResult:
    # `execute` raises nothing; should it ever, the call still gets its result.
    return failed(item.call, f"{item.call.name} failed unexpectedly") if isinstance(outcome, Exception) else outcome


def _not_run(call: Call, interruption: Interruption) -> CallResult:
    match interruption:
        case InputRequired():
            return failed(call, NOT_RUN)
        case PersistFailed():
            return failed(call, NOT_RECORDED)
        case Cancelled():
            return failed(call, CANCELLED)


def _first_interruption(results: Sequence[CallResult]) -> Interruption | None:
    return next((result.interruption for result in results if result.interruption is not None), None)


def _message(result: CallResult, clock: Clock) -> Message:
    now_ms = clock.now_ms()
    return Message(
        role="tool",
        content=result.text,
        id=ids.new_message_id(now_ms),
        tool_name=result.call.name,
        tool_call_id=result.call.id,
        created_at=format_time(now_ms),
    )
