"""Writes the database file anew, so that the pages that pruning freed go back to the file system.

It needs the whole database for itself: no session may be held, and nobody writes meanwhile.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import apsw

from aura import limits
from aura.errors import SessionLocked, StoreFull, StoreUnavailable
from aura.store.care import Vacuumed
from aura.store.sqlite.backup import read_size
from aura.store.sqlite.database import close_connection, fetch_all, open_writer
from aura.store.sqlite.locks import WriterLock, is_session_locked


def vacuum(path: Path) -> Vacuumed:
    """Make the database `path` as small as what is in it.

    Raises `SessionLocked` when a process holds a session, `StoreFull` when the disk has no room for two more copies (a
    temporary one, and the WAL), and `StoreUnavailable` when other processes write or read all the time.
    """
    connection = open_writer(path)
    try:
        with ExitStack() as held:
            lock = WriterLock(path.parent)
            held.callback(lock.close)
            held.enter_context(lock.held(limits.COMMIT_WAIT_MS))
            _check_not_held(connection, path)
            before = read_size(connection)
            _check_room(path, before)
            _run(connection)
            return Vacuumed(before, path.stat().st_size)
    finally:
        close_connection(connection)


def _run(connection: apsw.Connection) -> None:
    try:
        fetch_all(connection, "VACUUM")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError as error:
        raise StoreUnavailable(
            "another program reads the database", hint="Try again when no query or backup is under way."
        ) from error


def _check_not_held(connection: apsw.Connection, path: Path) -> None:
    sql = "SELECT id FROM session ORDER BY sid"
    for (session_id,) in cast("list[tuple[str]]", fetch_all(connection, sql)):
        if is_session_locked(path.parent, session_id):
            raise SessionLocked(
                f"session {session_id} is held by another process",
                hint="Stop that process first.",
            )


def _check_room(path: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < 2 * size_bytes:
        raise StoreFull(
            f"a vacuum needs {2 * size_bytes} bytes on the disk, {free} are free",
            hint="Free some space, or prune: pages that become free are used again.",
        )
