"""SQL questions to a store, behind `aura sql`: one thread runs a statement, the caller reads its answer piece by piece.

A statement that waits for its reader keeps its read transaction open, and with it the WAL. So the reader never holds a
cursor: a worker thread runs the statement into a short queue, and gives up at the deadline even while nobody reads.
It prints nothing.
"""

from __future__ import annotations

import difflib
import re
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aura import limits
from aura.errors import AuraError, BadRequest, Internal, NotFound
from aura.runtime.listing import reachable
from aura.store.open import find_query_connection
from aura.store.sqlite.query import QueryConnection, QueryTimeout, View, is_complete, split_statements

Value = int | float | str | bytes | None
Row = tuple[Value, ...]

_UNKNOWN = re.compile(r"no such (column|table): (\S+)")


@dataclass(frozen=True, slots=True)
class Head:
    """The names of an answer's columns: its first part. A statement without columns has none."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of an answer, in order."""

    rows: list[Row]


@dataclass(frozen=True, slots=True)
class End:
    """The last part of an answer. `cut`: there are more rows than the limit."""

    cut: bool


Part = Head | Rows | End


class Questions:
    """A store that is asked questions. One question at a time."""

    def __init__(self, connection: QueryConnection) -> None:
        self._connection = connection

    @property
    def views(self) -> tuple[View, ...]:
        """The public views, by name."""
        return self._connection.views

    def ask(
        self, statement: str, parameters: Mapping[str, Value], *, timeout_ms: int, row_limit: int | None
    ) -> Generator[Part, None, None]:
        """Yield the parts of a statement's answer; closing the iterator ends the statement.

        Raises `BadRequest` for what is wrong with the statement, with a hint that names what there is, or because it
        took longer than `timeout_ms`, the time its reader took included; and `StoreUnavailable`.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        channel = _Channel(deadline)

        def work() -> None:
            try:
                cut = self._connection.execute(statement, parameters, channel, deadline=deadline, row_limit=row_limit)
                channel.end(End(cut))
            except Exception as error:  # noqa: BLE001 it is raised again where the answer is read
                channel.end(error)

        worker = threading.Thread(target=work, name="aura-sql", daemon=True)
        worker.start()
        try:
            yield from self._parts(channel, statement, timeout_ms)
        finally:
            channel.close()
            worker.join()

    def _parts(self, channel: _Channel, statement: str, timeout_ms: int) -> Iterator[Part]:
        while True:
            part = channel.take()
            match part:
                case QueryTimeout():
                    raise BadRequest(
                        f"the query took longer than {timeout_ms / 1000:g} s",
                        hint="Ask for less, or give it more time with --timeout.",
                    ) from part
                case BadRequest(hint=None):
                    raise BadRequest(part.message, hint=find_hint(part.message, statement, self.views)) from part
                case AuraError():
                    raise part
                case Exception():
                    raise Internal(f"the query failed: {type(part).__name__}") from part
            yield part
            if isinstance(part, End):
                return


@contextmanager
def opened(directory: Path) -> Iterator[Questions]:
    """Open the store in `directory` for questions. Raises `NotFound` when there is none, and `StoreUnavailable`."""
    with reachable(directory):
        connection = find_query_connection(directory)
    if connection is None:
        raise NotFound("there is no store yet", hint="The first run or `aura session import` makes it.")
    try:
        yield Questions(connection)
    finally:
        connection.close()


def find_hint(message: str, statement: str, views: tuple[View, ...]) -> str | None:
    """Return what may help against `message`: the columns of the views that `statement` names, or the views."""
    found = _UNKNOWN.search(message)
    if found is None:
        return None
    kind, name = found.groups()
    if kind == "table":
        near = difflib.get_close_matches(name, [view.name for view in views], 1)
        start = f"Did you mean {near[0]}? " if near else ""
        return f"{start}The views are {', '.join(view.name for view in views)}."
    words = set(re.findall(r"\w+", statement.lower()))
    used = [view for view in views if view.name in words]
    if not used:
        return None
    near = difflib.get_close_matches(name.rpartition(".")[2], [column for view in used for column in view.columns], 1)
    start = f"Did you mean {near[0]}? " if near else ""
    return start + " ".join(f"{view.name} has {', '.join(view.columns)}." for view in used)


class _Channel:
    """The parts on their way from the worker to the reader: a short queue that both may leave at any time."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._parts: deque[Part | Exception] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def is_wanted(self) -> bool:
        """Tell whether the reader is still there."""
        return not self._closed

    def head(self, columns: tuple[str, ...]) -> None:
        """Take the answer's columns, on the worker's thread."""
        self._put(Head(columns))

    def rows(self, rows: list[Row]) -> bool:
        """Take rows, waiting for room until the deadline; False when there is none, or no reader any more."""
        with self._changed:
            self._changed.wait_for(self._has_room, max(0.0, self._deadline - time.monotonic()))
            if self._closed or not self._has_room():
                return False
        self._put(Rows(rows))
        return True

    def end(self, part: Part | Exception) -> None:
        """Take the last part, for which there is always room."""
        self._put(part)

    def take(self) -> Part | Exception:
        """Wait for the next part, on the reader's thread. The worker ends by its deadline, so it always comes."""
        with self._changed:
            self._changed.wait_for(lambda: self._parts)
            part = self._parts.popleft()
            self._changed.notify_all()
            return part

    def close(self) -> None:
        """Want nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._closed or len(self._parts) < limits.SQL_BATCHES_COUNT

    def _put(self, part: Part | Exception) -> None:
        with self._changed:
            self._parts.append(part)
            self._changed.notify_all()


__all__ = [
    "End",
    "Head",
    "Part",
    "Questions",
    "Row",
    "Rows",
    "Value",
    "View",
    "is_complete",
    "opened",
    "split_statements",
]
