"""The alarm: deadlines in order, once, unless they are taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from aura import limits
from aura.clock import SystemClock
from aura.runtime.alarm import AlarmThread

WAIT_S = 10


@dataclass
class SetClock:
    """A clock that the test moves."""

    at_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def alarm(clock: SetClock) -> Iterator[AlarmThread]:
    made = AlarmThread(clock)
    yield made
    made.close()


def pass_through(alarm: AlarmThread) -> None:
    """Return when everything that is due has been called: a deadline of now comes after all earlier ones."""
    done = threading.Event()
    alarm.call_later(0, done.set)
    assert done.wait(WAIT_S)


def test_deadlines_pass_in_the_order_of_their_time(alarm: AlarmThread, clock: SetClock) -> None:
    called: list[str] = []
    for delay_ms, name in ((30, "c"), (10, "a"), (20, "b"), (20, "b2"), (99, "never")):
        alarm.call_later(delay_ms, lambda name=name: called.append(name))
    pass_through(alarm)
    assert called == []
    clock.at_ms = 30
    pass_through(alarm)
    assert called == ["a", "b", "b2", "c"]


def test_a_deadline_that_was_taken_back_does_not_pass(alarm: AlarmThread, clock: SetClock) -> None:
    called: list[str] = []
    alarm.call_later(10, lambda: called.append("a")).cancel()
    alarm.call_later(10, lambda: called.append("b"))
    clock.at_ms = 10
    pass_through(alarm)
    pass_through(alarm)
    assert called == ["b"]


def test_deadlines_that_were_taken_back_do_not_pile_up_and_the_others_stay(alarm: AlarmThread, clock: SetClock) -> None:
    called: list[int] = []
    most = 0
    for number in range(20 * limits.ALARM_SWEEP_COUNT):
        deadline = alarm.call_later(1_000, partial(called.append, number))
        if number % 100:
            deadline.cancel()
        most = max(most, len(alarm._heap))
    assert most < 3 * limits.ALARM_SWEEP_COUNT
    clock.at_ms = 1_000
    pass_through(alarm)
    assert called == list(range(0, 20 * limits.ALARM_SWEEP_COUNT, 100))


def test_an_earlier_deadline_is_not_kept_waiting_by_a_later_one() -> None:
    alarm = AlarmThread(SystemClock())
    try:
        alarm.call_later(3_600_000, lambda: None)
        pass_through(alarm)
    finally:
        alarm.close()


def test_a_deadline_may_set_the_next_one(alarm: AlarmThread) -> None:
    done = threading.Event()
    alarm.call_later(0, lambda: alarm.call_later(0, done.set))
    assert done.wait(WAIT_S)


def test_a_callback_that_fails_is_logged_and_does_not_stop_the_others(
    alarm: AlarmThread, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    alarm.call_later(0, fail)
    pass_through(alarm)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_closing_drops_what_is_left(clock: SetClock) -> None:
    alarm = AlarmThread(clock)
    called: list[str] = []
    alarm.call_later(10, lambda: called.append("a"))
    alarm.close()
    assert called == []
