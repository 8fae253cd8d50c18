"""The inbox: committed requests reach the live run, whoever wrote them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from aura.engine.scope import Scope
from aura.errors import StoreUnavailable
from aura.runs import Cancel
from aura.runtime.inbox import Inbox, PendingAnswer
from aura.store.protocol import Input, InputState
from tests.support.lane import StillAlarm
from tests.support.runtime_kit import NOW_MS, SESSION, FakeStore, make_log, make_run

WAIT_S = 10
CANCEL = Cancel("request", None, NOW_MS)


@pytest.fixture
def store() -> FakeStore:
    made = FakeStore()
    made.runs["run_1"] = make_run()
    return made


@pytest.fixture
def inbox(store: FakeStore) -> Iterator[Inbox]:
    log, _ = make_log()
    made = Inbox(store, log)  # type: ignore[arg-type]
    yield made
    made.close()


def cancelled(scope: Scope) -> threading.Event:
    """Return an event that is set once the scope is cancelled."""
    seen = threading.Event()
    scope._add(seen.set)
    return seen


def resolved(answer: PendingAnswer) -> threading.Event:
    seen = threading.Event()
    answer.add_done_callback(seen.set)
    return seen


def put(store: FakeStore, state: InputState, answer: object) -> None:
    store.inputs["inp_1"] = Input("inp_1", SESSION, "run_1", "ask", state, {}, answer, None)  # type: ignore[arg-type]


def test_a_committed_request_cancels_the_run_after_a_ring(store: FakeStore, inbox: Inbox) -> None:
    scope = Scope(StillAlarm())
    seen = cancelled(scope)
    with inbox.live("run_1", scope):
        store.runs["run_1"] = replace(store.runs["run_1"], cancel=CANCEL)
        store.ring()
        assert seen.wait(WAIT_S)
    assert scope.reason == "request"


def test_a_request_that_came_before_the_run_was_live_is_seen_without_a_ring(store: FakeStore, inbox: Inbox) -> None:
    scope = Scope(StillAlarm())
    store.runs["run_1"] = replace(store.runs["run_1"], cancel=CANCEL)
    seen = cancelled(scope)
    with inbox.live("run_1", scope):
        assert seen.wait(WAIT_S)


@pytest.mark.parametrize(("state", "answer"), [("answered", "blue"), ("answered", ["a"]), ("dismissed", None)])
def test_a_committed_answer_resolves_the_question(
    store: FakeStore, inbox: Inbox, state: InputState, answer: object
) -> None:
    with inbox.live("run_1", Scope(StillAlarm())), inbox.expect("run_1", "inp_1") as pending:
        put(store, "pending", None)
        store.ring()
        put(store, state, answer)
        store.ring()
        assert resolved(pending).wait(WAIT_S)
        assert (pending.ended, pending.result()) == (True, answer)


def test_a_pending_question_and_a_strangers_answer_resolve_nothing(store: FakeStore, inbox: Inbox) -> None:
    scope = Scope(StillAlarm())
    with inbox.live("run_1", scope), inbox.expect("run_1", "inp_1") as pending:
        put(store, "pending", None)
        store.inputs["inp_2"] = Input("inp_2", SESSION, "run_1", "ask", "answered", {}, "other", None)
        store.runs["run_1"] = replace(store.runs["run_1"], cancel=CANCEL)
        store.ring()
        assert cancelled(scope).wait(WAIT_S), "the rows were looked at"
        assert pending.ended is False


def test_an_unreadable_store_is_looked_at_again_at_the_next_ring(store: FakeStore, inbox: Inbox) -> None:
    scope = Scope(StillAlarm())
    seen = cancelled(scope)
    store.failure = StoreUnavailable("the disk failed")
    with inbox.live("run_1", scope):
        store.ring()
        store.runs["run_1"] = replace(store.runs["run_1"], cancel=CANCEL)
        store.failure = None
        store.ring()
        assert seen.wait(WAIT_S)


def test_it_listens_only_while_a_run_is_live(store: FakeStore, inbox: Inbox) -> None:
    assert store.listeners == []
    store.runs["run_2"] = make_run("run_2")
    with inbox.live("run_1", Scope(StillAlarm())):
        with inbox.live("run_2", Scope(StillAlarm())):
            assert len(store.listeners) == 1
        assert len(store.listeners) == 1
    assert store.listeners == []


def test_the_first_resolution_of_an_answer_counts() -> None:
    answer = PendingAnswer()
    calls: list[object] = []
    answer.add_done_callback(lambda: calls.append(answer.result()))
    answer.resolve("first")
    answer.resolve("second")
    answer.cancel()
    answer.add_done_callback(lambda: calls.append("late"))
    assert (answer.result(), calls) == ("first", ["first", "late"])
