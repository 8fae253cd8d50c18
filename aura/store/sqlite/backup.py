"""Copies the database while servers write: one consistent state, verified.

The copy is taken of one snapshot, so writes that go on do not make it begin anew; meanwhile the WAL cannot be taken up,
which ends with the copy and is bounded by `limits.BACKUP_WAL_MAX_BYTES`. The result is a plain `aura.db` without a WAL.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from aura import limits
from aura.errors import BadRequest, StoreUnavailable
from aura.store.care import Progress
from aura.store.sqlite import check
from aura.store.sqlite.database import close_connection, fetch_all, fetch_one, open_immutable
from aura.store.sqlite.inspection import wal_bytes


def back_up(
    source: apsw.Connection,
    path: Path,
    part: Path,
    progress: Progress,
    wal_max_bytes: int = limits.BACKUP_WAL_MAX_BYTES,
) -> int:
    """Copy the database `path`, read through `source`, into the empty file `part`; return how many sessions it has.

    Afterwards `part` is synced and has passed a quick check. Raises `BadRequest` when there is no room for it,
    `StoreUnavailable` when it does not pass, or when the WAL grew beyond its bound meanwhile.
    """
    try:
        _copy(source, path, part, progress, wal_max_bytes)
    except apsw.FullError as error:
        raise BadRequest(f"there is no room for the copy in {part.parent}", hint="Choose another place.") from error
    sessions = _verify(part, progress)
    fd = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return sessions


def read_size(connection: apsw.Connection) -> int:
    """Return how large a copy of the database would be now, in bytes."""
    return _read_number(connection, "PRAGMA page_count") * _read_number(connection, "PRAGMA page_size")


def _copy(source: apsw.Connection, path: Path, part: Path, progress: Progress, wal_max_bytes: int) -> None:
    copy = apsw.Connection(str(part))
    source.execute("BEGIN").fetchall()
    try:
        fetch_all(source, "SELECT 1 FROM session LIMIT 1")  # from here on it is the state of this moment
        copy.execute("PRAGMA synchronous = OFF").fetchall()  # the caller syncs it as a whole
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(limits.BACKUP_STEP_PAGES)
                progress("backup", backup.page_count - backup.remaining, backup.page_count)
                if wal_bytes(path) > wal_max_bytes:
                    raise StoreUnavailable(
                        "servers wrote faster than the copy could be made",
                        hint="Choose a faster disk, or a quieter time.",
                    )
    finally:
        source.execute("ROLLBACK").fetchall()
        copy.close()


def _verify(part: Path, progress: Progress) -> int:
    connection = open_immutable(part)
    try:
        report = check.inspect(connection, part, quick=True, progress=progress)
        found = [finding for finding in report.findings if finding.code != "run_unowned"]  # its holder is elsewhere
        if found:
            raise StoreUnavailable(
                f"the copy did not pass its check: {found[0].message}", hint="`aura store check` says what is wrong."
            )
        return _read_number(connection, "SELECT count(*) FROM session")
    finally:
        close_connection(connection)


def _read_number(connection: apsw.Connection, sql: str) -> int:
    row = fetch_one(connection, sql)
    assert row is not None and isinstance(row[0], int)
    return row[0]
