"""One thread, one heap of deadlines, for the whole process. Callbacks only set, queue or signal; the work is
elsewhere.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from aura import limits
from aura.clock import Clock

logger = logging.getLogger(__name__)


@dataclass(slots=True, order=True)
class _Deadline:
    due_ms: int
    number: int
    callback: Callable[[], object] | None = field(compare=False)

    def cancel(self) -> None:
        """Make sure the callback does not start any more."""
        self.callback = None


class AlarmThread:
    """Implements `aura.engine.scope.Alarm`. Any thread may call it. `close` ends it; deadlines left are dropped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[_Deadline] = []
        self._sweep_at_count = limits.ALARM_SWEEP_COUNT
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="aura-alarm", daemon=True)
        self._thread.start()

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> _Deadline:
        """Call `callback` once, on the alarm's thread, after `delay_ms`."""
        deadline = _Deadline(self._clock.monotonic_ms() + delay_ms, next(self._numbers), callback)
        with self._changed:
            if len(self._heap) >= self._sweep_at_count:
                self._sweep()
            heapq.heappush(self._heap, deadline)
            if self._heap[0] is deadline:  # the thread waits for an earlier one otherwise
                self._changed.notify()
        return deadline

    def close(self) -> None:
        """End the thread; returns when it has ended."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _sweep(self) -> None:
        """Forget deadlines that were taken back; often enough that no more of them are kept than of the others."""
        self._heap = [deadline for deadline in self._heap if deadline.callback is not None]
        heapq.heapify(self._heap)
        self._sweep_at_count = max(limits.ALARM_SWEEP_COUNT, 2 * len(self._heap))

    def _run(self) -> None:
        while True:
            with self._changed:
                due = self._pop_due()
                if due is None and self._closed:
                    return
                if due is None:
                    self._changed.wait(self._wait_s())
                    continue
            self._call(due)

    def _call(self, due: _Deadline) -> None:
        callback = due.callback
        if callback is None:
            return
        try:
            callback()
        except Exception:  # a faulty callback must not keep everybody else's deadlines from passing
            logger.exception("a deadline's callback failed")

    def _pop_due(self) -> _Deadline | None:
        if self._closed or not self._heap or self._heap[0].due_ms > self._clock.monotonic_ms():
            return None
        return heapq.heappop(self._heap)

    def _wait_s(self) -> float | None:
        if not self._heap:
            return None
        return max(self._heap[0].due_ms - self._clock.monotonic_ms(), 1) / 1000
