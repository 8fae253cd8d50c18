"""Follows one run from inside the process: every durable event once and in order, live items in between.

It is a reader like any other: it asks for what is committed after the last seq it has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from aura import limits
from aura.events import Transient
from aura.jsontypes import JsonObject
from aura.runtime.feeds import Feed
from aura.runtime.service import Service
from aura.wire import canonical

TERMINAL_TYPES = frozenset(("run.persisted", "run.persist_failed", "run.lost"))


def follow_run(
    service: Service, feed: Feed, run_id: str, after: int, tick: Callable[[], None]
) -> Iterator[JsonObject | Transient]:
    """Yield the session's events after seq `after`, and live items, until the run's terminal event has been yielded.

    `tick` is called at least every `limits.FOLLOW_TICK_MS`, on the caller's thread. Native threads only.
    """
    with feed.transients() as live:
        while True:
            seen = feed.signal.generation
            tick()
            yield from _drain(live)
            rows = feed.peek(after)
            if rows is None:
                rows = tuple(service.read_journal(after, limits.PAGE_ROWS)[0])
            for row in rows:
                after = row.seq
                event = canonical.decode(row.line)
                assert isinstance(event, dict), "an event is an object"
                yield event
                if row.run_id == run_id and row.type in TERMINAL_TYPES:
                    return
            if not rows:
                feed.signal.wait(seen, limits.FOLLOW_TICK_MS)


def _drain(live: deque[Transient]) -> Iterator[Transient]:
    while live:
        yield live.popleft()
