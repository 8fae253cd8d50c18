"""Appends events inside a writer's transaction, and reads them back as the exact bytes that are served.

seq, the run record and the hash chain are settled here, once, when an event is committed; nothing re-encodes an event
afterwards. Evidence: an event's `chain_hash` is SHA-256 over the previous hash and its line (DESIGN.md section 4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import apsw

from aura import events as e
from aura.errors import CursorOutOfRange, NotFound
from aura.events import Stamped
from aura.runs import Run, fold
from aura.store.journals import GENESIS_HASH as GENESIS_HASH
from aura.store.journals import JournalPage
from aura.store.protocol import EventRow
from aura.store.sqlite import journal_lines, projections
from aura.store.sqlite.database import SQL_INTEGER_END, fetch_all, fetch_one
from aura.store.sqlite.rows import SELECT_RUN, SessionRow, read_run, update_run
from aura.wire.automation import envelope
from aura.wire.catalogue import Encoded, encode_event

_INSERT_EVENT = """
    INSERT INTO event (sid, seq, at_ms, run, type, data, kind, ext, chain_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@dataclass(slots=True)
class _OpenRun:
    rowid: int
    stored: Run
    run: Run
    last_seq: int


@dataclass(slots=True)
class Appender:
    """Events on their way into one session, inside of one transaction. `row` is the session row as it will be."""

    connection: apsw.Connection
    row: SessionRow
    open_runs: dict[str, _OpenRun] = field(default_factory=dict)
    last: Run | None = None

    def add(self, item: Stamped, encoded: Encoded | None = None) -> None:
        """Store one event after the last one, and fold it into its run and the derived rows.

        `encoded` is the stored form of an event that was encoded elsewhere. Raises `NotFound` for an unknown run,
        `ValueError` for a transition that the state machine does not have.
        """
        seq = self.row.last_seq + 1
        current = self._open_run(item.run_id)
        if current is not None:
            current.run = self.last = fold(current.run, item.event, seq, item.at_ms)
            current.last_seq = seq
        if encoded is None:
            encoded = encode_event(item.event, current.run if current else None)
        self._insert(seq, item, encoded, current.rowid if current else None)

    def write_runs(self) -> None:
        """Write the runs that changed so far."""
        for current in self.open_runs.values():
            update_run(self.connection, current.rowid, current.stored, current.run, current.last_seq)
        self.open_runs.clear()

    def finish(self) -> tuple[SessionRow, Run | None]:
        """Write the runs that changed. Return the session row for the caller to write, and the last such run."""
        self.write_runs()
        return self.row, self.last

    def _open_run(self, run_id: str | None) -> _OpenRun | None:
        if run_id is None:
            return None
        if run_id not in self.open_runs:
            row = fetch_one(self.connection, f"{SELECT_RUN} WHERE r.run_id = ?", run_id)
            run = read_run(row) if row is not None else None
            if row is None or run is None or run.session_id != self.row.id:
                raise NotFound(f"session {self.row.id} has no run {run_id}")
            self.open_runs[run_id] = _OpenRun(cast(int, row[0]), run, run, run.accepted_seq)
        return self.open_runs[run_id]

    def _insert(self, seq: int, item: Stamped, encoded: Encoded, rowid: int | None) -> None:
        row = self.row
        line = envelope(seq, item.at_ms, encoded.type, row.id, item.run_id, encoded.data)
        chain_hash = hashlib.sha256(row.chain_hash + line).digest()
        ext = encoded.ext.decode() if encoded.ext is not None else None
        values = (row.sid, seq, item.at_ms, rowid, encoded.type, encoded.data.decode(), encoded.kind, ext, chain_hash)
        fetch_all(self.connection, _INSERT_EVENT, *values)
        projections.apply(self.connection, row.sid, rowid, item.event, seq, item.at_ms)
        persisted_seq = seq if isinstance(item.event, e.SessionPersisted) else row.persisted_seq
        self.row = row._replace(last_seq=seq, chain_hash=chain_hash, persisted_seq=persisted_seq)


def append(connection: apsw.Connection, row: SessionRow, stamped: Sequence[Stamped]) -> tuple[SessionRow, Run | None]:
    """Append events after `row.last_seq`, folding each into its run and the derived rows.

    Returns the session row as it must be written by the caller, and the last run that changed. Raises `NotFound` for an
    unknown run, `ValueError` for a transition that the state machine does not have. Inside a transaction only.
    """
    appender = Appender(connection, row)
    for item in stamped:
        appender.add(item)
    return appender.finish()


def read_last_seq(connection: apsw.Connection, session_id: str) -> int:
    """Return the seq of the session's last event, 0 when it has none. Raises `NotFound`."""
    return read_bounds(connection, session_id)[0]


def read_bounds(connection: apsw.Connection, session_id: str) -> tuple[int, int]:
    """Return (the seq of the session's last event, the seq before which they were pruned). Raises `NotFound`."""
    row = fetch_one(connection, "SELECT last_seq, journal_floor FROM session WHERE id = ?", session_id)
    if row is None:
        raise NotFound(f"there is no session {session_id}")
    return cast("tuple[int, int]", row)


def read_events(connection: apsw.Connection, session_id: str, after: int, limit: int) -> list[EventRow]:
    """Return up to `limit` events with seq > `after`, in order.

    Raises `NotFound`, and `CursorOutOfRange` beyond the end and where events after `after` were pruned: nobody shall
    take what is left for all there was.
    """
    rows = journal_lines.read_rows(connection, session_id, after, limit) if 0 <= after < SQL_INTEGER_END else []
    if not rows or rows[0].seq != after + 1:
        _check_cursor(connection, session_id, after)
    return rows


def read_page(connection: apsw.Connection, session_id: str, after: int, limit: int) -> JournalPage:
    """Return up to `limit` events with seq > `after`, joined by commas. Raises what `read_events` raises."""
    pages, left, last_seq = list[bytes](), limit, after
    while left > 0 and 0 <= last_seq < SQL_INTEGER_END:
        page = journal_lines.read_page(connection, session_id, last_seq, left, separator=",")
        if page.count == 0:
            break
        pages.append(page.lines)
        left, last_seq = left - page.count, page.last_seq
    if not pages or last_seq - (limit - left) != after:
        _check_cursor(connection, session_id, after)
    return JournalPage(limit - left, last_seq, b",".join(pages))


def _check_cursor(connection: apsw.Connection, session_id: str, after: int) -> None:
    last_seq, floor = read_bounds(connection, session_id)
    if not floor - 1 <= after <= last_seq:
        raise CursorOutOfRange(
            f"after={after} is outside {floor - 1}..{last_seq}",
            hint="Read on from a seq that this session has.",
            details={"last_seq": last_seq} | ({"first_seq": floor} if floor > 1 else {}),
        )
