"""Opens a store to ask about its past: its history, or its full-text index.

It stands beside `aura.store.open`, so that these commands do not import what a live session needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from aura.store.sqlite.existing import find_database, open_existing

if TYPE_CHECKING:
    from aura.store.sqlite.history import SqliteHistory
    from aura.store.sqlite.search import SqliteSearch

T = TypeVar("T")


def find_history(directory: Path) -> SqliteHistory | None:
    """Return the past of the store in `directory` (`<write home>/sessions`), or None when there is no database yet.

    An older store is migrated first where its directory can be written; else it is read as it is. Raises
    `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    from aura.store.sqlite.history import SqliteHistory

    return _find(directory, lambda connection: SqliteHistory(directory, connection))


def find_search(directory: Path) -> SqliteSearch | None:
    """Return the index of the store in `directory`, or None when there is no database yet. Otherwise the same."""
    from aura.store.sqlite.search import SqliteSearch

    return _find(directory, lambda connection: SqliteSearch(directory, connection))


def _find(directory: Path, make: Callable[[apsw.Connection], T]) -> T | None:
    path = find_database(directory)
    if path is None:
        return None
    connection, current = open_existing(path)
    if not current and os.access(directory, os.W_OK):
        from aura.store.open import open_store

        connection.close()
        open_store(directory).close()
        connection, _ = open_existing(path)
    try:
        return make(connection)
    except BaseException:
        connection.close()
        raise
