"""Opens a database that is there: checks whose file it is and how old its schema is. It makes and migrates nothing,
but undoes what a crash left of the making."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from aura import limits
from aura.errors import StoreUnavailable
from aura.store.sqlite.database import DATABASE_NAME, close_connection, fetch_one, open_reader, open_writer
from aura.store.sqlite.errors import translated
from aura.store.sqlite.locks import WriterLock
from aura.store.sqlite.migrate import check_not_newer, count_migrations, find_version

_MAGIC = b"SQLite format 3\0"


def find_database(directory: Path) -> Path | None:
    """Return the path of the database in `directory`, or None when there is none. Raises `StoreUnavailable`."""
    path = directory / DATABASE_NAME
    with translated():
        return path if path.exists() else None


def open_existing(path: Path) -> tuple[apsw.Connection, bool]:
    """Return a read-only connection to the database, and whether its schema is this program's (else it is older).

    Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    _finish_rollback(path)
    _check_header(path)
    connection = open_reader(path)
    try:
        with translated():
            version, known = find_version(connection), count_migrations()
        check_not_newer(version, known)
    except BaseException:
        close_connection(connection)
        raise
    return connection, version == known


def _finish_rollback(path: Path) -> None:
    """Undo the transaction that makes the file, if a crash interrupted it: a read-only connection may not.

    Only that one has a rollback journal beside it; from then on there is a WAL.
    """
    with translated():
        if not path.with_name(f"{path.name}-journal").exists() or not os.access(path.parent, os.W_OK):
            return
        lock = WriterLock(path.parent)
        try:
            with lock.held(limits.COMMIT_WAIT_MS):  # another process may be making it at this moment
                connection = open_writer(path)
                try:
                    fetch_one(connection, "SELECT count(*) FROM sqlite_schema")
                finally:
                    close_connection(connection)
        finally:
            lock.close()


def _check_header(path: Path) -> None:
    # SQLite takes a file that is shorter than its header for an empty database, and would write over it.
    if path.is_dir():
        return  # opening it says what is wrong
    with translated(), path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start and start != _MAGIC:
        raise StoreUnavailable(
            f"{DATABASE_NAME} is damaged or is not a database",
            hint=f"Restore {DATABASE_NAME} from a backup, or move it away.",
        )
