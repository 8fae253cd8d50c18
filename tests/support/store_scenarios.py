"""What the store does while its disk fails: scenarios of one verb each, with what must be true afterwards.

A scenario is prepared without faults, acts once with them, and tells what it was told. It asserts nothing of faults.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import apsw

from aura import limits
from aura.conversation import Message
from aura.store.care import CheckReport, PruneRule
from aura.store.caretaker import find_caretaker
from aura.store.lost import lost_events
from aura.store.open import open_store
from aura.store.protocol import Batch, RunFilter
from aura.store.sqlite.database import DATABASE_NAME
from aura.store.sqlite.migrate import migrate, read_migrations
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.care_kit import fill
from tests.unit.store.store_kit import ME, NOW_MS, Keeper, exported, header, parsed, persisted, query, sha256

LATER_MS = NOW_MS + 10_000
SMALL_WAL_BYTES = 48 * 1024  # so that the WAL is moved into the database in the middle of a scenario
Told = list[tuple[str, int]]  # sessions and seqs of theirs that were acknowledged


@dataclass(frozen=True)
class Scenario:
    """`prepare` makes a store in a directory; `act` does the verb in it and notes each seq that it was told; `holds`
    says what is missing once it was acknowledged, "" for nothing. `again` is what a caller does after a failure, with
    the same outcome."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path, Told], None]
    holds: Callable[[Path], str]
    again: Callable[[Path], None]


def opened(directory: Path, work: Callable[[SqliteStore], None]) -> None:
    """Do `work` in the opened store, and close it."""
    store = open_store(directory)
    try:
        work(store)
    finally:
        store.close()


def prepare_filled(directory: Path) -> None:
    """Make a store with some of everything, and a session `mine` that has a run behind it."""

    def work(store: SqliteStore) -> None:
        fill(store)
        store.create_session(header("mine"))
        keeper = Keeper(store, "mine")
        keeper.complete("r0")
        keeper.release()

    opened(directory, work)


def act_checkpoint(directory: Path, told: Told) -> None:
    """Do a run with a save."""
    _run(directory, "c1", told)


def again_checkpoint(directory: Path) -> None:
    """Settle a run that was left behind, as the next server does; then do one, unless the first was settled well."""

    def work(store: SqliteStore) -> None:
        run = store.find_request("mine", "c1")
        if run is not None and run.state == "persisted":
            return
        settle_lost(store, "mine", LATER_MS)

    opened(directory, work)
    if _settled(directory, "c1") != ["persisted"]:
        _run(directory, "c2", [])


def settle_lost(store: SqliteStore, name: str, at_ms: int) -> None:
    """Settle the run that a process left behind in a session."""
    lease = store.acquire(name, ME)
    try:
        live = store.list_runs(RunFilter(name, live=True)).items
        lost = lost_events(live, [], store.get_session(name), store.read_persisted_seq(name), at_ms)
        if lost:
            store.commit(lease, Batch(uuid.uuid4().hex, lost)).result(30)
    finally:
        store.release(lease)


def holds_checkpoint(directory: Path) -> str:
    """One run of the two is settled well, and its messages are there once."""
    states = _settled(directory, "c1") + _settled(directory, "c2")
    sql = """
        SELECT count(*) FROM v_message WHERE session_id = 'mine' AND content LIKE 'kept%'
    """
    kept = query(directory / DATABASE_NAME, sql)
    good = states.count("persisted") == 1 and kept[0][0] in (1, 2)  # a lost run may have saved its own
    return "" if good else f"runs {states}, messages {kept}"


def act_accept(directory: Path, told: Told) -> None:
    """Accept a run."""

    def work(store: SqliteStore) -> None:
        keeper = Keeper(store, "mine")
        try:
            told.append(("mine", keeper.accept("c1").accepted_seq))
        finally:
            keeper.release()

    opened(directory, work)


def holds_accept(directory: Path) -> str:
    """The run is there once, with its event."""
    path = directory / DATABASE_NAME
    runs = query(path, "SELECT count(*) FROM run WHERE request_id = 'c1'")
    events = query(path, "SELECT count(*) FROM event JOIN run ON run.id = event.run WHERE request_id = 'c1'")
    return "" if (runs, events) == ([(1,)], [(1,)]) else f"runs {runs}, events {events}"


def _run(directory: Path, request_id: str, told: Told) -> None:
    def work(store: SqliteStore) -> None:
        keeper = Keeper(store, "mine")
        try:
            run = keeper.accept(request_id)
            told.append(("mine", run.accepted_seq))
            keeper.start(run)
            told.append(("mine", run.accepted_seq + 2))
            added = [Message("user", "x" * 30_000, id="m8"), Message("assistant", f"kept {request_id}", id="m9")]
            keeper.save(added, run_id=run.id)
            told.append(("mine", run.accepted_seq + 3))
            keeper.finish(run)
            told.append(("mine", run.accepted_seq + 7))
        finally:
            keeper.release()

    opened(directory, work)


def _settled(directory: Path, request_id: str) -> list[str]:
    sql = "SELECT state FROM v_run WHERE session_id = 'mine' AND request_id = ? AND NOT live"
    return [str(state) for (state,) in query(directory / DATABASE_NAME, sql, request_id)]


def act_import(directory: Path, _told: Told) -> None:
    """Import a document."""
    document = parsed("new", *(f"message {n} " + "y" * 2000 for n in range(40)))
    opened(directory, lambda store: _discard(store.import_session(document, freeze=False, at_ms=LATER_MS)))


def holds_session(name: str) -> Callable[[Path], str]:
    """The session is there, and its bytes hash to its revision."""

    def holds(directory: Path) -> str:
        found = ""

        def work(store: SqliteStore) -> None:
            nonlocal found
            summary = store.find_session(name)
            if summary is None or sha256(exported(store, name)) != summary.revision:
                found = f"session {name} is {summary}"

        opened(directory, work)
        return found

    return holds


