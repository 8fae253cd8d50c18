"""The gevent waiter with a real hub: calls leave it free, rings from threads arrive, errors cross quietly."""

from __future__ import annotations

import threading
import time

import gevent
import pytest

from aura.api.server import make_waiter
from aura.api.waiter import GeventWaiter, Waiter
from aura.errors import NotFound
from aura.runtime.feeds import Signal


@pytest.fixture(scope="module")
def hub_waiter() -> Waiter:
    return make_waiter("gevent")


def test_a_call_runs_on_another_thread_and_leaves_the_hub_free(hub_waiter: Waiter) -> None:
    release, ticks = threading.Event(), []

    def tick() -> None:
        for _ in range(5):
            gevent.sleep(0.001)
            ticks.append(1)
        release.set()

    ticking = gevent.spawn(tick)
    ident = hub_waiter.call(lambda: (release.wait(10), threading.get_ident()))
    assert ident[0], "the hub went on while the call was blocked"
    assert ident[1] != threading.get_ident()
    ticking.join()
    assert len(ticks) == 5


def test_arguments_pass_and_errors_are_raised_without_being_printed(
    hub_waiter: Waiter, capfd: pytest.CaptureFixture[str]
) -> None:
    assert hub_waiter.call(divmod, 7, 2) == (3, 1)
    assert hub_waiter.call(int, "ff", base=16) == 255

    def fail() -> None:
        raise NotFound("nothing")

    with pytest.raises(NotFound, match="nothing"):
        hub_waiter.call(fail)
    assert capfd.readouterr().err == ""


def test_calls_beyond_the_pool_wait_for_their_turn() -> None:
    waiter = GeventWaiter(calls_max_count=2)
    started = [gevent.spawn(waiter.call, time.sleep, 0.01) for _ in range(12)]
    assert len(gevent.joinall(started, timeout=10)) == 12


@pytest.mark.parametrize("kind", ["gevent", "waitress"])
def test_no_ring_is_lost_between_looking_and_waiting(kind: str) -> None:
    waiter = make_waiter(kind)  # type: ignore[arg-type]
    signal, done = make_on_thread(waiter), []
    value = 0

    def write() -> None:
        nonlocal value
        for number in range(1, 301):
            value = number
            signal.ring()
            if number % 10 == 0:
                time.sleep(0.001)  # lets the reader come to rest now and then
        done.append(True)

    writer = threading.Thread(target=write)
    writer.start()
    deadline = time.monotonic() + 20
    while True:
        seen = signal.generation
        if value == 300:
            break
        assert time.monotonic() < deadline
        signal.wait(seen, 20_000)
    writer.join()
    assert done


@pytest.mark.parametrize("kind", ["gevent", "waitress"])
def test_a_wait_ends_with_its_time_and_at_once_when_the_generation_has_moved(kind: str) -> None:
    waiter = make_waiter(kind)  # type: ignore[arg-type]
    signal = make_on_thread(waiter)
    started = time.monotonic()
    signal.wait(signal.generation, 50)
    assert 0.04 <= time.monotonic() - started < 5
    signal.wait(signal.generation - 1, 60_000)
    assert time.monotonic() - started < 5


def test_closing_wakes_all_who_wait(hub_waiter: Waiter) -> None:
    signal = make_on_thread(hub_waiter)
    waiting = [gevent.spawn(signal.wait, signal.generation, 60_000) for _ in range(5)]
    gevent.sleep(0)
    threading.Thread(target=signal.close).start()
    assert len(gevent.joinall(waiting, timeout=10)) == 5


def make_on_thread(waiter: Waiter) -> Signal:
    """Make a signal as the feeds do: on a thread that is not the hub's."""
    made: list[Signal] = []
    thread = threading.Thread(target=lambda: made.append(waiter.make_signal()))
    thread.start()
    thread.join()
    return made[0]
