"""Waiting for a run: every durable event exactly once and in order, then the terminal record.

It knows nothing of HTTP: pages and records come from two functions. Nothing here cancels a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from aura_automation._decode import read_run
from aura_automation._event_schemas import TERMINAL_TYPES
from aura_automation._limits import STOP_SLICE_S
from aura_automation._retry import Backoff, Timing, retry
from aura_automation.errors import ContractDrift, StopRequested
from aura_automation.models import Event, JournalPage, Run

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunWait:
    """`fetch_page(after, wait_s)` reads the journal; `poll_s` is how long `stop` may go unasked."""

    run_id: str
    fetch_run: Callable[[], Run]
    fetch_page: Callable[[int, int], JournalPage]
    on_event: Callable[[Event], None] | None
    stop: Callable[[], bool] | None
    poll_s: int
    reconnect_s: float
    timing: Timing

    def follow(self, after: int | None) -> Run:
        """Return the terminal run once all events up to its last one are delivered; see `Client.wait` for
        errors.
        """
        cursor = after or 0
        self._check_stop(cursor)
        run = self._retry(self.fetch_run, cursor)
        if after is None:
            cursor = run.accepted_seq - 1
        while True:
            self._check_stop(cursor)
            page = self._retry(partial(self.fetch_page, cursor, 0 if run.terminal else self.poll_s), cursor)
            for event in page.events:
                self._check_stop(cursor)
                self._deliver(event, cursor)
                cursor = event.seq
                if event.run_id == self.run_id and event.type in TERMINAL_TYPES:
                    return read_run(event)
            if run.terminal and not page.events:
                return run  # `after` was at or beyond its last event

    def _deliver(self, event: Event, cursor: int) -> None:
        if event.seq != cursor + 1:
            raise ContractDrift("GET /v1/journal", "events.seq", f"{event.seq} follows {cursor}")
        if self.on_event is not None:
            self.on_event(event)

    def _check_stop(self, cursor: int) -> None:
        if self.stop is not None and self.stop():
            raise StopRequested(self.run_id, cursor)

    def _retry(self, attempt: Callable[[], T], cursor: int) -> T:
        return retry(attempt, Backoff(self.reconnect_s, self.timing.now, partial(self._pause, cursor)))

    def _pause(self, cursor: int, delay_s: float) -> None:
        end_s = self.timing.now() + delay_s
        while (left_s := end_s - self.timing.now()) > 0:
            self._check_stop(cursor)
            self.timing.sleep(min(left_s, STOP_SLICE_S))
