"""Writes of care: many short transactions beside servers, each of which holds the writers' lock for a moment only.

Foreign keys are not looked up here: several tables have no index for it, so removing one run would read all events.
Whoever writes through this removes what refers to a row before the row, and tests check all foreign keys afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import apsw

from aura import limits
from aura.store.sqlite.bell import Bell
from aura.store.sqlite.database import close_connection, enter_wal, fetch_all, is_wal, open_writer
from aura.store.sqlite.errors import translated
from aura.store.sqlite.locks import Ballast, WriterLock
from aura.store.sqlite.writer import Writer

T = TypeVar("T")


class Piece(Protocol):
    """A part of a long work: it does at most `limit` rows and returns how many it did."""

    def __call__(self, connection: apsw.Connection, *, limit: int) -> int: ...


class CareWriter:
    """A writer for care, which lets servers through between its transactions. One thread at a time."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.longest_ms = 0.0  # of the transactions so far, from their begin to their commit
        self._latest_ms = 0.0

    def run(self, work: Callable[[apsw.Connection], T], session_id: str = "") -> T:
        """Do `work` in one transaction, and rest for as long as that took. Raises what `work` raises, or store errors.

        It waits for its turn and for the disk without a limit: nothing is lost when it is interrupted.
        """
        begun: list[float] = []

        def timed(connection: apsw.Connection) -> T:
            begun.append(time.monotonic())
            return work(connection)

        value = self._writer.submit(timed, session_id).result()
        self._latest_ms = (time.monotonic() - begun[0]) * 1000
        self.longest_ms = max(self.longest_ms, self._latest_ms)
        time.sleep(min(self._latest_ms, limits.CARE_REST_MS) / 1000)
        return value

    def repeat(self, work: Piece, session_id: str = "") -> int:
        """Do `work` until it returns 0, each time in a transaction of its own; return the sum.

        Its `limit` is how many rows it may take, which follows from how long the latest transaction took.
        """
        total, rows = 0, limits.CARE_FIRST_ROWS
        while done := self.run(partial(work, limit=rows), session_id):
            total += done
            fast = self._latest_ms < limits.CARE_TRANSACTION_MS
            rows = min(rows * 2, limits.CARE_MAX_ROWS) if fast else max(rows // 2, 1)
        return total


@contextmanager
def open_care_writer(path: Path) -> Iterator[CareWriter]:
    """Lend a care writer of the database `path`, which exists and has this program's schema."""
    with translated(), ExitStack() as on_failure:
        connection = open_writer(path)
        on_failure.callback(close_connection, connection)
        fetch_all(connection, "PRAGMA foreign_keys = OFF")
        lock = WriterLock(path.parent)
        on_failure.callback(lock.close)
        if not is_wal(connection):
            with lock.held(limits.COMMIT_WAIT_MS):
                enter_wal(connection)
        writer = Writer(connection, lock, Ballast(path.parent), Bell())
        on_failure.pop_all()
    try:
        yield CareWriter(writer)
    finally:
        writer.close()
