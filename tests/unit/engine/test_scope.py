"""Scopes: the first reason for ever, every wait ends with it, clean-up is out of its reach."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from aura.engine.scope import Cancelled, Poke, Scope
from tests.support.lane import StillAlarm
from tests.support.runtime_kit import ManualAlarm

WAIT_S = 10


@dataclass
class Work:
    """A job that ends when the test says so; with `stubborn` a cancel does not end it."""

    stubborn: bool = False
    value: object = "value"
    ended: bool = False
    cancels: int = 0
    callbacks: list[Callable[[], object]] = field(default_factory=list)
    waited_for: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        self.cancels += 1
        if not self.stubborn:
            self.end()

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        self.callbacks.append(callback)
        self.waited_for.set()

    def result(self) -> object:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def end(self) -> None:
        self.ended = True
        for callback in self.callbacks:
            callback()


@pytest.fixture
def scope() -> Scope:
    return Scope(StillAlarm())


def outcome_of(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Do `act` on a thread; return it and the list that gets its value or its error."""
    results: list[object] = []

    def work() -> None:
        try:
            results.append(act())
        except Exception as error:  # noqa: BLE001 the test looks at it
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, results


def test_the_first_reason_counts_for_ever(scope: Scope) -> None:
    scope.check()
    assert scope.reason is None
    assert scope.cancel("shutdown") is True
    assert scope.cancel("request") is False
    assert scope.reason == "shutdown"
    with pytest.raises(Cancelled) as caught:
        scope.check()
    assert caught.value.reason == "shutdown"


def test_a_cancel_reaches_children_of_children_with_its_reason(scope: Scope) -> None:
    child = scope.child()
    grandchild = child.child()
    sibling = scope.child()
    child.cancel("deadline")
    assert (grandchild.reason, scope.reason, sibling.reason) == ("deadline", None, None)
    scope.cancel("request")
    assert (child.reason, sibling.reason) == ("deadline", "request")
    assert scope.child().reason == "request"


def test_a_closed_child_is_out_of_reach(scope: Scope) -> None:
    child = scope.child()
    child.close()
    scope.cancel("request")
    assert child.reason is None


def test_a_deadline_cancels_a_child_unless_it_was_closed() -> None:
    alarm = ManualAlarm()
    scope = Scope(alarm)
    child, shield = scope.child(100), scope.shield(200)
    assert [delay for delay, _ in alarm.waiting] == [100, 200]
    scope.cancel("request")
    assert (child.reason, shield.reason) == ("request", None), "clean-up goes on after a cancel"
    alarm.ring()
    assert shield.reason == "deadline"


def test_a_poke_is_called_once_or_at_once(scope: Scope) -> None:
    calls: list[str] = []
    with scope.poke(lambda: calls.append("left")):
        pass
    with scope.poke(lambda: calls.append("inside")):
        scope.cancel("request")
        scope.cancel("request")
    with scope.poke(lambda: calls.append("late")):
        assert calls == ["inside", "late"]


def test_a_wait_returns_the_value_or_raises_the_error(scope: Scope) -> None:
    for value in ("value", None):
        work = Work(value=value)
        thread, results = outcome_of(lambda work=work: scope.wait(work))
        assert work.waited_for.wait(WAIT_S)
        work.end()
        thread.join(WAIT_S)
        assert results == [value]
    broken = Work(value=ValueError("no"), ended=True)
    with pytest.raises(ValueError, match="no"):
        scope.wait(broken)
    assert broken.cancels == 0


def test_a_cancel_ends_a_wait_and_the_work(scope: Scope) -> None:
    work = Work()
    thread, results = outcome_of(lambda: scope.wait(work))
    assert work.waited_for.wait(WAIT_S)
    scope.cancel("request")
    thread.join(WAIT_S)
    assert [str(result) for result in results] == ["request"]
    assert (work.cancels, work.ended) == (1, True)


def test_work_that_does_not_stop_is_left_after_a_while(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aura.limits.CANCEL_JOIN_MS", 10)
    work = Work(stubborn=True)
    scope.cancel("shutdown")
    with pytest.raises(Cancelled):
        scope.wait(work)
    assert work.cancels == 1


def test_a_cancel_beats_a_value_that_comes_in_the_same_instant(scope: Scope) -> None:
    scope.cancel("request")
    with pytest.raises(Cancelled):
        scope.wait(Work(ended=True))


def test_a_wait_can_time_out(scope: Scope) -> None:
    work = Work()
    with pytest.raises(TimeoutError):
        scope.wait(work, timeout_ms=1)
    assert work.cancels == 1
    assert scope.reason is None


def test_a_sleep_ends_with_the_scope(scope: Scope) -> None:
    scope.sleep(0)
    thread, results = outcome_of(lambda: scope.sleep(60_000))
    scope.cancel("request")
    thread.join(WAIT_S)
    assert isinstance(results[0], Cancelled)


@pytest.mark.parametrize("limit", [1, 3, 99])
def test_gathered_jobs_answer_in_order_with_errors_in_place(scope: Scope, limit: int) -> None:
    def job(number: int) -> Callable[[Scope], int]:
        def work(_: Scope) -> int:
            return number if number % 3 else number // 0

        return work

    results = scope.gather([job(number) for number in range(10)], limit)
    assert [result if isinstance(result, int) else type(result) for result in results] == [
        number if number % 3 else ZeroDivisionError for number in range(10)
    ]
    assert scope._pokes == {}, "the jobs' scopes have left the tree"
    assert scope.gather([], limit) == []


def test_gathered_jobs_run_at_the_same_time_up_to_the_limit(scope: Scope) -> None:
    together = threading.Barrier(3, timeout=WAIT_S)
    assert len(scope.gather([lambda _: together.wait()] * 3, 3)) == 3
    running, most, lock = [0], [0], threading.Lock()

    def job(_: Scope) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1

    scope.gather([job] * 20, 2)
    assert most[0] <= 2


def test_a_cancel_reaches_gathered_jobs_and_all_of_them_end(scope: Scope) -> None:
    begun = threading.Barrier(3, timeout=WAIT_S)

    def job(inner: Scope) -> None:
        begun.wait()
        inner.sleep(60_000)

    thread, results = outcome_of(lambda: scope.gather([job] * 2, 2))
    begun.wait()
    scope.cancel("request")
    thread.join(WAIT_S)
    (gathered,) = results
    assert isinstance(gathered, list)
    assert [str(result) for result in gathered] == ["request", "request"]


def test_many_cancels_at_once_have_one_winner(scope: Scope) -> None:
    start = threading.Barrier(8, timeout=WAIT_S)
    pokes: list[Poke] = []
    wins: list[bool] = []

    def race() -> None:
        start.wait()
        wins.append(scope.cancel("request"))

    with scope.poke(lambda: pokes.append(race)):
        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
    assert (wins.count(True), len(pokes)) == (1, 1)
