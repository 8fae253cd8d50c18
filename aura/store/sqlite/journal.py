"""Appends events inside a writer's transaction, and reads them back as the exact bytes that are served.

seq, the run record and the hash chain are settled here, once, when an event is committed; nothing re-encodes an event
afterwards. Evidence: an event's `chain_hash` is SHA-256 over the previous hash and its line (DESIGN.md section 4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import apsw

from aura import events as e
from aura.errors import CursorOutOfRange, NotFound
from aura.events import Stamped
from aura.runs import Run, fold
from aura.store.protocol import EventRow
from aura.store.sqlite import projections
from aura.store.sqlite.database import SQL_INTEGER_END, fetch_all, fetch_one
from aura.store.sqlite.rows import SELECT_RUN, SessionRow, read_run, update_run
from aura.wire.automation import envelope
from aura.wire.catalogue import encode_event

GENESIS_HASH = hashlib.sha256(b"aura journal 1").digest()

_INSERT_EVENT = """
    INSERT INTO event (sid, seq, at_ms, run, type, data, kind, ext, chain_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@dataclass(slots=True)
class _OpenRun:
    rowid: int
    stored: Run
    run: Run
    last_seq: int


def append(connection: apsw.Connection, row: SessionRow, stamped: Sequence[Stamped]) -> tuple[SessionRow, Run | None]:
    """Append events after `row.last_seq`, folding each into its run and the derived rows.

    Returns the session row as it must be written by the caller, and the last run that changed. Raises `NotFound` for an
    unknown run, `ValueError` for a transition that the state machine does not have. Inside a transaction only.
    """
    open_runs: dict[str, _OpenRun] = {}
    last: Run | None = None
    for item in stamped:
        seq = row.last_seq + 1
        current = _open_run(connection, open_runs, row.id, item.run_id)
        if current is not None:
            current.run = last = fold(current.run, item.event, seq, item.at_ms)
            current.last_seq = seq
        row = _insert(connection, row, seq, item, current)
    for current in open_runs.values():
        update_run(connection, current.rowid, current.stored, current.run, current.last_seq)
    return row, last


def read_last_seq(connection: apsw.Connection, session_id: str) -> int:
    """Return the seq of the session's last event, 0 when it has none. Raises `NotFound`."""
    row = fetch_one(connection, "SELECT last_seq FROM session WHERE id = ?", session_id)
    if row is None:
        raise NotFound(f"there is no session {session_id}")
    return cast(int, row[0])


def read_events(connection: apsw.Connection, session_id: str, after: int, limit: int) -> list[EventRow]:
    """Return up to `limit` events with seq > `after`, in order. Raises `NotFound` and `CursorOutOfRange`."""
    sql = """
        SELECT e.seq, e.at_ms, r.run_id, e.type, e.kind, CAST(e.data AS BLOB)
        FROM event e LEFT JOIN run r ON r.id = e.run
        WHERE e.sid = (SELECT sid FROM session WHERE id = ?) AND e.seq > ? ORDER BY e.seq LIMIT ?
    """
    rows = fetch_all(connection, sql, session_id, after, limit) if 0 <= after < SQL_INTEGER_END else []
    if not rows:
        last_seq = read_last_seq(connection, session_id)
        if not 0 <= after <= last_seq:
            raise CursorOutOfRange(
                f"after={after} is outside 0..{last_seq}",
                hint="Read on from a seq that this session has.",
                details={"last_seq": last_seq},
            )
    return [
        EventRow(seq, run_id, type, kind, envelope(seq, at_ms, type, session_id, run_id, data))
        for seq, at_ms, run_id, type, kind, data in cast("list[tuple[int, int, str | None, str, str, bytes]]", rows)
    ]


def _open_run(
    connection: apsw.Connection, open_runs: dict[str, _OpenRun], session_id: str, run_id: str | None
) -> _OpenRun | None:
    if run_id is None:
        return None
    if run_id not in open_runs:
        row = fetch_one(connection, f"{SELECT_RUN} WHERE r.run_id = ?", run_id)
        run = read_run(row) if row is not None else None
        if row is None or run is None or run.session_id != session_id:
            raise NotFound(f"session {session_id} has no run {run_id}")
        open_runs[run_id] = _OpenRun(cast(int, row[0]), run, run, run.accepted_seq)
    return open_runs[run_id]


def _insert(
    connection: apsw.Connection, row: SessionRow, seq: int, item: Stamped, current: _OpenRun | None
) -> SessionRow:
    encoded = encode_event(item.event, current.run if current else None)
    line = envelope(seq, item.at_ms, encoded.type, row.id, item.run_id, encoded.data)
    chain_hash = hashlib.sha256(row.chain_hash + line).digest()
    rowid = current.rowid if current else None
    ext = encoded.ext.decode() if encoded.ext is not None else None
    values = (row.sid, seq, item.at_ms, rowid, encoded.type, encoded.data.decode(), encoded.kind, ext, chain_hash)
    fetch_all(connection, _INSERT_EVENT, *values)
    projections.apply(connection, row.sid, rowid, item.event, seq, item.at_ms)
    persisted_seq = seq if isinstance(item.event, e.SessionPersisted) else row.persisted_seq
    return row._replace(last_seq=seq, chain_hash=chain_hash, persisted_seq=persisted_seq)
