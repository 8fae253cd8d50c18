"""Opens a store: finds the file, checks whose it is and how old, migrates it, and says clearly what is wrong with
it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from aura.store.sqlite.database import DATABASE_NAME
from aura.store.sqlite.existing import find_database, open_existing
from aura.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from aura.store.sqlite.query import QueryConnection


def find_store(directory: Path) -> SqliteStore | None:
    """Return the store in `directory` (`<write home>/sessions`), or None when there is no database yet.

    Nothing is created. Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    path = find_database(directory)
    return _open(path) if path else None


def open_store(directory: Path) -> SqliteStore:
    """Return the store in `directory`, making directory, database and schema as needed. Raises `StoreUnavailable`."""
    path = find_database(directory)
    if path:
        return _open(path)
    store = SqliteStore(directory / DATABASE_NAME)
    store.prepare()
    return store


def find_query_connection(directory: Path) -> QueryConnection | None:
    """Return a connection for questions to the store in `directory`, or None when there is no database yet.

    An older store is migrated first where its directory can be written; else it is read as it is, with the views
    that it has. Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    path = find_database(directory)
    if path is None:
        return None
    connection, current = open_existing(path)
    if current or not os.access(directory, os.W_OK):
        from aura.store.sqlite.query import QueryConnection

        return QueryConnection(connection)
    connection.close()
    _open(path).close()
    return find_query_connection(directory)


def _open(path: Path) -> SqliteStore:
    connection, current = open_existing(path)
    connection.close()
    store = SqliteStore(path)
    if not current:
        store.prepare()
    return store
