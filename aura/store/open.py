"""Opens a store: finds the file, checks whose it is and how old, migrates it, and says clearly what is wrong with
it."""

from __future__ import annotations

from pathlib import Path

from aura.errors import StoreUnavailable
from aura.store.sqlite.database import DATABASE_NAME, open_reader
from aura.store.sqlite.errors import translated
from aura.store.sqlite.migrate import check_not_newer, find_version, read_migrations
from aura.store.sqlite.store import SqliteStore

_MAGIC = b"SQLite format 3\0"


def find_store(directory: Path) -> SqliteStore | None:
    """Return the store in `directory` (`<write home>/sessions`), or None when there is no database yet.

    Nothing is created. Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    path = directory / DATABASE_NAME
    return _open(path) if _exists(path) else None


def open_store(directory: Path) -> SqliteStore:
    """Return the store in `directory`, making directory, database and schema as needed. Raises `StoreUnavailable`."""
    path = directory / DATABASE_NAME
    if _exists(path):
        return _open(path)
    store = SqliteStore(path)
    store.prepare()
    return store


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


def _exists(path: Path) -> bool:
    with translated():
        return path.exists()


def _open(path: Path) -> SqliteStore:
    _check_header(path)
    connection = open_reader(path)
    try:
        with translated():
            known = len(read_migrations())
            version = find_version(connection)
    finally:
        connection.close()
    check_not_newer(version, known)
    store = SqliteStore(path)
    if version < known:
        store.prepare()
    return store