def act_fork(directory: Path, _told: Told) -> None:
    """Fork a session."""
    opened(directory, lambda store: _discard(store.fork("mine", "child", title="A child", at_ms=LATER_MS)))


def act_freeze(directory: Path, _told: Told) -> None:
    """Freeze a session."""
    opened(directory, lambda store: _discard(store.freeze("mine", at_ms=LATER_MS)))


def holds_freeze(directory: Path) -> str:
    """It is frozen."""
    frozen = query(directory / DATABASE_NAME, "SELECT frozen FROM session WHERE id = 'mine'")
    return "" if frozen == [(1,)] else f"frozen {frozen}"


def act_growth(directory: Path, told: Told) -> None:
    """Save again and again, while the WAL is moved into the database and begun anew."""

    def work(store: SqliteStore) -> None:
        keeper = Keeper(store, "mine")
        try:
            for number in range(6):
                saved = keeper.checkpoint([Message("assistant", f"{number} " + "w" * 12_000, id=f"g{number}")])
                told.append(("mine", keeper.commit([persisted(saved)], None, saved).last_seq))
        finally:
            keeper.release()

    small = {"WAL_CHECKPOINT_BYTES": SMALL_WAL_BYTES, "WAL_RESTART_BYTES": 2 * SMALL_WAL_BYTES}
    with patch.multiple(limits, **small):
        opened(directory, work)


def act_prune(directory: Path, _told: Told) -> None:
    """Remove a session, all but the newest revisions, and events of the others."""
    taker = find_caretaker(directory)
    assert taker is not None
    taker.prune(PruneRule("revisions", keep_revisions=1), LATER_MS, _quiet)
    taker.prune(PruneRule("sessions", before_ms=LATER_MS + 1, keep=1), LATER_MS, _quiet)


def holds_prune(directory: Path) -> str:
    """A session that may go is gone."""
    left = query(directory / DATABASE_NAME, "SELECT id FROM session WHERE id = 'bare'")
    return "" if not left else f"left {left}"


def prepare_nothing(directory: Path) -> None:
    """Make no store."""
    directory.mkdir(parents=True, exist_ok=True)


def prepare_first_schema(directory: Path) -> None:
    """Make a store as the first release had it, with a session in it."""
    directory.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(directory / DATABASE_NAME))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    migrate(connection, read_migrations()[:1])
    connection.close()


def act_open(directory: Path, _told: Told) -> None:
    """Open the store, which makes or migrates it, and put a session into it."""

    def work(store: SqliteStore) -> None:
        if store.find_session("first") is None:
            store.create_session(header("first"))

    opened(directory, work)


def holds_open(directory: Path) -> str:
    """The schema is the newest one, and the session is there."""
    path = directory / DATABASE_NAME
    version = query(path, "PRAGMA user_version")
    sessions = query(path, "SELECT id FROM session")
    return "" if (version, sessions) == ([(len(read_migrations()),)], [("first",)]) else f"{version}, {sessions}"


def _repeat(act: Callable[[Path, Told], None]) -> Callable[[Path], None]:
    return lambda directory: act(directory, [])


SCENARIOS = (
    Scenario("checkpoint", prepare_filled, act_checkpoint, holds_checkpoint, again_checkpoint),
    Scenario("accept", prepare_filled, act_accept, holds_accept, _repeat(act_accept)),
    Scenario("import", prepare_filled, act_import, holds_session("new"), _repeat(act_import)),
    Scenario("fork", prepare_filled, act_fork, holds_session("child"), _repeat(act_fork)),
    Scenario("freeze", prepare_filled, act_freeze, holds_freeze, _repeat(act_freeze)),
    Scenario("prune", prepare_filled, act_prune, holds_prune, _repeat(act_prune)),
    Scenario("create", prepare_nothing, act_open, holds_open, _repeat(act_open)),
    Scenario("migrate", prepare_first_schema, act_open, holds_open, _repeat(act_open)),
    Scenario("growth", prepare_filled, act_growth, holds_session("mine"), _repeat(act_growth)),
)


class Stage:
    """Copies of a prepared store, one for each attempt."""

    def __init__(self, scenario: Scenario, root: Path) -> None:
        self._scenario = scenario
        self._root = root
        self._template = root / "template"
        self._count = 0
        scenario.prepare(self._template)

    @property
    def scenario(self) -> Scenario:
        """What it is a stage of."""
        return self._scenario

    def copy(self) -> Path:
        """Return a fresh directory with the prepared store; the one before is removed."""
        before = self._root / f"attempt-{self._count}"
        shutil.rmtree(before, ignore_errors=True)
        self._count += 1
        directory = self._root / f"attempt-{self._count}"
        shutil.copytree(self._template, directory)
        return directory


def find_lost(directory: Path, told: Told) -> list[str]:
    """Return what was acknowledged and is not there."""
    if not told:
        return []
    last_seqs = dict(query(directory / DATABASE_NAME, "SELECT id, last_seq FROM session"))
    short = [(session, seq) for session, seq in told if int(str(last_seqs.get(session, 0))) < seq]
    return [f"event {seq} of {session} was acknowledged and is lost" for session, seq in short]


def check_store(directory: Path) -> CheckReport | None:
    """Check the whole store; None where there is none yet."""
    taker = find_caretaker(directory)
    return None if taker is None else taker.check(quick=False, progress=_quiet)


def _discard(_value: object) -> None:
    """For verbs whose answer nobody needs."""


def _quiet(*_args: object) -> None:
    """Nobody watches."""
