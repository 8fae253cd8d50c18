"""Tells listeners that sessions have new commits. It carries no data: a lost ring costs latency, never an event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from aura.store.protocol import Listener


@dataclass(slots=True, eq=False)
class _Entry:
    listener: Listener
    poll_ms: int | None
    control: bool
    bell: Bell

    def close(self) -> None:
        self.bell.remove(self)


class Bell:
    """A set of listeners. Any thread may ring, add and remove; listeners run in the ringer's thread and must not
    block."""

    def __init__(self) -> None:
        self._entries: tuple[_Entry, ...] = ()
        self._lock = threading.Lock()
        self.on_change: Callable[[], object] = lambda: None

    def add(self, listener: Listener, *, poll_ms: int | None, control: bool) -> _Entry:
        """Call `listener` with the ids of changed sessions, or with None when any may have changed.

        `control`: only for commits of control verbs, and for those of other processes. `poll_ms`: how soon commits of
        other processes must be noticed; None when they do not matter.
        """
        entry = _Entry(listener, poll_ms, control, self)
        with self._lock:
            self._entries = (*self._entries, entry)
        self.on_change()
        return entry

    def remove(self, entry: _Entry) -> None:
        """Take a listener back."""
        with self._lock:
            self._entries = tuple(other for other in self._entries if other is not entry)
        self.on_change()

    def ring(self, sessions: frozenset[str] | None, *, control: bool) -> None:
        """Call the listeners. `control`: the commit holds a control verb, or comes from another process."""
        for entry in self._entries:
            if control or not entry.control:
                self._call(entry.listener, sessions)

    def _call(self, listener: Listener, sessions: frozenset[str] | None) -> None:
        try:
            listener(sessions)
        except Exception:
            # A faulty listener must not end the writer's thread, nor keep the others from hearing.
            from logging import getLogger

            getLogger(__name__).exception("a listener of the store failed")

    @property
    def poll_ms(self) -> int | None:
        """The shortest interval that a listener asked for, None when nobody cares for other processes."""
        return min((entry.poll_ms for entry in self._entries if entry.poll_ms is not None), default=None)
