"""Events for watching readers: a ref-counted `Feed` per session, filled by one thread after each ring (DESIGN.md
section 6).

A feed holds the last `limits.FEED_EVENTS_COUNT` committed events as served. A reader that is further behind reads
pages from the store. Nothing that is not committed gets in, transient items aside, which may be dropped. It knows
neither HTTP nor gevent: how a reader waits is the `Signal` that it is given.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from aura import limits
from aura.errors import AuraError
from aura.events import Transient
from aura.runtime.log import Log
from aura.store.protocol import EventRow, Store


class Signal(Protocol):
    """How readers of one feed wait. `ring` may be called from any thread and never blocks."""

    @property
    def generation(self) -> int:
        """A number that grows with each ring. Read it before looking, pass it to `wait` after."""
        ...

    def ring(self) -> None:
        """Wake all who wait."""
        ...

    def wait(self, seen: int, timeout_ms: int) -> None:
        """Return when the generation is no longer `seen`, or after `timeout_ms`."""
        ...

    def close(self) -> None:
        """Give resources back; waiting readers are woken."""
        ...


class Feed:
    """The newest events of one session. `peek` and the transient queues never block: a hub may call them."""

    def __init__(self, session_id: str, head: int, signal: Signal) -> None:
        self.session_id = session_id
        self.signal = signal
        self._head = head
        self._window: tuple[EventRow, ...] = ()
        self._live: tuple[deque[Transient], ...] = ()
        self._signals: tuple[Signal, ...] = (signal,)
        self._lock = threading.Lock()

    @property
    def head(self) -> int:
        """The seq of the last event that was committed and read."""
        return self._head

    def peek(self, after: int) -> tuple[EventRow, ...] | None:
        """Return the events after `after`, or None when the store must be asked because they are too old."""
        window = self._window
        if after >= self._head:
            return ()
        if not window or after < window[0].seq - 1:
            return None
        return window[after - window[0].seq + 1 :]

    def publish(self, rows: list[EventRow]) -> None:
        """Add committed events, in order. The feeds' thread only."""
        self._window = _newest((*self._window, *rows))
        self._head = rows[-1].seq
        self.ring()

    def show(self, item: Transient) -> None:
        """Give a live item to the readers that asked for such. Any thread."""
        for queue in self._live:
            queue.append(item)
        if self._live:
            self.ring()

    def ring(self) -> None:
        """Wake all readers. Any thread."""
        for signal in self._signals:
            signal.ring()

    @contextmanager
    def ringing(self, signal: Signal) -> Iterator[None]:
        """Ring `signal` too, for a reader that cannot wait on the feed's own: that one may belong to a hub."""
        with self._lock:
            self._signals = (*self._signals, signal)
        try:
            yield
        finally:
            with self._lock:
                self._signals = tuple(other for other in self._signals if other is not signal)

    @contextmanager
    def transients(self) -> Iterator[deque[Transient]]:
        """Lend a queue that live items arrive in; the oldest are dropped when it is full."""
        queue: deque[Transient] = deque(maxlen=limits.TRANSIENT_QUEUE_COUNT)
        with self._lock:
            self._live = (*self._live, queue)
        try:
            yield queue
        finally:
            with self._lock:
                self._live = tuple(other for other in self._live if other is not queue)


class Feeds:
    """All watched sessions, and the thread that reads what was committed. `open` may block: native threads only."""

    def __init__(
        self, store: Store, make_signal: Callable[[], Signal], log: Log, *, poll_ms: int | None = None
    ) -> None:
        self._store = store
        self._make_signal = make_signal
        self._log = log
        self._feeds: dict[str, tuple[Feed, int]] = {}
        self._dirty: set[str] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._subscription = store.watch(self._ring, poll_ms=poll_ms)
        self._thread = threading.Thread(target=self._run, name="aura-feeds", daemon=True)
        self._thread.start()

    def open(self, session_id: str) -> Feed:
        """Return the session's feed and count one more reader. Raises `NotFound`."""
        with self._changed:
            if session_id in self._feeds:
                feed, readers = self._feeds[session_id]
                self._feeds[session_id] = (feed, readers + 1)
                return feed
        head = self._store.read_last_seq(session_id)
        with self._changed:
            feed, readers = self._feeds.get(session_id) or (Feed(session_id, head, self._make_signal()), 0)
            self._feeds[session_id] = (feed, readers + 1)
            self._mark({session_id})
        return feed

    def release(self, feed: Feed) -> None:
        """Count one reader less; the last one ends the feed. Never blocks for long."""
        with self._changed:
            _, readers = self._feeds[feed.session_id]
            if readers > 1:
                self._feeds[feed.session_id] = (feed, readers - 1)
                return
            del self._feeds[feed.session_id]
        feed.signal.close()

    def find(self, session_id: str) -> Feed | None:
        """Return the session's feed if somebody watches it."""
        entry = self._feeds.get(session_id)
        return entry[0] if entry else None

    def close(self) -> None:
        """End the thread and wake all readers."""
        self._subscription.close()
        with self._changed:
            self._closed = True
            self._changed.notify()
            feeds = [feed for feed, _ in self._feeds.values()]
        self._thread.join()
        for feed in feeds:
            feed.ring()

    def _ring(self, sessions: frozenset[str] | None) -> None:
        with self._changed:
            self._mark(set(self._feeds) if sessions is None else sessions & self._feeds.keys())

    def _mark(self, sessions: set[str] | frozenset[str]) -> None:
        if sessions:
            self._dirty |= sessions
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._dirty or self._closed)
                if self._closed:
                    return
                feeds = [self._feeds[session_id][0] for session_id in self._dirty if session_id in self._feeds]
                self._dirty = set()
            failed = {feed.session_id for feed in feeds if not self._fill(feed)}
            if failed:
                self._pause(failed)

    def _fill(self, feed: Feed) -> bool:
        try:
            while rows := self._store.read_events(feed.session_id, feed.head, limits.PAGE_ROWS):
                feed.publish(rows)
            return True
        except AuraError as error:
            self._log.warning("feeds", f"cannot read events of {feed.session_id}: {error.message}")
        except Exception as error:  # noqa: BLE001 this thread serves all readers: it must outlive a fault of ours
            self._log.fault("feeds", error)
        return False

    def _pause(self, failed: set[str]) -> None:
        """Have failed sessions read again after a moment: the ring that announced their events may be the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, limits.FEED_RETRY_MS / 1000)
            self._mark(failed & self._feeds.keys())


def _newest(rows: tuple[EventRow, ...]) -> tuple[EventRow, ...]:
    """Return the last rows that a feed may keep: bounded in number and in bytes, but never none."""
    kept = rows[-limits.FEED_EVENTS_COUNT :]
    size_bytes = 0
    for index in range(len(kept) - 1, -1, -1):
        size_bytes += len(kept[index].line)
        if size_bytes > limits.FEED_EVENTS_BYTES:
            return kept[index + 1 :] or kept[-1:]
    return kept
