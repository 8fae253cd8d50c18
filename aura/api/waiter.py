"""How the api waits: native calls off the hub, and signals that wake readers (DESIGN.md section 3).

Two kinds: the gevent hub, where a blocking call would stop every client, and plain threads, where it stops nobody else.
Nothing is monkey patched. This module knows no HTTP and no event.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, Protocol, TypeVar

from aura import limits
from aura.runtime.feeds import Signal
from aura.runtime.signals import ThreadSignal

if TYPE_CHECKING:
    from gevent.event import Event

P = ParamSpec("P")
T = TypeVar("T")

ServerKind = Literal["gevent", "waitress"]


class Waiter(Protocol):
    """The ways to wait of one HTTP server. `make_signal` may be called from any thread, the rest by its handlers."""

    @property
    def kind(self) -> ServerKind:
        """The server that it is for."""
        ...

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function` returns, or raise what it raises. It may block: no other client waits for it."""
        ...

    def make_signal(self) -> Signal:
        """Return a fresh signal. Any thread may ring it; only handlers of this server may wait on it."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        ...


class ThreadWaiter:
    """Plain threads: calls are direct, signals are conditions."""

    kind: ServerKind = "waitress"

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` on this thread."""
        return function(*args, **kwargs)

    def make_signal(self) -> Signal:
        """Return a signal for threads."""
        return ThreadSignal()

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        return time.monotonic_ns() // 1_000_000


class GeventWaiter:
    """The gevent hub of the thread that makes it: the main one. Handlers are greenlets of that hub.

    One async watcher serves all signals. A ring may be merged with others of the same signal, never lost.
    """

    kind: ServerKind = "gevent"

    def __init__(self, *, calls_max_count: int = limits.API_CALLS_MAX_COUNT) -> None:
        from gevent import get_hub
        from gevent.threadpool import ThreadPool

        hub = get_hub()
        self._pool = ThreadPool(calls_max_count, hub=hub)
        self._rung: deque[_HubSignal] = deque()
        self._bell = hub.loop.async_()
        self._bell.start(self._wake)

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` on a native thread; this greenlet waits, the hub does not."""
        outcome = _Outcome(partial(function, *args, **kwargs))
        self._pool.spawn(outcome.run).get()
        return outcome.get()

    def make_signal(self) -> Signal:
        """Return a signal whose waiters are greenlets of the hub."""
        return _HubSignal(self._ring)

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        return time.monotonic_ns() // 1_000_000

    def _ring(self, signal: _HubSignal) -> None:
        self._rung.append(signal)
        self._bell.send()

    def _wake(self) -> None:
        while self._rung:
            self._rung.popleft().advance()


class _Outcome(Generic[T]):
    """What a call came to. An error is carried, not raised: the pool would print it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._value: tuple[T] | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = (self._function(),)
        except BaseException as error:  # noqa: BLE001 raised again by `get`, on the greenlet that asked
            self._error = error

    def get(self) -> T:
        if self._value is not None:
            return self._value[0]
        assert self._error is not None, "a call is over before its outcome is asked for"
        raise self._error


class _HubSignal:
    """Generation and event belong to the hub thread, so checking and then waiting cannot miss a ring."""

    def __init__(self, ring: Callable[[_HubSignal], None]) -> None:
        self._ring = ring
        self._generation = 0
        self._event: Event | None = None

    @property
    def generation(self) -> int:
        return self._generation

    def ring(self) -> None:
        self._ring(self)

    def wait(self, seen: int, timeout_ms: int) -> None:
        from gevent.event import Event

        if self._generation != seen:
            return
        if self._event is None:
            self._event = Event()
        self._event.wait(timeout_ms / 1000)

    def close(self) -> None:
        self.ring()

    def advance(self) -> None:
        """Let all waiters go on. Hub only."""
        self._generation += 1
        event, self._event = self._event, None
        if event is not None:
            event.set()
