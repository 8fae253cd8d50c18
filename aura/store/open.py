"""Opens a store: finds the file, checks whose it is and how old, migrates it, and says clearly what is wrong with
it."""

from __future__ import annotations

from pathlib import Path

from aura.store.sqlite.database import DATABASE_NAME, open_reader
from aura.store.sqlite.errors import translated
from aura.store.sqlite.migrate import check_not_newer, find_version, read_migrations
from aura.store.sqlite.store import SqliteStore


def find_store(directory: Path) -> SqliteStore | None:
    """Return the store in `directory` (`<write home>/sessions`), or None when there is no database yet.

    Nothing is created. Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    path = directory / DATABASE_NAME
    if not path.exists():
        return None
    return _open(path)


def open_store(directory: Path) -> SqliteStore:
    """Return the store in `directory`, making directory, database and schema as needed. Raises `StoreUnavailable`."""
    path = directory / DATABASE_NAME
    if path.exists():
        return _open(path)
    store = SqliteStore(path)
    store.prepare()
    return store


def _open(path: Path) -> SqliteStore:
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
