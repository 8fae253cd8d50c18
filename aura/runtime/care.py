"""The store as a whole: the verbs behind `aura store` (docs/store.md).

Each verb opens what it needs, does one thing and closes it. It imports neither engine nor server, and prints nothing.
"""

from __future__ import annotations

from pathlib import Path

from aura.errors import NotFound
from aura.store.care import CheckReport, Facts, Finding, Progress, Skipped
from aura.store.caretaker import Caretaker, find_caretaker
from aura.store.sqlite.database import DATABASE_NAME


def no_progress(what: str, done: int, total: int) -> None:
    """Say nothing."""


class Care:
    """The care of one store directory. One thread at a time; each verb blocks.

    Every verb but `path` raises `NotFound` where there is no store yet, and may raise `StoreUnavailable`.
    """

    def __init__(self, directory: Path) -> None:
        """Look at `directory` (`<write home>/sessions`), which need not exist."""
        self._directory = directory

    @property
    def path(self) -> Path:
        """Where the database is, or will be."""
        return self._directory.absolute() / DATABASE_NAME

    def check(self, *, quick: bool = False, progress: Progress = no_progress) -> CheckReport:
        """Return what is wrong with the store.

        Servers may go on writing. `quick` leaves out what takes time in proportion to the text of the store.
        """
        return self._taker().check(quick=quick, progress=progress)

    def _taker(self) -> Caretaker:
        taker = find_caretaker(self._directory)
        if taker is None:
            raise NotFound(f"there is no store in {self._directory}", hint="The first session makes one.")
        return taker


__all__ = ["Care", "CheckReport", "Facts", "Finding", "Progress", "Skipped"]
