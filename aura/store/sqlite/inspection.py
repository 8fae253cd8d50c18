"""What a check carries along while it goes through a store: findings, counts, what was left out, progress.

It also lends the check its connection: `page` bounds how much one statement takes, `watched` how far a long one may
let servers' WAL grow. It knows no table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from aura import limits
from aura.store.care import Finding, Progress, Skipped, no_progress
from aura.store.sqlite.errors import translate


@dataclass(slots=True)
class Inspection:
    """A check under way. `quick`: what costs time in proportion to the text of a store is left out."""

    connection: apsw.Connection
    path: Path
    quick: bool
    progress: Progress = no_progress
    wal_max_bytes: int = limits.CHECK_WAL_MAX_BYTES
    findings: list[Finding] = field(default_factory=list)
    finding_count: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)

    def report(
        self,
        code: str,
        message: str,
        *,
        table: str | None = None,
        session_id: str | None = None,
        repairable: bool = False,
    ) -> None:
        """Take a finding down; the ones after `limits.CHECK_FINDINGS_MAX_COUNT` are only counted."""
        self.finding_count += 1
        if len(self.findings) < limits.CHECK_FINDINGS_MAX_COUNT:
            self.findings.append(Finding(code, message, table, session_id, repairable))

    def skip(self, what: str, why: str) -> None:
        """Say that a part was left out."""
        self.skipped.append(Skipped(what, why))

    @contextmanager
    def guarded(self, what: str, session_id: str | None = None, table: str | None = None) -> Iterator[None]:
        """Go on after the block when the file cannot be read there: that is a finding, not the end of the check."""
        try:
            yield
        except apsw.Error as error:
            if isinstance(error, apsw.BusyError | apsw.CantOpenError | apsw.NoMemError):
                raise
            self._end_transaction()
            message = f"{what} cannot be read: {translate(error).message}"
            self.report("damaged", message, table=table, session_id=session_id)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the store in the block, which must be short: the WAL cannot be taken up meanwhile."""
        self.connection.execute("BEGIN").fetchall()
        try:
            yield
        finally:
            self._end_transaction()

    @contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Run a long statement in the block, but not on at the price of a WAL that grows without bound.

        When it is given up, that is said among what was left out.
        """
        self.connection.set_progress_handler(self._wal_is_too_large, limits.CHECK_TICK_STEPS)
        try:
            yield
        except apsw.InterruptError:
            self._end_transaction()
            self.skip(
                what, "servers write so much that it would have kept them from tidying up: check a backup instead"
            )
        finally:
            self.connection.set_progress_handler(None)

    def _wal_is_too_large(self) -> bool:
        return wal_bytes(self.path) > self.wal_max_bytes

    def _end_transaction(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK").fetchall()


@dataclass(slots=True)
class PageSize:
    """How many rows the next statement of a walk takes: few where they are large."""

    rows: int = 64

    def learn(self, row_count: int, byte_count: int) -> None:
        """Take the latest page as the measure of the next one."""
        fitting = limits.CHECK_PAGE_BYTES * row_count // max(byte_count, 1)
        self.rows = max(1, min(limits.CHECK_PAGE_ROWS, fitting, self.rows * 4))


def wal_bytes(path: Path) -> int:
    """Return the size of the WAL beside the database `path`, 0 when there is none."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0
