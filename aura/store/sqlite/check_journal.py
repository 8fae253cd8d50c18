"""Goes through every session's journal: seq, chain hash, run records, derived rows (DESIGN.md section 4, Evidence).

Events never change, so pages are read without a snapshot up to the `last_seq` that the session's row had; then one
snapshot holds the rest and what may still change: the live run and its rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import cast

from aura import events as e
from aura.runs import NewRun, Run, accept, fold
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.derived import Replay, find_difference, read_derived
from aura.store.sqlite.inspection import Inspection, PageSize
from aura.store.sqlite.journal import GENESIS_HASH
from aura.store.sqlite.rows import SELECT_RUN, read_run
from aura.wire.automation import envelope
from aura.wire.stored_event import read_stored_event

_SESSIONS = "SELECT sid, id FROM session WHERE sid > ? AND head NOT NULL ORDER BY sid LIMIT 1000"
_STATE = "SELECT journal_floor, last_seq, chain_hash, persisted_seq FROM session WHERE sid = ?"
_BOUNDS = "SELECT count(*), min(seq), max(seq) FROM event WHERE sid = ? AND seq >= ?"
_EVENTS = """
    SELECT e.seq, e.at_ms, e.run, r.run_id, e.type, CAST(e.data AS BLOB), e.kind, e.ext, e.chain_hash,
           json_valid(e.data)
    FROM event e LEFT JOIN run r ON r.id = e.run
    WHERE e.sid = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?
