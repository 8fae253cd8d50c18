"""Pages of `GET /v1/journal`, waited for when there is nothing yet (contract.md, Streaming).

Stored bytes are spliced, never decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aura.api.streams import Streams
from aura.api.waiter import Waiter
from aura.runtime.feeds import Feed
from aura.wire import automation

if TYPE_CHECKING:
    from aura.runtime.service import Service
    from aura.wire.schemas.automation import JournalQuery


def read_page(query: JournalQuery, service: Service, waiter: Waiter, streams: Streams) -> bytes:
    """Return the body of a journal page: at once if there are events, else after the wait or at the server's end.

    Raises `CursorOutOfRange`, `Overloaded` when it would have to wait and too many do, and store errors.
    """
    page, last_seq = _read_stored(query, service, waiter)
    if page is None and query.wait_s > 0 and not streams.ended:
        with streams.watch() as watch:
            page, last_seq = _wait(query, watch.feed, service, waiter, streams)
    return page if page is not None else automation.page((), last_seq)


def _wait(
    query: JournalQuery, feed: Feed, service: Service, waiter: Waiter, streams: Streams
) -> tuple[bytes | None, int]:
    deadline_ms = waiter.monotonic_ms() + query.wait_s * 1000
    while True:
        seen, ended = feed.signal.generation, streams.ended
        rows = feed.peek(query.after)
        left_ms = deadline_ms - waiter.monotonic_ms()
        if rows:
            rows = rows[: query.limit]
            return automation.page((row.line for row in rows), max(feed.head, rows[-1].seq)), 0
        if rows is None or ended or left_ms <= 0:
            return _read_stored(query, service, waiter)
        feed.signal.wait(seen, left_ms)


def _read_stored(query: JournalQuery, service: Service, waiter: Waiter) -> tuple[bytes | None, int]:
    page, last_seq = waiter.call(service.read_journal_page, query.after, query.limit)
    return (automation.page((page.lines,), last_seq) if page.count else None), last_seq
