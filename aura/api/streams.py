"""The readers that wait, streams and long-polls alike: how many there may be, and when they end.

It hands out feeds and takes them back. What is sent over them is `aura.api.sse`'s and `aura.api.longpoll`'s business.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

from aura import limits
from aura.api.waiter import ServerKind, Waiter
from aura.errors import Overloaded
from aura.runtime.feeds import Feed

if TYPE_CHECKING:
    from aura.runtime.service import Service

_MAX_COUNT: dict[ServerKind, int] = {"gevent": limits.STREAMS_MAX_COUNT, "waitress": limits.STREAM_THREADS_COUNT}


class Streams:
    """The waiting readers of one server. Handlers may call `watch`, any thread `end`.

    Its lock is held for a moment and never across a wait, so it cannot hold up a hub.
    """

    def __init__(self, service: Service, waiter: Waiter, *, max_count: int | None = None) -> None:
        self._service = service
        self._waiter = waiter
        self._max_count = _MAX_COUNT[waiter.kind] if max_count is None else max_count
        self._lock = threading.Lock()
        self._count = 0
        self._watches: set[Watch] = set()
        self._ended = False

    @property
    def ended(self) -> bool:
        """True once nothing will be committed any more: readers finish with what there is."""
        return self._ended

    def watch(self) -> Watch:
        """Return a place among the waiting readers, with the session's feed; the caller closes it.

        Raises `Overloaded` when all places are taken, and what opening the feed raises.
        """
        with self._lock:
            if self._count >= self._max_count:
                raise Overloaded(
                    f"{self._max_count} readers are waiting already",
                    hint="Try again in a moment, or poll the journal without wait.",
                    details={"retry_after_ms": limits.RETRY_AFTER_MS},
                )
            self._count += 1
        try:
            watch = Watch(self, self._waiter.call(self._service.open_feed))
        except BaseException:
            self._leave()
            raise
        with self._lock:
            self._watches.add(watch)
        return watch

    def end(self) -> None:
        """Tell all readers, present and future, that there is no more to come."""
        self._ended = True
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.feed.signal.ring()

    def release(self, watch: Watch) -> None:
        """Give a place back. A second time it does nothing."""
        with self._lock:
            if watch not in self._watches:
                return
            self._watches.remove(watch)
        try:
            self._waiter.call(self._service.release_feed, watch.feed)
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._count -= 1


class Watch:
    """One reader's place. `feed` is valid until it is closed."""

    def __init__(self, streams: Streams, feed: Feed) -> None:
        self._streams = streams
        self.feed = feed

    def close(self) -> None:
        """Give the place back. Safe to repeat."""
        self._streams.release(self)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
