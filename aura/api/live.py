"""Puts live items of a stream before the durable events that supersede them, and drops those that come too late.

The contract lets live items be dropped, never follow what they were a preview of (contract.md, Streaming). It knows
queues and rows, no HTTP and no time. One reader at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from aura import limits
from aura.events import Delta, ToolOutput, ToolProgress, Transient
from aura.wire.automation import leading_text, leading_text_of

_SUPERSEDING = frozenset(("message.assistant", "tool.finished"))


class Row(Protocol):
    """The parts of a stored event that a stream needs."""

    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def line(self) -> bytes: ...


class LiveItems:
    """The live items of one reader, from the queue that its feed fills; the oldest are dropped when there are many."""

    def __init__(self, arriving: deque[Transient], *, thinking: bool) -> None:
        self._arriving = arriving
        self._thinking = thinking
        self._waiting: deque[Transient] = deque(maxlen=limits.TRANSIENT_QUEUE_COUNT)
        self._finished: deque[bytes] = deque(maxlen=limits.FINISHED_KEPT_COUNT)

    def before(self, row: Row) -> list[Transient]:
        """Take the items that belong before `row`: all up to the last one that it supersedes."""
        finished = leading_text(row.line) if row.type in _SUPERSEDING else None
        if finished is None:
            return []
        self._collect()
        counts = (n for n, item in enumerate(self._waiting, 1) if _superseded_by(item) == finished)
        taken = list(self._take(max(counts, default=0)))
        self._finished.append(finished)
        return taken

    def rest(self) -> list[Transient]:
        """Take all items that are there, without those that are superseded already."""
        self._collect()
        return list(self._take(len(self._waiting)))

    def _collect(self) -> None:
        for _ in range(limits.TRANSIENT_QUEUE_COUNT):
            if not self._arriving:
                return
            item = self._arriving.popleft()
            if self._thinking or not (isinstance(item, Delta) and item.thinking):
                self._waiting.append(item)

    def _take(self, count: int) -> Iterator[Transient]:
        for _ in range(count):
            item = self._waiting.popleft()
            if _superseded_by(item) not in self._finished:
                yield item


def _superseded_by(item: Transient) -> bytes | None:
    """Return how the data of the durable event begins that makes `item` worthless, None if there is none."""
    if isinstance(item, Delta):
        return leading_text_of("message_id", item.message_id)
    if isinstance(item, ToolOutput | ToolProgress) and item.call_id:
        return leading_text_of("call_id", item.call_id)
    return None
