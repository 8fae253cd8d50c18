"""The stream of `GET /v1/events`: stored events in order, live items between them, heartbeats in silence (contract.md).

A reader pulls: what it has not taken yet stays in the store, so a slow one costs one page of memory and loses nothing.
No cursor is open while a piece is being sent. Stored bytes are spliced, never decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aura import limits
from aura.api.live import LiveItems, Row
from aura.api.streams import Streams
from aura.api.waiter import Waiter
from aura.errors import AuraError
from aura.events import Transient
from aura.runtime.feeds import Feed
from aura.wire import automation, canonical

if TYPE_CHECKING:
    from aura.runtime.service import Service
    from aura.wire.schemas.automation import EventsQuery

OPENING = b":\n\n"  # a comment: the headers go out at once, however long the first event takes
HEARTBEAT = b"event: heartbeat\ndata: {}\n\n"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a stream reads."""

    feed: Feed
    service: Service
    waiter: Waiter
    streams: Streams


def stream(source: Source, query: EventsQuery) -> Iterator[bytes]:
    """Yield the stream's bytes until the server has ended and everything committed is sent.

    It also ends, with a line in the log, when the store fails or a fault shows: the reader comes back with its last id.
    """
    try:
        with source.feed.transients() if query.transient else nullcontext(None) as arriving:
            live = LiveItems(arriving, thinking=query.thinking) if arriving is not None else None
            yield OPENING
            yield from _follow(source, query.after, query.heartbeat_s * 1000, live)
    except AuraError as error:
        source.service.log.warning("events", f"a stream ends early: {error.message}")
    except Exception as error:  # noqa: BLE001 the headers are out: there is no other way to answer
        source.service.log.fault("events", error)


def _follow(source: Source, after: int, heartbeat_ms: int, live: LiveItems | None) -> Iterator[bytes]:
    signal, waiter = source.feed.signal, source.waiter
    sent_ms = waiter.monotonic_ms()
    while True:
        seen, ended = signal.generation, source.streams.ended
        rows, is_newest = _next_rows(source, after, ended)
        for piece in _pieces(rows, live, with_rest=is_newest):
            yield piece
            sent_ms = waiter.monotonic_ms()
        if rows:
            after = rows[-1].seq
            continue
        if ended:
            return
        left_ms = sent_ms + heartbeat_ms - waiter.monotonic_ms()
        if left_ms <= 0:
            yield HEARTBEAT
            sent_ms = waiter.monotonic_ms()
            left_ms = heartbeat_ms
        signal.wait(seen, left_ms)


def _next_rows(source: Source, after: int, ended: bool) -> tuple[Sequence[Row], bool]:
    """Return (a page of events after `after`, whether there are no later ones yet)."""
    rows = source.feed.peek(after)
    if rows:
        return rows[: limits.PAGE_ROWS], len(rows) <= limits.PAGE_ROWS
    if rows is not None and not ended:
        return (), True
    page, last_seq = source.waiter.call(source.service.read_journal, after, limits.PAGE_ROWS)
    return page, not page or page[-1].seq >= last_seq


def _pieces(rows: Sequence[Row], live: LiveItems | None, *, with_rest: bool) -> Iterator[bytes]:
    """Yield the frames of `rows` and of live items, joined to pieces of about `limits.STREAM_PIECE_BYTES`."""
    frames: list[bytes] = []
    size_bytes = 0
    for frame in _frames(rows, live, with_rest=with_rest):
        frames.append(frame)
        size_bytes += len(frame)
        if size_bytes >= limits.STREAM_PIECE_BYTES:
            yield b"".join(frames)
            frames, size_bytes = [], 0
    if frames:
        yield b"".join(frames)


def _frames(rows: Sequence[Row], live: LiveItems | None, *, with_rest: bool) -> Iterator[bytes]:
    for row in rows:
        if live is not None:
            yield from map(_live_frame, live.before(row))
        yield event_frame(row)
    if live is not None and with_rest:
        yield from map(_live_frame, live.rest())


def event_frame(row: Row) -> bytes:
    """Return the frame of a stored event."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.seq, row.type.encode(), row.line)


def _live_frame(item: Transient) -> bytes:
    name, fields = automation.transient_fields(item)
    return b"event: %s\ndata: %s\n\n" % (name.encode(), canonical.encode(fields))
