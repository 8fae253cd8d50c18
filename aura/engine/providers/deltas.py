"""The way of a stream's deltas from the io thread to the run thread.

The consumer runs on the run thread, so that a slow one delays only its own run: what piles up meanwhile is joined.
Nothing is dropped here, and nothing is interpreted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from aura.engine.providers.base import OnDelta
from aura.engine.scope import Job, Scope

T = TypeVar("T")


class DeltaChannel:
    """One stream's deltas. `put` from the io thread, `pump` from the run thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: list[tuple[list[str], bool]] = []

    def put(self, text: str, thinking: bool) -> None:
        """Add a delta. Never blocks for long."""
        with self._changed:
            if self._pending and self._pending[-1][1] == thinking:
                self._pending[-1][0].append(text)
            else:
                self._pending.append(([text], thinking))
            self._changed.notify_all()

    def pump(self, job: Job[T], scope: Scope, on_delta: OnDelta) -> T:
        """Call `on_delta` for all deltas until `job` ends; return its value or raise its error.

        On cancellation no further delta is shown, the job is stopped, and `Cancelled` is raised. What `on_delta` raises
        stops the job too.
        """
        job.add_done_callback(self._wake)
        try:
            with scope.poke(self._wake):
                while batch := self._take(lambda: job.ended or scope.reason is not None):
                    for parts, thinking in batch:
                        scope.check()
                        on_delta("".join(parts), thinking)
        except BaseException:
            job.cancel()
            if scope.reason is not None:
                scope.wait(job)
            raise
        return scope.wait(job)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _take(self, is_over: Callable[[], bool]) -> list[tuple[list[str], bool]]:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending) or is_over())
            batch, self._pending = self._pending, []
            return batch
