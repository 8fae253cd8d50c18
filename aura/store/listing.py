"""Lists the sessions of a store without opening all of it: one read-only connection, one statement.

It stands beside `aura.store.open` so that the most frequent question of people imports no verb that writes.
"""

from __future__ import annotations

from pathlib import Path

from aura.conversation import Summary
from aura.store.sqlite.database import close_connection
from aura.store.sqlite.errors import translated
from aura.store.sqlite.existing import find_database, open_existing
from aura.store.sqlite.summaries import list_summaries


def list_sessions(directory: Path) -> tuple[Summary, ...]:
    """Return all sessions of the store in `directory`, the most recently updated first; none where there is no store.

    A store with an older schema is migrated first. Any native thread; raises `StoreUnavailable`.
    """
    path = find_database(directory)
    if path is None:
        return ()
    connection, current = open_existing(path)
    try:
        if not current:
            _migrate(directory)
        with translated():
            return tuple(list_summaries(connection))
    finally:
        close_connection(connection)


def _migrate(directory: Path) -> None:
    from aura.store.open import open_store

    open_store(directory).close()
