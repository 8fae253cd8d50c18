"""Cancellation: a tree of scopes, each cancelled at most once, for ever, by its first reason (SHAPES.md section 4).

Every wait of the engine goes through a scope, so that a cancel reaches it within milliseconds. A scope starts no work
of its own except the threads of `gather`, and it decides nothing: the reason does, in `run_turn`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol, TypeVar, get_args

from aura import limits

Reason = Literal[
    "request", "shutdown", "deadline", "unclaimed", "client_tool", "input_required", "policy_stop", "lease_lost"
]

REASONS: frozenset[Reason] = frozenset(get_args(Reason))

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Poke = Callable[[], object]


class Cancelled(Exception):
    """The scope was cancelled; `reason` says by what."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class DeadlineHandle(Protocol):
    """A deadline that can be taken back."""

    def cancel(self) -> None:
        """Make sure the callback does not start any more. Any thread."""
        ...


class Alarm(Protocol):
    """What scopes need of the process's one heap of deadlines."""

    def call_later(self, delay_ms: int, callback: Poke) -> DeadlineHandle:
        """Call `callback` once, on the alarm's thread, after `delay_ms`. The callback must not block."""
        ...


class Job(Protocol[T_co]):
    """Work on another thread that a scope can wait for. `concurrent.futures.Future` is not one: see `engine.io`."""

    def cancel(self) -> object:
        """Ask the work to stop. Any thread; never blocks."""
        ...

    def add_done_callback(self, callback: Poke) -> None:
        """Call `callback` when the work has really ended, at once if it has."""
        ...

    def result(self) -> T_co:
        """Return the ended work's value or raise its error."""
        ...

    @property
    def ended(self) -> bool:
        """True once the other side has really stopped."""
        ...


class Scope:
    """A node of the cancellation tree. All methods may be called from any thread, except where they say otherwise."""

    def __init__(self, alarm: Alarm, parent: Scope | None = None) -> None:
        self._alarm = alarm
        self._lock = threading.Lock()
        self._reason: Reason | None = None
        self._pokes: dict[object, Poke] = {}
        self._cancelled = threading.Event()
        self._detach: Callable[[], None] = lambda: None
        if parent is not None:
            token = parent._add(lambda: self.cancel(parent._reason or "request"))
            self._detach = lambda: parent._remove(token)

    @property
    def reason(self) -> Reason | None:
        """The first reason given to `cancel`, or None."""
        return self._reason

    def cancel(self, reason: Reason) -> bool:
        """Cancel this scope and its children; return False if it was cancelled before.

        Pokes run in the caller's thread. They only set, shut or signal; they never wait.
        """
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            pokes = list(self._pokes.values())
        self._cancelled.set()
        for poke in pokes:
            poke()
        return True

    def check(self) -> None:
        """Raise `Cancelled` if the scope is cancelled."""
        if self._reason is not None:
            raise Cancelled(self._reason)

    @contextmanager
    def poke(self, callback: Poke) -> Iterator[None]:
        """While the block runs, `callback` is called once at cancellation, or at once if that has happened."""
        token = self._add(callback)
        try:
            yield
        finally:
            self._remove(token)

    def sleep(self, delay_ms: int) -> None:
        """Return after `delay_ms`; raise `Cancelled` as soon as the scope is cancelled."""
        self._cancelled.wait(delay_ms / 1000)
        self.check()

    def wait(self, job: Job[T], timeout_ms: int | None = None) -> T:
        """Return the job's value, or raise its error, or `TimeoutError` after `timeout_ms`.

        On cancellation or time-out the job is cancelled, and the other side is given `limits.CANCEL_JOIN_MS` to stop
        before `Cancelled` is raised here.
        """
        changed = threading.Condition()

        def notify() -> None:
            with changed:
                changed.notify_all()

        job.add_done_callback(notify)
        with self.poke(notify), changed:
            changed.wait_for(lambda: job.ended or self._reason is not None, _seconds(timeout_ms))
            if not job.ended:
                job.cancel()
                changed.wait_for(lambda: job.ended, _seconds(limits.CANCEL_JOIN_MS))
                self.check()
                raise TimeoutError(f"no answer within {timeout_ms} ms")
        self.check()
        return job.result()

    def child(self, deadline_ms: int | None = None) -> Scope:
        """Return a scope that is cancelled with this one, or with reason `deadline` after `deadline_ms`."""
        child = Scope(self._alarm, self)
        if deadline_ms is not None:
            child._expire_after(deadline_ms)
        return child

    def shield(self, grace_ms: int) -> Scope:
        """Return a scope for clean-up: this one's cancellation does not reach it, its own deadline does."""
        shield = Scope(self._alarm)
        shield._expire_after(grace_ms)
        return shield

    def close(self) -> None:
        """Leave the tree: later cancellations of the parent no longer reach this scope."""
        self._detach()

    def gather(self, jobs: Sequence[Callable[[Scope], T]], limit: int) -> list[T | Exception]:
        """Run `jobs` on at most `limit` threads and return their results in order, an exception in place of a value.

        All threads have ended when this returns. A failure does not cancel its siblings. Not to be called on a shared
        pool's thread: nested waits would deadlock there.
        """
        results: dict[int, T | Exception] = {}
        positions = iter(range(len(jobs)))
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    position = next(positions, None)
                if position is None:
                    return
                results[position] = _attempt(jobs[position], self)

        threads = [threading.Thread(target=work, name=f"gather-{n}", daemon=True) for n in range(min(limit, len(jobs)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [results[position] for position in range(len(jobs))]

    def _expire_after(self, deadline_ms: int) -> None:
        handle = self._alarm.call_later(deadline_ms, lambda: self.cancel("deadline"))
        detach = self._detach

        def leave() -> None:
            handle.cancel()
            detach()

        self._detach = leave

    def _add(self, callback: Poke) -> object:
        token = object()
        with self._lock:
            if self._reason is None:
                self._pokes[token] = callback
                return token
        callback()
        return token

    def _remove(self, token: object) -> None:
        with self._lock:
            self._pokes.pop(token, None)


def _attempt(job: Callable[[Scope], T], parent: Scope) -> T | Exception:
    scope = parent.child()
    try:
        return job(scope)
    except Exception as error:  # noqa: BLE001 the caller gets it in place of a value
        return error
    finally:
        scope.close()


def _seconds(delay_ms: int | None) -> float | None:
    return None if delay_ms is None else delay_ms / 1000
