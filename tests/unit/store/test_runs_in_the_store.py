"""Accepting, folding, cancelling and answering, over a real database."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aura import events as e
from aura.conversation import Call
from aura.errors import (
    BadRequest,
    Busy,
    Internal,
    LeaseLost,
    NotFound,
    NotPending,
    RequestConflict,
)
from aura.ids import new_run_id
from aura.runs import RunError
from aura.store import protocol as p
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, Keeper, Reopen, header, new_run, query


@pytest.mark.requirement("events.run")
def test_a_run_goes_through_its_states_and_every_event_carries_the_record_after_it(keeper: Keeper) -> None:
    run = keeper.accept()
    assert (run.state, run.accepted_seq, run.accepted_at_ms) == ("accepted", 1, NOW_MS)
    keeper.start(run)
    assert keeper.store.get_run(run.id).state == "running"
    settled = keeper.finish(run, "forty-two")
    assert settled == keeper.store.get_run(run.id)
    assert (settled.state, settled.outcome, settled.terminal) == ("persisted", "completed", True)
    assert settled.result is not None and settled.result.content == "forty-two"
    summary = keeper.store.get_session("s1")
    assert settled.persisted is not None
    assert (settled.persisted.revision, settled.persisted.messages) == (summary.revision, 2)
    rows = keeper.store.read_events("s1", 0, 100)
    assert [row.type for row in rows] == [
        "run.accepted", "message.user", "run.started", "message.assistant", "run.finished", "session.persisted",
        "run.persisted",
    ]  # fmt: skip
    assert rows[5].seq == settled.persisted.seq
    assert b'"state":"persisted","terminal":true' in rows[6].line


def test_the_same_request_again_returns_the_run_and_writes_nothing(keeper: Keeper) -> None:
    new = new_run()
    first = keeper.store.accept(keeper.lease, new)
    commits = keeper.store.commit_count
    again = keeper.store.accept(keeper.lease, new_run(new.request_id))
    assert (first.created, again.created, again.run) == (True, False, first.run)
    assert keeper.store.commit_count == commits
    assert keeper.store.read_last_seq("s1") == 1


def test_the_same_request_id_with_another_body_is_a_conflict_also_when_the_run_has_settled(keeper: Keeper) -> None:
    run = keeper.complete("r1")
    with pytest.raises(RequestConflict) as caught:
        keeper.store.accept(keeper.lease, new_run("r1", "something else"))
    assert caught.value.details["run_id"] == run.id
    with pytest.raises(RequestConflict):
        keeper.store.accept(keeper.lease, new_run("r1", on_input="wait"))
    assert keeper.store.accept(keeper.lease, new_run("r1")).run == run


def test_a_second_run_is_busy_until_the_first_has_settled(keeper: Keeper) -> None:
    run = keeper.accept("r1")
    with pytest.raises(Busy) as caught:
        keeper.accept("r2")
    assert caught.value.details == {"run_id": run.id}
    keeper.start(run)
    keeper.finish(run)
    assert keeper.accept("r2").state == "accepted"


@pytest.mark.requirement("runs.idempotency.per-session")
def test_one_request_id_in_two_sessions_makes_two_runs(keeper: Keeper) -> None:
    keeper.store.create_session(header("s2"))
    other = Keeper(keeper.store, "s2")
    one, two = keeper.accept("r1"), other.accept("r1")
    assert one.id != two.id
    found = keeper.store.find_request("s2", "r1")
    assert found is not None and found.id == two.id
    other.release()


def test_twenty_threads_with_one_request_id_make_one_run(keeper: Keeper) -> None:
    barrier = threading.Barrier(20)
    results: list[p.Accepted] = []

    def submit() -> None:
        barrier.wait(10)
        results.append(keeper.store.accept(keeper.lease, new_run("same")))

    threads = [threading.Thread(target=submit) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 20
    assert len({result.run.id for result in results}) == 1
    assert sum(result.created for result in results) == 1
    assert [row.type for row in keeper.store.read_events("s1", 0, 100)] == ["run.accepted"]


@pytest.mark.requirement("runs.state-machine")
def test_a_forbidden_transition_is_refused_and_leaves_nothing(keeper: Keeper) -> None:
    run = keeper.accept()
    with pytest.raises(Internal):
        keeper.commit([e.Notice(level="info", origin="x", message="lost with its batch"), e.RunPersisted()], run.id)
    assert keeper.store.read_last_seq("s1") == 1
    assert keeper.store.get_run(run.id) == run


def test_a_settled_run_takes_no_further_event(keeper: Keeper) -> None:
    run = keeper.complete()
    with pytest.raises(Internal):
        keeper.commit([e.Notice(level="info", origin="x", message="late")], run.id)
    assert keeper.store.read_last_seq("s1") == 7


def test_an_event_for_a_run_of_another_session_is_refused(keeper: Keeper) -> None:
    keeper.store.create_session(header("s2"))
    other = Keeper(keeper.store, "s2")
    run = other.accept()
    with pytest.raises(NotFound):
        keeper.commit([e.Notice(level="info", origin="x", message="m")], run.id)
    with pytest.raises(NotFound):
        keeper.commit([e.Notice(level="info", origin="x", message="m")], new_run_id(NOW_MS))
    other.release()


@pytest.mark.requirement("runs.persist-failed")
def test_a_failed_save_keeps_the_outcome(keeper: Keeper) -> None:
    run = keeper.accept()
    keeper.start(run)
    error = RunError("persist_failed", "no room", details={"reason": "full"})
    keeper.commit([e.RunFinished(outcome="completed"), e.SessionPersistFailed(error=error, reason="run")], run.id)
    receipt = keeper.commit([e.RunPersistFailed(error=error)], run.id)
    assert receipt.run is not None
    assert (receipt.run.state, receipt.run.outcome, receipt.run.persist_error) == (
        "persist_failed",
        "completed",
        error,
    )


@pytest.mark.requirement("runs.cancel.journaled")
def test_a_cancel_is_noted_once_and_never_on_a_settled_run(keeper: Keeper) -> None:
    run = keeper.accept()
    first = keeper.store.request_cancel(run.id, reason="request", message="stop it", at_ms=NOW_MS + 5)
    again = keeper.store.request_cancel(run.id, reason="shutdown", message=None, at_ms=NOW_MS + 9)
    assert first == again and first.cancel is not None
    assert (first.cancel.reason, first.cancel.message, first.cancel.at_ms) == ("request", "stop it", NOW_MS + 5)
    assert [row.type for row in keeper.store.read_events("s1", 1, 10)] == ["run.cancel_requested"]
    keeper.start(run)
    settled = keeper.finish(run)
    assert settled.cancel_requested
    assert keeper.store.request_cancel(run.id, reason="request", message=None, at_ms=NOW_MS) == settled
    with pytest.raises(NotFound):
        keeper.store.request_cancel(new_run_id(NOW_MS), reason="request", message=None, at_ms=NOW_MS)


def ask(keeper: Keeper, input_id: str = "inp_1") -> str:
    run = keeper.accept(on_input="wait")
    keeper.start(run)
    keeper.commit([e.InputRequired(input_id=input_id, input_kind="ask", question="Which?")], run.id)
    return run.id


def test_the_first_answer_wins(keeper: Keeper) -> None:
    run_id = ask(keeper)
    assert [item.state for item in keeper.store.list_inputs(run_id)] == ["pending"]
    answered = keeper.store.answer("inp_1", {"answer": ["é", 1]}, answered_by="me", at_ms=NOW_MS)
    assert (answered.state, answered.answer, answered.kind) == ("answered", {"answer": ["é", 1]}, "ask")
    with pytest.raises(NotPending):
        keeper.store.answer("inp_1", "late", answered_by="you", at_ms=NOW_MS)
    with pytest.raises(NotFound):
        keeper.store.answer("inp_2", "x", answered_by="me", at_ms=NOW_MS)
    last = keeper.store.read_events("s1", 4, 10)
    assert [row.type for row in last] == ["input.resolved"]
    assert keeper.store.get_input("inp_1") == answered


def test_an_input_can_be_dismissed_and_is_not_pending_after_its_run(keeper: Keeper) -> None:
    run_id = ask(keeper)
    assert keeper.store.answer("inp_1", None, answered_by="shutdown", at_ms=NOW_MS).state == "dismissed"
    keeper.commit([e.InputRequired(input_id="inp_2", input_kind="confirm", question="Sure?")], run_id)
    keeper.commit([e.RunFinished(outcome="completed"), e.RunPersisted()], run_id)
    with pytest.raises(NotPending):
        keeper.store.answer("inp_2", True, answered_by="me", at_ms=NOW_MS)


def test_runs_are_listed_newest_first_with_cursors_and_filters(keeper: Keeper) -> None:
    done = [keeper.complete(f"r{index}").id for index in range(4)]
    live = keeper.accept("r9").id
    everything = [*reversed(done), live]
    everything = [live, *reversed(done)]
    assert [run.id for run in keeper.store.list_runs(p.RunFilter("s1")).items] == everything
    assert [run.id for run in keeper.store.list_runs(p.RunFilter("s1", live=True)).items] == [live]
    assert [run.id for run in keeper.store.list_runs(p.RunFilter(live=False)).items] == everything[1:]
    seen: list[str] = []
    page = keeper.store.list_runs(p.RunFilter(), None, 2)
    seen += [run.id for run in page.items]
    while page.next_cursor:
        page = keeper.store.list_runs(p.RunFilter(), page.next_cursor, 2)
        seen += [run.id for run in page.items]
    assert seen == everything
    with pytest.raises(BadRequest):
        keeper.store.list_runs(p.RunFilter(), "run_unknown", 2)
    with pytest.raises(NotFound):
        keeper.store.get_run("run_unknown")


def test_tool_calls_and_usage_are_rows_and_views(keeper: Keeper, folder: Path) -> None:
    run = keeper.accept()
    keeper.start(run)
    usage = e.Usage(provider="script", model="m", input_tokens=100, output_tokens=20, cost_usd=0.5)
    calls = (Call("c1", "Bash", {"command": "ls"}), Call("c2", "Read", {}), Call("c3", "Write", {}))
    keeper.commit([e.MessageAssistant(message_id="msg_a", content="", tool_calls=calls, usage=usage)], run.id)
    keeper.commit([e.ToolStarted(call_id="c1", name="Bash", args={"command": "ls"})], run.id, at_ms=NOW_MS + 10)
    keeper.store.note_process(keeper.lease, run.id, "c1", 77, "12345")
    keeper.commit([e.ToolStarted(call_id="c2", name="Read", args={})], run.id)
    assert keeper.store.list_processes(run.id) == [(77, "12345")]
    done = e.ToolFinished(call_id="c1", name="Bash", status="ok", result="é")
    bad = e.ToolFinished(call_id="c2", name="Read", status="error", result="no", error="no")
    keeper.commit([done, bad], run.id, at_ms=NOW_MS + 35)
    assert keeper.store.list_processes(run.id) == []
    database = folder / "aura.db"
    rows = query(database, "SELECT call_id, name, status, duration_ms, args_bytes, result_bytes FROM v_tool_call")
    assert rows == [
        ("c1", "Bash", "ok", 25, 16, 2),
        ("c2", "Read", "error", 35, 2, 2),
        ("c3", "Write", "requested", None, 2, None),
    ]
    keeper.commit([e.RunFinished(outcome="completed"), e.RunPersisted()], run.id)
    statuses = query(database, "SELECT status FROM v_tool_call ORDER BY call_id")
    assert statuses == [("ok",), ("error",), ("unknown",)]
    settled = keeper.store.get_run(run.id)
    assert (dict(settled.stats.tool_calls), settled.stats.tool_errors, settled.stats.iterations) == (
        {"Bash": 1, "Read": 1},
        1,
        1,
    )
    assert query(database, "SELECT provider, model, input_tokens, output_tokens, cost_usd FROM v_usage") == [
        ("script", "m", 100, 20, 0.5)
    ]


def test_events_of_another_lane_are_notices_and_do_not_count(keeper: Keeper) -> None:
    run = keeper.accept()
    keeper.start(run)
    worker = e.Source("a2", "worker", task_id="t1")
    keeper.commit([e.MessageAssistant(message_id="m", content="x", source=worker)], run.id)
    row = keeper.store.read_events("s1", 3, 10)[0]
    assert (row.type, row.kind) == ("notice", "message.assistant")
    assert keeper.store.get_run(run.id).stats.iterations == 0


def test_a_lone_surrogate_in_a_prompt_or_id_loses_no_run(keeper: Keeper, folder: Path) -> None:
    run = keeper.accept(text="half \ud83d of a pair")
    assert query(folder / "aura.db", "SELECT text FROM v_run") == [("half \ufffd of a pair",)]
    assert keeper.store.find_session("\udcff") is None
    with pytest.raises(NotFound):
        keeper.store.get_run("run_\udcff")
    assert keeper.store.get_run(run.id).state == "accepted"


def test_another_process_cancels_and_answers_while_the_session_is_held(keeper: Keeper, reopen: Reopen) -> None:
    heard = threading.Event()
    subscription = keeper.store.watch(lambda _: heard.set(), poll_ms=50, control=True)
    run_id = ask(keeper)
    other = reopen()
    other.create_session(header("s2"))
    assert heard.wait(5), "a first commit from elsewhere, so that the next ring is for the next one"
    heard.clear()
    assert other.request_cancel(run_id, reason="request", message=None, at_ms=NOW_MS).cancel_requested
    assert heard.wait(0.25 + 0.5), "the holder hears of it within 250 ms (and some for a busy machine)"
    assert keeper.store.get_run(run_id).cancel_requested
    assert other.answer("inp_1", "yes", answered_by="other", at_ms=NOW_MS).state == "answered"
    # The holder goes on: its next commit continues the other's seq.
    receipt = keeper.commit([e.RunFinished(outcome="cancelled")], run_id)
    assert receipt.first_seq == 7
    subscription.close()


def test_a_control_listener_does_not_hear_the_holders_own_commits(keeper: Keeper) -> None:
    rings: list[object] = []
    keeper.store.watch(rings.append, control=True)
    everything: list[object] = []
    keeper.store.watch(everything.append)
    run = keeper.accept()
    keeper.start(run)
    assert rings == []
    assert everything == [frozenset({"s1"})] * 2
    keeper.store.request_cancel(run.id, reason="request", message=None, at_ms=NOW_MS)
    assert rings == [frozenset({"s1"})]


def test_a_released_lease_writes_nothing_more(store: SqliteStore) -> None:
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    keeper.release()
    with pytest.raises(LeaseLost):
        keeper.accept()
    with pytest.raises(LeaseLost):
        keeper.commit([e.Notice(level="info", origin="x", message="m")])
    assert store.read_last_seq("s1") == 0
