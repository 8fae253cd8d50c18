"""Notices commits of any process by `PRAGMA data_version`, on a read-only connection of its own. It starts no thread
and makes no file."""

from __future__ import annotations

from pathlib import Path

from aura.store.sqlite.database import fetch_one, open_reader
from aura.store.sqlite.errors import translated


class DataVersionPoll:
    """See `aura.store.journals.ChangePoll`. The first call always returns True: whoever has just looked may have
    looked too early."""

    def __init__(self, path: Path) -> None:
        self._connection = open_reader(path)
        self._version: object = None

    def changed(self) -> bool:
        """Return True if there was a commit since the last call. Raises store errors."""
        with translated():
            row = fetch_one(self._connection, "PRAGMA data_version")
        assert row is not None
        before, self._version = self._version, row[0]
        return before != self._version

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
