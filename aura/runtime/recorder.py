"""The one way from a live session to its journal: events in order, in as few commits as durability allows.

An event that must be durable is committed, with everything recorded before it, when `record` returns. Others wait for
up to `limits.RECORD_DELAY_MS` to share a commit. An event is dropped only if its own caller is told so. The recorder
knows no engine and no reader.
"""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import Future
from dataclasses import dataclass

from aura import limits
from aura.clock import Clock
from aura.engine.scope import Alarm
from aura.errors import AuraError, CommitInDoubt
from aura.events import Event, Stamped
from aura.runtime.saver import Save, Saver
from aura.store.protocol import Batch, Lease, Receipt, Store
from aura.store.waiting import wait


@dataclass(frozen=True, slots=True)
class _Attempt:
    batch: Batch
    save: Save | None


class Recorder:
    """Records one session's events for its holder. Any native thread may call it.

    Only one batch is under way at a time, so that a batch that failed is repeated before anything that came later.
    """

    def __init__(self, store: Store, lease: Lease, saver: Saver, clock: Clock, alarm: Alarm) -> None:
        self._store = store
        self._lease = lease
        self._saver = saver
        self._clock = clock
        self._alarm = alarm
        self._pending: list[Stamped] = []
        self._pending_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._under_way: tuple[Batch, Future[Receipt]] | None = None
        self._doubtful: _Attempt | None = None

    def record(self, event: Event, run_id: str | None) -> None:
        """Record an event that may wait a moment for a commit to share."""
        with self._pending_lock:
            first = not self._pending
            self._pending.append(Stamped(self._clock.now_ms(), event, run_id))
        if first:
            self._alarm.call_later(limits.RECORD_DELAY_MS, self._flush_soon)

    def commit(
        self, events: tuple[Event, ...], run_id: str | None, *, save: Save | None = None, essential: bool = False
    ) -> None:
        """Commit all events recorded so far, then `events`, and `save` with them.

        When this raises a store error, `events` and `save` are not stored and never will be, except after
        `CommitInDoubt`: then the next commit finds out. Earlier events are kept for the next commit in any case.
        """
        with self._commit_lock:
            self._settle_under_way()
            self._repeat_doubtful()
            earlier = self._take_pending()
            now_ms = self._clock.now_ms()
            stamped = (*earlier, *(Stamped(now_ms, event, run_id) for event in events))
            if stamped:
                batch = Batch(uuid.uuid4().hex, stamped, save.checkpoint if save else None, essential)
                self._try(_Attempt(batch, save), earlier)

    def flush(self) -> None:
        """Commit all events recorded so far. Raises store errors; the events are kept then."""
        self.commit((), None)

    def _try(self, attempt: _Attempt, earlier: tuple[Stamped, ...]) -> None:
        try:
            wait(self._store.commit(self._lease, attempt.batch))
        except CommitInDoubt:
            self._doubtful = attempt
            raise
        except AuraError:
            self._put_back(earlier)
            raise
        if attempt.save is not None:
            self._saver.adopt(attempt.save)

    def _repeat_doubtful(self) -> None:
        if self._doubtful is None:
            return
        attempt = self._doubtful
        wait(self._store.commit(self._lease, attempt.batch))
        self._doubtful = None
        if attempt.save is not None:
            self._saver.adopt(attempt.save)

    def _flush_soon(self) -> None:
        if not self._commit_lock.acquire(blocking=False):
            self._alarm.call_later(limits.RECORD_DELAY_MS, self._flush_soon)
            return
        try:
            if self._under_way is not None and not self._under_way[1].done():
                self._alarm.call_later(limits.RECORD_DELAY_MS, self._flush_soon)
            elif self._doubtful is None:
                self._start_flush()
        finally:
            self._commit_lock.release()

    def _start_flush(self) -> None:
        self._collect_finished()
        stamped = self._take_pending()
        if not stamped:
            return
        batch = Batch(uuid.uuid4().hex, stamped)
        try:
            self._under_way = (batch, self._store.commit(self._lease, batch))
        except AuraError:  # the queue is full or closed: the next commit takes these events along, or reports it
            self._put_back(stamped)

    def _collect_finished(self) -> None:
        if self._under_way is None:
            return
        batch, future = self._under_way
        self._under_way = None
        if future.cancelled() or future.exception() is not None:
            self._put_back(batch.events)

    def _settle_under_way(self) -> None:
        if self._under_way is None:
            return
        batch, future = self._under_way
        self._under_way = None
        try:
            wait(future)
        except CommitInDoubt:
            self._doubtful = _Attempt(batch, None)
            raise
        except AuraError:  # not stored: this commit repeats them, and reports what is wrong
            self._put_back(batch.events)

    def _take_pending(self) -> tuple[Stamped, ...]:
        with self._pending_lock:
            taken, self._pending = tuple(self._pending), []
        return taken

    def _put_back(self, events: tuple[Stamped, ...]) -> None:
        with self._pending_lock:
            self._pending[:0] = events
