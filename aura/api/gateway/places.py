"""The chats that are under way: how many there may be, and how they learn that the server ends.

It knows neither runs nor frames. Any thread; its lock is held for a moment and never across a wait.
"""

from __future__ import annotations

import threading

from aura import limits
from aura.api.waiter import ServerKind
from aura.errors import Overloaded
from aura.runtime.feeds import Signal

_MAX_COUNT: dict[ServerKind, int] = {"gevent": limits.LIVE_RUNS_MAX_COUNT, "waitress": limits.STREAM_THREADS_COUNT}


class Place:
    """One chat's place. `signal` wakes its reader."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.signal: Signal | None = None

    def leave(self) -> None:
        """Give the place back. Safe to repeat."""
        self._places.release(self)


class Places:
    """The places of one server."""

    def __init__(self, kind: ServerKind, *, max_count: int | None = None) -> None:
        self._max_count = _MAX_COUNT[kind] if max_count is None else max_count
        self._lock = threading.Lock()
        self._taken: set[Place] = set()
        self._draining = False

    @property
    def draining(self) -> bool:
        """True once streams must end without waiting for their runs."""
        return self._draining

    @property
    def count(self) -> int:
        """How many chats are under way."""
        return len(self._taken)

    def take(self) -> Place:
        """Return a place. Raises `Overloaded` when all are taken."""
        with self._lock:
            if len(self._taken) >= self._max_count:
                raise Overloaded(
                    f"{self._max_count} chats are under way already",
                    hint="Try again in a moment.",
                    details={"retry_after_ms": limits.RETRY_AFTER_MS},
                )
            place = Place(self)
            self._taken.add(place)
            return place

    def release(self, place: Place) -> None:
        """Give a place back."""
        with self._lock:
            self._taken.discard(place)

    def drain(self) -> None:
        """Tell all chats, present and future, to end now."""
        self._draining = True
        with self._lock:
            signals = [place.signal for place in self._taken]
        for signal in signals:
            if signal is not None:
                signal.ring()
