"""Follows one chat's run and hands out what its projection makes of it (gateway.md 3).

It pulls: what the caller has not taken yet stays in the store, so a slow one costs one page of memory. It watches the
caller and the clock, and has a run ended for whose answer nobody waits any more. What frames look like as bytes is not
its business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aura import limits
from aura.api.gateway.places import Places
from aura.api.gateway.timers import ChatTimers
from aura.api.live import LiveItems
from aura.api.waiter import Waiter
from aura.events import Transient
from aura.runs import RunError
from aura.runtime.gateway.service import Chat, EventRow, GatewayService
from aura.wire.chat import KINDS, TIMEOUT, ChatProjector, Failed, Frame
from aura.wire.stored_event import read_line


class CallerGone(Exception):
    """Nobody is at the other end of the connection any more."""


class ChatReader:
    """One reader of one chat. Handlers of the server that `waiter` is for, one at a time."""

    def __init__(
        self,
        service: GatewayService,
        waiter: Waiter,
        chat: Chat,
        projector: ChatProjector,
        timers: ChatTimers,
        places: Places,
        is_gone: Callable[[], bool],
    ) -> None:
        self._service = service
        self._waiter = waiter
        self._chat = chat
        self._projector = projector
        self._timers = timers
        self._places = places
        self._is_gone = is_gone
        self._live = LiveItems(chat.live, thinking=True)
        self._after = chat.after
        self._settle_by_ms: int | None = None

    def follow(self) -> Iterator[Sequence[Frame] | None]:
        """Yield frames as they come, and None after a silence of `limits.CHAT_HEARTBEAT_MS`, until the chat has ended.

        What happens may make no frame; then there are none in what is yielded. Raises `CallerGone`, and store errors.
        """
        signal = self._chat.feed.signal
        sent_ms = self._waiter.monotonic_ms()
        while not self._projector.ended:
            seen = signal.generation
            rows, is_newest = self._next_rows()
            frames = list(self._frames(rows, with_rest=is_newest))
            if rows or frames:
                yield frames
                sent_ms = self._waiter.monotonic_ms() if frames else sent_ms
                continue
            if self._places.draining:
                yield list(self._projector.finish_early())
                return
            if self._is_gone():
                raise CallerGone
            now_ms = self._waiter.monotonic_ms()
            yield from self._look_at_timers(now_ms)
            if now_ms - sent_ms >= limits.CHAT_HEARTBEAT_MS:
                yield None
                sent_ms = now_ms
            if not self._projector.ended:
                signal.wait(seen, self._wait_ms(now_ms, sent_ms))

    def _next_rows(self) -> tuple[Sequence[EventRow], bool]:
        """Return (events of the session that were not read yet, whether there are no later ones yet)."""
        rows: Sequence[EventRow] | None = self._chat.feed.peek(self._after)
        if rows is None:
            rows = self._waiter.call(
                self._service.read_events, self._chat.feed.session_id, self._after, limits.PAGE_ROWS
            )
            return rows, len(rows) < limits.PAGE_ROWS
        return rows[: limits.PAGE_ROWS], len(rows) <= limits.PAGE_ROWS

    def _frames(self, rows: Sequence[EventRow], *, with_rest: bool) -> Iterator[Frame]:
        now_ms = self._waiter.monotonic_ms()
        for row in rows:
            self._after = row.seq
            if row.run_id != self._chat.run.id or row.kind not in KINDS:
                continue
            yield from self._live_frames(self._live.before(row), now_ms)
            event, at_ms = read_line(row.line, row.kind, row.ext)
            self._timers.saw(event, now_ms)
            yield from self._projector.event(event, row.seq, at_ms)
        if with_rest and not self._projector.ended:
            yield from self._live_frames(self._live.rest(), now_ms)

    def _live_frames(self, items: Sequence[Transient], now_ms: int) -> Iterator[Frame]:
        for item in items:
            self._timers.saw_live(item, now_ms)
            yield from self._projector.live(item)

    def _look_at_timers(self, now_ms: int) -> Iterator[Sequence[Frame]]:
        if self._settle_by_ms is None:
            if self._timers.left_ms(now_ms) == 0:
                self._settle_by_ms = now_ms + limits.ABORT_SETTLE_MS
                self._waiter.call(self._service.expire, self._chat, self._timers.reason())
            return
        if now_ms >= self._settle_by_ms:
            self._projector.ended = True
            yield [Failed(RunError(TIMEOUT, self._timers.reason()), "cancelled", self._projector.started)]

    def _wait_ms(self, now_ms: int, sent_ms: int) -> int:
        bounds = [limits.DISCONNECT_POLL_MS, sent_ms + limits.CHAT_HEARTBEAT_MS - now_ms]
        if self._settle_by_ms is not None:
            bounds.append(self._settle_by_ms - now_ms)
        elif (left_ms := self._timers.left_ms(now_ms)) is not None:
            bounds.append(left_ms)
        return max(1, min(bounds))
