"""The one way from a live session to its journal: events in order, in as few commits as durability allows.

An event that must be durable is committed, with everything recorded before it, when `commit` returns. Others wait for
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
from aura.events import Event, Reason, Stamped
from aura.runtime import growth
from aura.runtime.saver import Save, Saver
from aura.store.protocol import Batch, Lease, Receipt, Store
from aura.store.waiting import wait


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A batch on its way. `earlier` are its events whose callers were promised that they are not lost."""

    batch: Batch
    earlier: tuple[Stamped, ...]
    save: Save | None = None


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
        self._under_way: tuple[_Attempt, Future[Receipt]] | None = None
        self._doubtful: _Attempt | None = None

    def record(self, event: Event, run_id: str | None, *more: Event) -> None:
        """Record an event, and `more` right after it, that may wait a moment for a commit to share."""
        events = tuple(found for item in (event, *more) for found in (item, *growth.find_large(item)))
        with self._pending_lock:
            first = not self._pending
            now_ms = self._clock.now_ms()
            self._pending.extend(Stamped(now_ms, item, run_id) for item in events)
        if first:
            self._alarm.call_later(limits.RECORD_DELAY_MS, self._flush_soon)

    def commit(self, events: tuple[Event, ...], run_id: str | None, *, essential: bool = False) -> None:
        """Commit all events recorded so far, then `events`.

        When this raises a store error, `events` are not stored and never will be, except after `CommitInDoubt`: then
        the next commit finds out. Earlier events are kept for the next commit in any case.
        """
        with self._commit_lock:
            self._settle_earlier()
            noticed = [item for event in events for item in (event, *growth.find_large(event))]
            self._try(tuple(noticed), run_id, None, essential)

    def save(
        self, reason: Reason, run_id: str | None, *, before: tuple[Event, ...] = (), after: tuple[Event, ...] = ()
    ) -> None:
        """Commit the conversation as it is now with all events recorded so far, `before`, the event that reports the
        save, and `after`. Raises as `commit` does. Only the thread that may change the conversation.
        """
        with self._commit_lock:
            self._settle_earlier()  # first: what it finds out decides what is left to save
            save = self._saver.prepare(reason, self._clock.now_ms())
            new = save.checkpoint.new_messages if save.checkpoint is not None else ()
            large = growth.find_large_messages(message.body for message in new)
            self._try((*before, *large, save.event, *after), run_id, save, essential=False)

    def settle_earlier(self) -> None:
        """Find out what became of earlier batches. Raises store errors as long as that cannot be known."""
        with self._commit_lock:
            self._settle_earlier()

    def _try(self, events: tuple[Event, ...], run_id: str | None, save: Save | None, essential: bool) -> None:
        earlier = self._take_pending()
        now_ms = self._clock.now_ms()
        stamped = (*earlier, *(Stamped(now_ms, event, run_id) for event in events))
        if not stamped:
            return
        attempt = _Attempt(_batch(stamped, save, essential), earlier, save)
        try:
            wait(self._store.commit(self._lease, attempt.batch))
        except CommitInDoubt:
            self._doubtful = attempt
            raise
        except AuraError:
            self._put_back(earlier)
            raise
        self._adopt(attempt)

    def _settle_earlier(self) -> None:
        """When this returns, nothing is under way or in doubt. With the commit lock."""
        self._settle_under_way()
        self._repeat_doubtful()

    def _settle_under_way(self) -> None:
        if self._under_way is None:
            return
        attempt, future = self._under_way
        self._under_way = None
        try:
            wait(future)
        except CommitInDoubt:
            self._doubtful = attempt
            raise
        except AuraError:  # not stored: this commit repeats them, and reports what is wrong
            self._put_back(attempt.earlier)

    def _repeat_doubtful(self) -> None:
        if self._doubtful is None:
            return
        attempt = self._doubtful
        future = self._store.commit(self._lease, attempt.batch)
        try:
            wait(future)
        except CommitInDoubt:
            raise
        except AuraError:
            if future.cancelled():  # taken back: the first attempt may still be stuck
                raise
            self._doubtful = None  # the repeat was refused, so the first attempt was too
            self._put_back(attempt.earlier)
            return
        self._doubtful = None
        self._adopt(attempt)

    def _adopt(self, attempt: _Attempt) -> None:
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
        attempt = _Attempt(_batch(stamped), stamped)
        try:
            future = self._store.commit(self._lease, attempt.batch)
        except AuraError:  # the queue is full or closed: the next commit takes these events along, or reports it
            self._put_back(stamped)
            return
        self._under_way = (attempt, future)
        future.add_done_callback(self._flush_again)

    def _flush_again(self, future: Future[Receipt]) -> None:
        """Writer's thread: see to it that refused events do not wait for the next commit."""
        if future.cancelled() or future.exception() is not None:
            self._alarm.call_later(limits.SETTLE_RETRY_MS, self._flush_soon)

    def _collect_finished(self) -> None:
        if self._under_way is None:
            return
        attempt, future = self._under_way
        self._under_way = None
        if future.cancelled() or future.exception() is not None:
            self._put_back(attempt.earlier)

    def _take_pending(self) -> tuple[Stamped, ...]:
        with self._pending_lock:
            taken, self._pending = tuple(self._pending), []
        return taken

    def _put_back(self, events: tuple[Stamped, ...]) -> None:
        with self._pending_lock:
            self._pending[:0] = events


def _batch(stamped: tuple[Stamped, ...], save: Save | None = None, essential: bool = False) -> Batch:
    return Batch(uuid.uuid4().hex, stamped, save.checkpoint if save else None, essential)
