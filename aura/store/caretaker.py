"""The verbs on a store as a whole (docs/store.md): check, repair, backup, prune, stats, vacuum.

Each opens its own connections and closes them, and works beside servers unless it says otherwise. Any native thread;
each verb blocks for as long as it takes.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aura.errors import SessionFrozen, SessionLocked
from aura.store.care import CheckReport, Facts, Progress, PruneReport, PruneRule, StoreStats, Vacuumed
from aura.store.lost import lost_events
from aura.store.open import find_store
from aura.store.protocol import Batch, Holder, RunFilter
from aura.store.sqlite import check, prune, repair
from aura.store.sqlite.care_writer import open_care_writer
from aura.store.sqlite.database import DATABASE_NAME, ReaderPool
from aura.store.sqlite.errors import translated
from aura.store.sqlite.locks import Ballast
from aura.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from aura.store.sqlite.database import Connection


class Caretaker:
    """The care of the store in one directory, which has a database. `find_caretaker` makes it.

    Every verb may raise `StoreUnavailable`.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory.absolute() / DATABASE_NAME

    def check(self, *, quick: bool, progress: Progress) -> CheckReport:
        """Return what is wrong with the store; it is only read."""
        with self._reader() as connection:
            return check.inspect(connection, self._path, quick=quick, progress=progress)

    def repair(self, report: CheckReport, at_ms: int) -> list[str]:
        """Put right what `report` found and what can be put right without a loss; return what was done.

        `at_ms` dates the records of runs that are lost.
        """
        with self._reader() as reader, open_care_writer(self._path) as writer:
            done = repair.repair(reader, writer, report)
            gone = prune.finish_removals(reader, writer, self._path)
        done += [f"finished the removal of session {session_id}" for session_id in gone]
        unowned = [finding.session_id for finding in report.findings if finding.code == "run_unowned"]
        done += self._settle([session_id for session_id in unowned if session_id is not None], at_ms)
        if self._lay_ballast(report.facts):
            done.append("laid the ballast anew")
        return done

    def back_up(self, part: Path, progress: Progress) -> int:
        """Copy the store into the empty file `part`, synced and checked; return how many sessions it has.

        Raises `BadRequest` when there is no room for it.
        """
        from aura.store.sqlite.backup import back_up

        with self._reader() as connection:
            return back_up(connection, self._path, part, progress)

    def read_size(self) -> int:
        """Return how large a backup would be now, in bytes."""
        from aura.store.sqlite.backup import read_size

        with self._reader() as connection:
            return read_size(connection)

    def plan_prune(self, rule: PruneRule, progress: Progress) -> PruneReport:
        """Return what `prune` would do."""
        with self._reader() as connection:
            return prune.plan(connection, self._path, rule, progress)

    def prune(self, rule: PruneRule, at_ms: int, progress: Progress) -> PruneReport:
        """Remove what `rule` says, in transactions that keep servers waiting for moments only."""
        with self._reader() as reader, open_care_writer(self._path) as writer:
            return prune.prune(reader, writer, self._path, rule, at_ms, progress)

    def measure(self, now_ms: int, days: int) -> StoreStats:
        """Return what is in the store, and what was added on each of the last `days` days."""
        from aura.store.sqlite.sizes import measure

        with self._reader() as connection:
            return measure(connection, self._path, now_ms, days)

    def vacuum(self) -> Vacuumed:
        """Make the file as small as what is in it. Raises `SessionLocked`, and `StoreFull` where there is no room."""
        from aura.store.sqlite.vacuum import vacuum

        with translated():
            return vacuum(self._path)

    @contextmanager
    def _reader(self) -> Iterator[Connection]:
        pool = ReaderPool(self._path)
        try:
            with pool.connection() as connection:
                yield connection
        finally:
            pool.close()

    def _settle(self, session_ids: list[str], at_ms: int) -> Iterator[str]:
        if not session_ids:
            return
        store = SqliteStore(self._path)
        try:
            for session_id in session_ids:
                yield from _record_lost(store, session_id, at_ms)
        finally:
            store.close()

    def _lay_ballast(self, facts: Facts) -> bool:
        if facts.ballast_bytes:
            return False
        with translated():
            Ballast(self._path.parent).ensure()
        return True


def _record_lost(store: SqliteStore, session_id: str, at_ms: int) -> Iterator[str]:
    try:
        lease = store.acquire(session_id, Holder(os.getpid()))
    except (SessionLocked, SessionFrozen):
        return  # somebody came to do it
    try:
        live = store.list_runs(RunFilter(session_id, live=True)).items
        inputs = [item for run in live for item in store.list_inputs(run.id)]
        session, persisted_seq = store.get_session(session_id), store.read_persisted_seq(session_id)
        lost = lost_events(live, inputs, session, persisted_seq, at_ms)
        store.commit(lease, Batch(uuid.uuid4().hex, lost, essential=True)).result()
    finally:
        store.release(lease)
    for run in live:
        yield f"recorded run {run.id} of session {session_id} as lost"


def find_caretaker(directory: Path) -> Caretaker | None:
    """Return the care of the store in `directory`, or None when there is no database yet.

    An older store is migrated. Raises `StoreUnavailable` for a file that is damaged, newer, or of another program.
    """
    store = find_store(directory)
    if store is None:
        return None
    store.close()
    return Caretaker(directory)
