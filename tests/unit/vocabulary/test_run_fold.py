"""The run's state machine: every transition that the contract has, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aura import events as e
from aura.runs import TERMINAL, NewRun, Run, RunError, RunResult, State, accept, fold

NEW = NewRun("run_1", "r1", "prompt", "hi", "block", "d" * 64, 1000)
ERROR = RunError("persist_failed", "no room")
STATES: tuple[State, ...] = ("accepted", "running", "finished", "persisted", "persist_failed", "lost")
STEPS: dict[str, tuple[e.Event, State, frozenset[State]]] = {
    "run.started": (e.RunStarted(run_id="run_1", message_id="m"), "running", frozenset({"accepted"})),
    "run.finished": (e.RunFinished(outcome="completed"), "finished", frozenset({"accepted", "running"})),
    "run.persisted": (e.RunPersisted(), "persisted", frozenset({"finished"})),
    "run.persist_failed": (e.RunPersistFailed(error=ERROR), "persist_failed", frozenset({"finished"})),
    "run.lost": (
        e.RunLost(revision="r", messages=2, persisted_seq=7),
        "lost",
        frozenset({"accepted", "running", "finished"}),
    ),
}


def run_in(state: State) -> Run:
    return replace(accept(NEW, "s1", 3), state=state)


@pytest.mark.requirement("runs.state-machine")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", STEPS)
def test_a_transition_is_taken_where_the_contract_has_it_and_refused_elsewhere(kind: str, state: State) -> None:
    event, target, allowed = STEPS[kind]
    if state in allowed:
        assert fold(run_in(state), event, 9, 2000).state == target
        return
    with pytest.raises(ValueError, match=f"{state} cannot become {target}"):
        fold(run_in(state), event, 9, 2000)


def test_an_accepted_run_is_fresh() -> None:
    run = accept(NEW, "s1", 3)
    assert (run.state, run.accepted_seq, run.accepted_at_ms, run.session_id) == ("accepted", 3, 1000, "s1")
    assert (run.terminal, run.cancel_requested, run.outcome, run.error, run.persisted) == (
        False,
        False,
        None,
        None,
        None,
    )


def test_each_step_stamps_its_own_time() -> None:
    run = accept(NEW, "s1", 1)
    run = fold(run, e.RunStarted(run_id="run_1", message_id="m"), 2, 1100)
    run = fold(run, e.RunFinished(outcome="failed", error=ERROR, result=RunResult("x")), 3, 1200)
    run = fold(run, e.RunPersisted(), 4, 1300)
    assert (run.started_at_ms, run.finished_at_ms, run.settled_at_ms) == (1100, 1200, 1300)
    assert (run.outcome, run.error, run.result, run.terminal) == ("failed", ERROR, RunResult("x"), True)


@pytest.mark.requirement("runs.state-machine.short")
def test_a_run_that_never_started_may_finish() -> None:
    run = fold(accept(NEW, "s1", 1), e.RunFinished(outcome="rejected", error=ERROR), 2, 1200)
    assert (run.state, run.started_at_ms, run.outcome) == ("finished", None, "rejected")


@pytest.mark.requirement("runs.record.error", "runs.lost.unfinished")
@pytest.mark.parametrize("state", ["accepted", "running"])
def test_a_lost_run_that_never_finished_has_the_error(state: State) -> None:
    lost = fold(run_in(state), STEPS["run.lost"][0], 9, 2000)
    assert lost.error is not None and lost.error.code == "server_lost" and not lost.error.retryable
    assert (lost.persist_error, lost.outcome, lost.settled_at_ms) == (None, None, 2000)
    assert lost.persisted is not None and (lost.persisted.revision, lost.persisted.messages, lost.persisted.seq) == (
        "r",
        2,
        7,
    )


@pytest.mark.requirement("runs.lost.finished")
def test_a_lost_run_that_had_finished_keeps_its_outcome_and_has_a_persist_error() -> None:
    finished = fold(run_in("running"), e.RunFinished(outcome="completed"), 5, 1500)
    lost = fold(finished, STEPS["run.lost"][0], 9, 2000)
    assert lost.persist_error is not None and lost.persist_error.code == "server_lost"
    assert (lost.error, lost.outcome) == (None, "completed")


def test_the_first_cancel_stands() -> None:
    run = fold(run_in("running"), e.RunCancelRequested(reason="request", message="stop"), 5, 1500)
    run = fold(run, e.RunCancelRequested(reason="shutdown"), 6, 1600)
    assert run.cancel is not None and (run.cancel.reason, run.cancel.message, run.cancel.at_ms) == (
        "request",
        "stop",
        1500,
    )
    assert run.state == "running" and run.cancel_requested


@pytest.mark.requirement("runs.record.stats")
def test_calls_iterations_and_errors_are_counted() -> None:
    run = run_in("running")
    happened: list[e.Event] = [
        e.MessageAssistant(message_id="m", content=""),
        e.ToolStarted(call_id="1", name="Bash", args={}),
        e.ToolStarted(call_id="2", name="Bash", args={}),
        e.ToolStarted(call_id="3", name="Read", args={}),
        e.ToolFinished(call_id="1", name="Bash", status="ok", result=""),
        e.ToolFinished(call_id="2", name="Bash", status="error", result="", error=""),
        e.MessageAssistant(message_id="m2", content="done"),
    ]
    for seq, event in enumerate(happened):
        run = fold(run, event, seq, 0)
    assert (run.stats.iterations, dict(run.stats.tool_calls), run.stats.tool_errors) == (2, {"Bash": 2, "Read": 1}, 1)


@pytest.mark.requirement("runs.persisted.in-flight")
def test_the_latest_save_is_remembered_with_its_seq() -> None:
    run = run_in("running")
    for seq in (5, 9):
        saved = e.SessionPersisted(revision=f"r{seq}", messages=seq, reason="checkpoint", changed=True)
        run = fold(run, saved, seq, 0)
    assert run.persisted is not None and (run.persisted.revision, run.persisted.messages, run.persisted.seq) == (
        "r9",
        9,
        9,
    )


@pytest.mark.parametrize("state", STATES)
def test_other_events_and_other_lanes_change_nothing(state: State) -> None:
    run = run_in(state)
    assert fold(run, e.Notice(level="info", origin="o", message="m"), 5, 1) is run
    other = e.Source("a", "worker")
    assert fold(run, e.RunFinished(outcome="completed", source=other), 5, 1) is run
    assert fold(run, e.MessageAssistant(message_id="m", content="", source=other), 5, 1) is run


@pytest.mark.requirement("runs.record.terminal")
def test_terminal_states_are_the_contracts() -> None:
    assert frozenset({"persisted", "persist_failed", "lost"}) == TERMINAL
    assert {state for state in STATES if run_in(state).terminal} == TERMINAL
