"""The verbs on a store as a whole (docs/store.md): check it, and what else `aura store` does.

Each opens its own connections and closes them, and works beside servers unless it says otherwise. Any native thread.
"""

from __future__ import annotations

from pathlib import Path

from aura.store.care import CheckReport, Progress
from aura.store.open import find_store
from aura.store.sqlite import check
from aura.store.sqlite.database import DATABASE_NAME, open_reader
from aura.store.sqlite.errors import translated
from aura.store.sqlite.inspection import no_progress


class Caretaker:
    """The care of the store in one directory, which has a database. `find_caretaker` makes it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory.absolute() / DATABASE_NAME

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    def check(self, *, quick: bool = False, progress: Progress = no_progress) -> CheckReport:
        """Return what is wrong with the store; it is only read. Raises `StoreUnavailable` when it cannot be."""
        with translated():
            connection = open_reader(self._path)
            try:
                return check.inspect(connection, self._path, quick=quick, progress=progress)
            finally:
                connection.close()


def find_caretaker(directory: Path) -> Caretaker | None:
    """Return the care of the store in `directory`, or None when there is no database yet.

    An older store is migrated. Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    store = find_store(directory)
    if store is None:
        return None
    store.close()
    return Caretaker(directory)