"""
_RUN = SELECT_RUN.replace("r.settled_at_ms\n", "r.settled_at_ms, r.text, r.last_seq\n")

# Events that change no record and no derived row: that they are whole is shown by their hash.
_PLAIN = frozenset(
    kind.kind for kind in (e.Notice, e.StatusChanged, e.MessageUser, e.CommandResult, e.ServerStarted, e.ServerStopping)
)

_EventRow = tuple[int, int, "int | None", "str | None", str, bytes, str, "str | None", bytes, int]


@dataclass(frozen=True, slots=True)
class _Bounds:
    floor: int
    last_seq: int
    chain_hash: bytes
    persisted_seq: int


@dataclass(slots=True)
class _Walk:
    """How far a journal has been read. `open_runs` are the records that its events have made so far, by row id."""

    sid: int
    session_id: str
    seq: int
    chain_hash: bytes | None
    persisted_seq: int = 0
    broken: bool = False
    open_runs: dict[int, Run] = field(default_factory=dict)


def check(inspection: Inspection) -> None:
    """Check the journal of every session."""
    sessions = _read_sessions(inspection)
    if inspection.quick:
        inspection.skip("the hashes of events, and what runs and their rows make of them", "--quick")
    with inspection.guarded("the schema"):
        replay = Replay(inspection.connection)
        try:
            for number, (sid, session_id) in enumerate(sessions):
                inspection.progress("journals", number, len(sessions))
                with inspection.guarded("the journal", session_id, "event"):
                    _JournalCheck(inspection, replay).check(sid, session_id)
        finally:
            replay.close()


def _read_sessions(inspection: Inspection) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    with inspection.guarded("table session", table="session"):
        while rows := fetch_all(inspection.connection, _SESSIONS, found[-1][0] if found else 0):
            found += cast("list[tuple[int, str]]", rows)
    return found


class _JournalCheck:
    """The check of one journal."""

    def __init__(self, inspection: Inspection, replay: Replay) -> None:
        self._inspection = inspection
        self._connection = inspection.connection
        self._replay = replay
        self._last_seqs: dict[int, int] = {}

    def check(self, sid: int, session_id: str) -> None:
        """Check the journal of the session `session_id`, whose row is `sid`."""
        with self._inspection.snapshot():
            bounds = self._find_bounds(sid)
            if bounds is None:
                return  # it was pruned since the list was made
            self._check_seqs(session_id, sid, bounds)
            walk = _Walk(sid, session_id, bounds.floor - 1, self._find_start(sid, session_id, bounds))
        if self._inspection.quick or walk.chain_hash is None:
            return
        self._read_on(walk, bounds.last_seq)
        with self._inspection.snapshot():
            final = self._find_bounds(sid)
            if final is None or final.floor != bounds.floor:
                return
            self._read_on(walk, final.last_seq)
            self._check_end(walk, final)

    def _find_bounds(self, sid: int) -> _Bounds | None:
        rows = fetch_all(self._connection, _STATE, sid)
        return _Bounds(*rows[0]) if rows else None  # type: ignore[arg-type]

    def _check_seqs(self, session_id: str, sid: int, bounds: _Bounds) -> None:
        row = fetch_all(self._connection, _BOUNDS, sid, bounds.floor)[0]
        count, first, last = cast("tuple[int, int | None, int | None]", row)
        self._inspection.checked["events"] += count
        if (first or bounds.floor) != bounds.floor or count != (last or bounds.floor - 1) - bounds.floor + 1:
            self._report("seq_gap", session_id, f"its journal has {count} events from {first} to {last}", "event")
        if (last or bounds.floor - 1) != bounds.last_seq:
            message = f"its last event is {last or bounds.floor - 1}, its row says {bounds.last_seq}"
            self._report("last_seq", session_id, message, "session")

    def _find_start(self, sid: int, session_id: str, bounds: _Bounds) -> bytes | None:
        if bounds.floor == 1:
            return GENESIS_HASH
        sql = "SELECT chain_hash FROM journal_anchor WHERE sid = ? AND seq = ?"
        rows = fetch_all(self._connection, sql, sid, bounds.floor - 1)
        if rows:
            return cast(bytes, rows[0][0])
        message = f"nothing says what the hash before event {bounds.floor} was"
        self._report("anchor", session_id, message, "journal_anchor")
        return None

    def _read_on(self, walk: _Walk, until: int) -> None:
        size = PageSize()
        while walk.seq < until:
            found = fetch_all(self._connection, _EVENTS, walk.sid, walk.seq, until, size.rows)
            rows = cast("list[_EventRow]", found)
            if not rows:
                return
            size.learn(len(rows), sum(len(row[5]) for row in rows))
            for row in rows:
                self._take(walk, row)

    def _take(self, walk: _Walk, row: _EventRow) -> None:
        seq, at_ms, rowid, run_id, type, data, kind, ext, chain_hash, is_json = row
        assert walk.chain_hash is not None
        line = envelope(seq, at_ms, type, walk.session_id, run_id, data)
        if hashlib.sha256(walk.chain_hash + line).digest() != chain_hash and not walk.broken:
            walk.broken = True  # what follows hangs on it: one finding says it all
            message = f"event {seq} or one before it is not what was written"
            self._report("chain_hash", walk.session_id, message, "event")
        walk.seq, walk.chain_hash = seq, chain_hash
        if kind == e.SessionPersisted.kind:
            walk.persisted_seq = seq
        if kind in _PLAIN and type == kind and is_json:
            if rowid in walk.open_runs:
                self._last_seqs[rowid] = seq
            return
        try:
            event = read_stored_event(type, data, kind, ext)
        except ValueError as error:
            self._report("event_unreadable", walk.session_id, f"event {seq} is no {kind}: {error}", "event")
            return
        if rowid is not None:
            self._fold(walk, rowid, event, seq, at_ms)

    def _fold(self, walk: _Walk, rowid: int, event: e.Event, seq: int, at_ms: int) -> None:
        run = walk.open_runs.get(rowid)
        try:
            if isinstance(event, e.RunAccepted) and event.source is None:
                walk.open_runs[rowid] = self._accept(walk, rowid, seq)
            elif run is not None:
                walk.open_runs[rowid] = fold(run, event, seq, at_ms)
            else:
                return  # its beginning was pruned
        except ValueError as error:
            walk.open_runs.pop(rowid, None)
            self._replay.take(rowid)
            self._report("run_record", walk.session_id, f"event {seq} cannot be: {error}", "run")
            return
        self._replay.apply(walk.sid, rowid, event, seq, at_ms)
        self._last_seqs[rowid] = seq
        if walk.open_runs[rowid].terminal:
            self._compare(walk, rowid)

    def _accept(self, walk: _Walk, rowid: int, seq: int) -> Run:
        rows = fetch_all(self._connection, f"{_RUN} WHERE r.id = ?", rowid)
        if not rows:
            raise ValueError(f"run row {rowid} is not there")
        run = read_run(rows[0][:-2])
        new = NewRun(
            run.id, run.request_id, run.kind, str(rows[0][-2]), run.on_input, run.request_digest, run.accepted_at_ms
        )
        return accept(new, walk.session_id, seq)

    def _compare(self, walk: _Walk, rowid: int) -> None:
        run = walk.open_runs.pop(rowid)
        made = self._replay.take(rowid)
        self._inspection.checked["runs"] += 1
        (row,) = fetch_all(self._connection, f"{_RUN} WHERE r.id = ?", rowid)
        last_seq = self._last_seqs.pop(rowid)
        if read_run(row[:-2]) != run or row[-1] != last_seq:
            message = f"the record of run {run.id} is not what its events make of it"
            self._report("run_record", walk.session_id, message, "run")
        table = find_difference(read_derived(self._connection, rowid), made)
        if table is not None:
            message = f"the {table} rows of run {run.id} are not what its events make of them"
            self._report(table, walk.session_id, message, table, repairable=True)

    def _check_end(self, walk: _Walk, bounds: _Bounds) -> None:
        if walk.seq == bounds.last_seq and walk.chain_hash != bounds.chain_hash:
            message = f"its row holds another hash than its last event {walk.seq}"
            self._report("chain_hash", walk.session_id, message, "session")
        if (walk.persisted_seq or bounds.persisted_seq) != bounds.persisted_seq or (
            not walk.persisted_seq and bounds.persisted_seq >= bounds.floor
        ):
            message = f"its latest save is at {walk.persisted_seq}, its row says {bounds.persisted_seq}"
            self._report("persisted_seq", walk.session_id, message, "session")
        for rowid in list(walk.open_runs):
            self._compare(walk, rowid)

    def _report(self, code: str, session_id: str, message: str, table: str, *, repairable: bool = False) -> None:
        self._inspection.report(code, message, table=table, session_id=session_id, repairable=repairable)
