"""The one thread that writes: group commit with a savepoint per unit (DESIGN.md sections 3 and 4).

It drains its queue, takes the writers' file lock, runs the units in one transaction, commits, rings the bell, and moves
the WAL into the database when it has grown. A unit that fails takes none of its neighbours with it. Nobody is told of
success before COMMIT. It knows no table: units do.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import apsw

from aura import limits
from aura.errors import Overloaded, StoreUnavailable
from aura.store.sqlite.bell import Bell
from aura.store.sqlite.database import fetch_one
from aura.store.sqlite.errors import is_full, translate
from aura.store.sqlite.locks import Ballast, WriterLock

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


@dataclass(slots=True, eq=False)
class Unit(Generic[T]):
    """Statements that belong together. `essential`: it may use the room that the ballast kept."""

    work: Work[T]
    session_id: str
    control: bool
    essential: bool
    future: Future[T] = field(default_factory=Future)
    value: T | None = None
    error: Exception | None = None
    begun: bool | None = None

    def begin(self) -> bool:
        """Tell whether the unit is to run: from then on its caller cannot take it back. Repeating it is allowed."""
        if self.begun is None:
            self.begun = self.future.set_running_or_notify_cancel()
        return self.begun


class Writer:
    """The owner of the only writing connection. `submit` may be called from any thread; it never blocks."""

    def __init__(self, connection: apsw.Connection, lock: WriterLock, ballast: Ballast, bell: Bell) -> None:
        self._connection = connection
        self._lock = lock
        self._ballast = ballast
        self._bell = bell
        self._queue: deque[Unit[object]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._wal_bytes = 0
        self._restart_bytes = limits.WAL_RESTART_BYTES
        self._page_bytes = self._read_number("page_size")
        self._data_version = self._read_data_version()
        self.commit_count = 0
        connection.set_wal_hook(self._note_wal)
        bell.on_change = self._wake
        self._thread = threading.Thread(target=self._run, name="aura-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T], session_id: str, *, control: bool = False, essential: bool = False) -> Future[T]:
        """Queue `work` and return the future of its committed value.

        The future fails with what `work` raised, or with a store error; in both cases nothing of it is stored. Raises
        `Overloaded` when `limits.WRITE_QUEUE_MAX_COUNT` units wait, `StoreUnavailable` after `close`.
        """
        unit = Unit(work, session_id, control, essential)
        with self._changed:
            if self._closing:
                raise StoreUnavailable("the store is closed")
            if len(self._queue) >= limits.WRITE_QUEUE_MAX_COUNT:
                raise Overloaded("too many writes are waiting for the disk")
            self._queue.append(unit)  # type: ignore[arg-type]
            self._changed.notify()
        return unit.future

    def close(self, timeout_ms: int = limits.COMMIT_WAIT_MS) -> None:
        """Commit what is queued, move the WAL into the database, close the connection. Returns when all is done.

        Raises `StoreUnavailable` when the disk or another process keeps it from that for `timeout_ms`.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_ms / 1000)
        if self._thread.is_alive():
            raise StoreUnavailable(f"the last writes did not reach the disk within {timeout_ms} ms")

    def _run(self) -> None:
        while True:
            units, closing = self._next_units()
            if units:
                self._commit_group(units)
                self._checkpoint_wal()
            elif closing:
                break
            self._look_elsewhere()
        self._finish()

    def _next_units(self) -> tuple[list[Unit[object]], bool]:
        with self._changed:
            if not self._queue and not self._closing:
                poll_ms = self._bell.poll_ms
                self._changed.wait(None if poll_ms is None else poll_ms / 1000)
            count = min(len(self._queue), limits.GROUP_COMMIT_MAX_COUNT)
            return [self._queue.popleft() for _ in range(count)], self._closing

    def _commit_group(self, units: list[Unit[object]]) -> None:
        self._transact(units)
        starved = [unit for unit in units if unit.essential and is_full(unit.error)]
        if starved:  # again even if the ballast was given up before: a neighbour may have been the one too large
            self._ballast.give_up()
            self._transact(starved)
        units = [unit for unit in units if unit.begin()]
        self._ring([unit for unit in units if unit.error is None])
        for unit in units:
            if unit.error is None:
                unit.future.set_result(unit.value)
            else:
                unit.future.set_exception(translate(unit.error))

    def _transact(self, units: list[Unit[object]]) -> None:
        for unit in units:
            unit.error = None
        try:
            with self._lock.held():
                self._run_transaction(units)
        except Exception as error:  # noqa: BLE001 - delivered to every waiting caller
            for unit in units:
                unit.error = unit.error or error

    def _run_transaction(self, units: list[Unit[object]]) -> None:
        self._end_transaction()  # of a group whose own ROLLBACK failed, should there be one
        try:
            self._connection.execute("BEGIN IMMEDIATE").fetchall()
            begun = [unit for unit in units if unit.begin()]  # not before the locks are held: see `wait`
            for unit in begun:
                self._attempt(unit, alone=len(begun) == 1)
            done = any(unit.error is None for unit in begun)
            self._connection.execute("COMMIT" if done else "ROLLBACK").fetchall()
            self.commit_count += done
        except Exception:
            self._end_transaction()
            raise

    def _end_transaction(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK").fetchall()

    def _attempt(self, unit: Unit[object], *, alone: bool) -> None:
        if alone:  # its failure rolls the whole transaction back
            try:
                unit.value = unit.work(self._connection)
            except Exception as error:  # noqa: BLE001 - delivered to the waiting caller
                unit.error = error
            return
        self._connection.execute("SAVEPOINT unit").fetchall()
        try:
            unit.value = unit.work(self._connection)
        except Exception as error:
            unit.error = error
            if not self._connection.in_transaction:  # SQLite gave the whole transaction up
                raise
            self._connection.execute("ROLLBACK TO unit").fetchall()
        self._connection.execute("RELEASE unit").fetchall()

    def _ring(self, units: list[Unit[object]]) -> None:
        for control in (True, False):
            sessions = frozenset(unit.session_id for unit in units if unit.control is control)
            if sessions:
                self._bell.ring(sessions, control=control)

    def _look_elsewhere(self) -> None:
        if self._bell.poll_ms is None:
            return
        try:
            version = self._read_data_version()
        except apsw.Error:
            self._bell.ring(None, control=True)  # whoever reads now meets the fault, and can say so
            return
        if version != self._data_version:
            self._data_version = version
            self._bell.ring(None, control=True)

    def _read_data_version(self) -> int:
        return self._read_number("data_version")

    def _read_number(self, pragma: str) -> int:
        row = fetch_one(self._connection, f"PRAGMA {pragma}")
        assert row is not None and isinstance(row[0], int)
        return row[0]

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_bytes = pages * self._page_bytes
        return apsw.SQLITE_OK

    def _checkpoint_wal(self) -> None:
        if self._wal_bytes < limits.WAL_CHECKPOINT_BYTES:
            return
        try:
            if self._wal_bytes < self._restart_bytes:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                return
            self._restart_bytes = self._wal_bytes + limits.WAL_CHECKPOINT_BYTES  # should this one not succeed
            self._restart_wal()
            self._restart_bytes = limits.WAL_RESTART_BYTES
        except apsw.Error:
            return  # a full or busy disk: the WAL is kept, nothing is lost, and a later commit tries again

    def _restart_wal(self) -> None:
        """Let the next commit begin the WAL anew.

        A passive checkpoint never gets there while readers follow one another without a gap: the WAL would grow for
        ever. So the writer waits for them, for an instant that is bounded.
        """
        self._connection.set_busy_timeout(limits.WAL_RESTART_BUSY_MS)
        try:
            with self._lock.held():
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        finally:
            self._connection.set_busy_timeout(limits.BUSY_TIMEOUT_MS)

    def _finish(self) -> None:
        try:
            with self._lock.held():
                self._connection.set_busy_timeout(limits.CLOSE_BUSY_MS)
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.Error, OSError):
            self._wal_bytes = 0  # others still read, or the disk is full or gone: the WAL stays, and nothing is lost
        finally:
            self._connection.close()
            self._lock.close()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()
