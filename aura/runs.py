"""The run record and the pure function that derives it from events.

A run is a fold of its events: `fold(run, event, seq, at_ms)` is the only way a record changes, in the store's
transaction, in tests and in an import alike. It holds the contract's state machine (contract.md, Runs) and refuses what
it does not allow. It stores and sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from aura.errors import Detail

if TYPE_CHECKING:
    from aura.events import Event

State = Literal["accepted", "running", "finished", "persisted", "persist_failed", "lost"]
Outcome = Literal["completed", "failed", "cancelled", "rejected", "blocked"]
RunKind = Literal["prompt", "command"]
OnInput = Literal["block", "wait"]

TERMINAL: frozenset[State] = frozenset(("persisted", "persist_failed", "lost"))


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run, or its save, did not go well: the contract's Error."""

    code: str
    message: str
    retryable: bool = False
    details: Mapping[str, Detail] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The final assistant text, or a command's output."""

    content: str


@dataclass(frozen=True, slots=True)
class Persisted:
    """The latest save: its revision, its non-system message count, and the seq of the event that reported it."""

    revision: str
    messages: int
    seq: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a run did: answered model calls, calls by tool name, calls that ended in error."""

    iterations: int = 0
    tool_calls: Mapping[str, int] = field(default_factory=dict)
    tool_errors: int = 0


@dataclass(frozen=True, slots=True)
class Cancel:
    """The first request to cancel the run."""

    reason: str
    message: str | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a controller submits, after validation. `text` is the prompt or the command."""

    id: str
    request_id: str
    kind: RunKind
    text: str
    on_input: OnInput
    digest: str
    accepted_at_ms: int


@dataclass(frozen=True, slots=True)
class Run:
    """The run record (contract.md). Times are Unix ms."""

    id: str
    request_id: str
    kind: RunKind
    request_digest: str
    on_input: OnInput
    session_id: str
    state: State
    accepted_seq: int
    accepted_at_ms: int
    outcome: Outcome | None = None
    error: RunError | None = None
    persist_error: RunError | None = None
    cancel: Cancel | None = None
    result: RunResult | None = None
    persisted: Persisted | None = None
    stats: Stats = field(default_factory=Stats)
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    settled_at_ms: int | None = None

    @property
    def terminal(self) -> bool:
        """True once the record can never change again."""
        return self.state in TERMINAL

    @property
    def cancel_requested(self) -> bool:
        """True once somebody asked for a cancellation, whatever came of it."""
        return self.cancel is not None


def accept(new: NewRun, session_id: str, seq: int) -> Run:
    """Return the record of a run that is accepted by the event with `seq`."""
    return Run(
        id=new.id,
        request_id=new.request_id,
        kind=new.kind,
        request_digest=new.digest,
        on_input=new.on_input,
        session_id=session_id,
        state="accepted",
        accepted_seq=seq,
        accepted_at_ms=new.accepted_at_ms,
    )


def fold(run: Run, event: Event, seq: int, at_ms: int) -> Run:
    """Return `run` after `event`, which has `seq` and happened at `at_ms` (Unix ms).

    Events that do not concern the record leave it as it is; those of another lane never do. Raises `ValueError` for a
    transition that the contract's state machine does not have.
    """
    from aura import events as e  # events names RunError: a cycle at import time, not at call time

    if event.source is not None:
        return run
    match event:
        case e.RunStarted():
            return replace(_step(run, "running", "accepted"), started_at_ms=at_ms)
        case e.MessageAssistant():
            return replace(run, stats=replace(run.stats, iterations=run.stats.iterations + 1))
        case e.ToolStarted(name=name):
            counts = {**run.stats.tool_calls, name: run.stats.tool_calls.get(name, 0) + 1}
            return replace(run, stats=replace(run.stats, tool_calls=counts))
        case e.ToolFinished(status="error"):
            return replace(run, stats=replace(run.stats, tool_errors=run.stats.tool_errors + 1))
        case e.SessionPersisted(revision=revision, messages=messages):
            return replace(run, persisted=Persisted(revision, messages, seq))
        case e.RunCancelRequested(reason=reason, message=message):
            return run if run.cancel else replace(run, cancel=Cancel(reason, message, at_ms))
        case e.RunFinished(outcome=outcome, error=error, result=result):
            finished = _step(run, "finished", "accepted", "running")
            return replace(finished, outcome=outcome, error=error, result=result, finished_at_ms=at_ms)
        case e.RunPersisted():
            return replace(_step(run, "persisted", "finished"), settled_at_ms=at_ms)
        case e.RunPersistFailed(error=error):
            return replace(_step(run, "persist_failed", "finished"), persist_error=error, settled_at_ms=at_ms)
        case e.RunLost(revision=revision, messages=messages, persisted_seq=persisted_seq):
            found = Persisted(revision, messages, persisted_seq)
            lost = replace(_step(run, "lost", "accepted", "running", "finished"), persisted=found, settled_at_ms=at_ms)
            return _with_lost_error(lost, finished=run.state == "finished")
        case _:
            return run


def _with_lost_error(run: Run, *, finished: bool) -> Run:
    error = RunError("server_lost", "the server that held this run is gone")
    return replace(run, persist_error=error) if finished else replace(run, error=error)


def _step(run: Run, state: State, *allowed: State) -> Run:
    if run.state not in allowed:
        raise ValueError(f"run {run.id}: {run.state} cannot become {state}")
    return replace(run, state=state)
