"""How plain threads wait for a feed: a condition. Hubs bring a signal of their own (`aura.api.waiter`)."""

from __future__ import annotations

import threading


class ThreadSignal:
    """Implements `aura.runtime.feeds.Signal` for native threads."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._generation = 0

    @property
    def generation(self) -> int:
        """A number that grows with each ring."""
        return self._generation

    def ring(self) -> None:
        """Wake all who wait. Any thread."""
        with self._condition:
            self._generation += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout_ms: int) -> None:
        """Return when the generation is no longer `seen`, or after `timeout_ms`. Native threads only."""
        with self._condition:
            self._condition.wait_for(lambda: self._generation != seen, timeout_ms / 1000)

    def close(self) -> None:
        """Wake all who wait."""
        self.ring()
