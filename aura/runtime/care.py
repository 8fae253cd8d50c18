"""The store as a whole: the verbs behind `aura store` (docs/store.md).

Each verb opens what it needs, does one thing and closes it. It imports neither engine nor server, and prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from aura.clock import Clock, SystemClock
from aura.errors import BadRequest, Exists, NotFound
from aura.runtime import files
from aura.store.care import (
    CheckReport,
    Facts,
    Finding,
    Progress,
    PruneReport,
    PruneRule,
    StoreStats,
    Vacuumed,
    What,
    no_progress,
)
from aura.store.caretaker import Caretaker, find_caretaker
from aura.store.sqlite.database import DATABASE_NAME


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy that was verified. `written` is False when the same bytes were there already. `path` is absolute."""

    path: str
    size_bytes: int
    sha256: str
    written: bool
    sessions: int


@dataclass(frozen=True, slots=True)
class PruneRequest:
    """What a person asks to remove: see `PruneRule`. `older_than_ms` is an age, None for any."""

    what: What = "sessions"
    older_than_ms: int | None = None
    keep: int = 0
    keep_revisions: int = 1


class Care:
    """The care of one store directory. One thread at a time; each verb blocks.

    Every verb but `path` raises `NotFound` where there is no store yet, and may raise `StoreUnavailable`.
    """

    def __init__(self, directory: Path, clock: Clock | None = None) -> None:
        """Look at `directory` (`<write home>/sessions`), which need not exist."""
        self._directory = directory
        self._clock = clock or SystemClock()

    @property
    def path(self) -> Path:
        """Where the database is, or will be."""
        return self._directory.absolute() / DATABASE_NAME

    def check(self, *, quick: bool = False, repair: bool = False, progress: Progress = no_progress) -> CheckReport:
        """Return what is wrong with the store. With `repair`, what can be put right without a loss is, and then it is
        checked again.

        Servers may go on writing. `quick` leaves out what takes time in proportion to the text of the store.
        """
        taker = self._taker()
        report = taker.check(quick=quick, progress=progress)
        if not repair:
            return report
        repaired = taker.repair(report, self._clock.now_ms())
        if not repaired:
            return report
        return replace(taker.check(quick=quick, progress=progress), repaired=tuple(repaired))

    def back_up(self, target: str, progress: Progress = no_progress) -> Backup:
        """Write a verified copy of the store to the file `target`, with mode 0600, while servers write.

        The same bytes at that place are left alone. Raises `Exists` for another file, `BadRequest` for a place that
        cannot be written.
        """
        taker, path = self._taker(), Path(target).absolute()
        if not target or target.endswith("/") or path.is_dir():
            raise BadRequest(f"{target!r} is not a file name", hint="Name a file that is not there yet.")
        if path.exists() and path.stat().st_size != taker.read_size():  # else only the copy can tell
            raise _exists(path)
        try:
            part = files.make_part(path)
        except OSError as error:
            raise files.unwritable(path, error) from error
        try:
            sessions = taker.back_up(part, progress)
            digest = files.find_sha256(part)
            written = not self._is_there(path, digest)
            if written:
                files.give_name(part, path)
        except FileExistsError as error:
            raise _exists(path) from error
        except OSError as error:
            raise files.unwritable(path, error) from error
        finally:
            part.unlink(missing_ok=True)
        return Backup(str(path), path.stat().st_size, digest or "", written, sessions)

    def prune(self, request: PruneRequest, *, dry_run: bool, progress: Progress = no_progress) -> PruneReport:
        """Remove old sessions, revisions or events, or with `dry_run` only say what that would remove.

        Never a frozen session, one that is held or has a run that has not settled, or a head.
        """
        now_ms = self._clock.now_ms()
        before_ms = None if request.older_than_ms is None else now_ms - request.older_than_ms
        rule = PruneRule(request.what, before_ms, request.keep, request.keep_revisions)
        taker = self._taker()
        return taker.plan_prune(rule, progress) if dry_run else taker.prune(rule, now_ms, progress)

    def measure(self, days: int) -> StoreStats:
        """Return what is in the store, and what was added on each of the last `days` days."""
        return self._taker().measure(self._clock.now_ms(), days)

    def vacuum(self) -> Vacuumed:
        """Give free pages back to the file system. Raises `SessionLocked`, and `StoreFull` where there is no room."""
        return self._taker().vacuum()

    def _taker(self) -> Caretaker:
        taker = find_caretaker(self._directory)
        if taker is None:
            raise NotFound(f"there is no store in {self._directory}", hint="The first session makes one.")
        return taker

    def _is_there(self, path: Path, digest: str | None) -> bool:
        found = files.find_sha256(path)
        if found is not None and found != digest:
            raise _exists(path)
        return found is not None


def _exists(path: Path) -> Exists:
    return Exists(f"{path} exists and differs", hint="Name another file, or move that one away.")


__all__ = [
    "Backup",
    "Care",
    "CheckReport",
    "Facts",
    "Finding",
    "PruneReport",
    "PruneRequest",
    "StoreStats",
    "Vacuumed",
    "What",
]
