"""Reads events as the exact lines that are served, built and joined by SQLite: nothing is decoded, and no Python object
is made per event (limits.md section 4).

The line that SQL builds is `aura.wire.automation.envelope`'s, byte for byte; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias, cast

import apsw

from aura import limits
from aura.errors import NotFound, StoreUnavailable
from aura.store.journals import GENESIS_HASH, EventFilter, JournalPage, JournalState, Link
from aura.store.protocol import EventRow
from aura.store.sqlite.database import SqlValue, fetch_all, fetch_one

Reader: TypeAlias = "Callable[[], AbstractContextManager[apsw.Connection]]"

# `?1` is the session's id. concat and not printf, which stops at a NUL: a check must see all that a row holds. datetime
# and not strftime with %f, which takes five times as long: as much as all the rest of the line.
LINE = """concat('{"seq":', e.seq, ',"time":"', replace(datetime(e.at_ms / 1000.0, 'unixepoch', 'subsec'), ' ', 'T'),
    'Z","type":"', e.type, '","session_id":"', ?1,
    CASE WHEN r.run_id IS NULL THEN '","run_id":null,"data":' ELSE '","run_id":"' || r.run_id || '","data":' END,
    e.data, '}')"""
EVENTS = "event e LEFT JOIN run r ON r.id = e.run"

_PAGE = f"""
    SELECT count(*), max(seq), CAST(group_concat(line, ?4) AS BLOB)
    FROM (SELECT e.seq AS seq, {LINE} || ?5 AS line FROM {EVENTS}
          WHERE e.sid = (SELECT sid FROM session WHERE id = ?1) AND e.seq > ?2 ORDER BY e.seq LIMIT ?3)
"""
_STATE = """
    SELECT sid, last_seq, chain_hash, journal_floor FROM session WHERE id = ?
"""


def read_rows(connection: apsw.Connection, session_id: str, after: int, limit: int) -> list[EventRow]:
    """Return up to `limit` events with seq > `after`, in order; none for an unknown session."""
    sql = f"""
        SELECT e.seq, r.run_id, e.type, e.kind, CAST({LINE} AS BLOB), e.ext FROM {EVENTS}
        WHERE e.sid = (SELECT sid FROM session WHERE id = ?1) AND e.seq > ?2 ORDER BY e.seq LIMIT ?3
    """
    rows = cast(
        "list[tuple[int, str | None, str, str, bytes, str | None]]",
        fetch_all(connection, sql, session_id, after, limit),
    )
    return [EventRow(*row) for row in rows]


def read_page(
    connection: apsw.Connection, session_id: str, after: int, limit: int, *, separator: str = "", end: str = ""
) -> JournalPage:
    """Return up to `limit` events with seq > `after`, `end` after each and `separator` between two: one at least if
    there is one, and no more than `limits.JOURNAL_PAGE_BYTES` if there are several.
    """
    while True:
        row = _fetch_joined(connection, _PAGE, limit, session_id, after, limit, separator, end)
        if row is not None:
            count, last_seq, lines = row
            return JournalPage(count, after if last_seq is None else last_seq, lines or b"")
        limit //= 2


def iterate_pages(reader: Reader, state: JournalState, after: int) -> Iterator[JournalPage]:
    """Yield the events of `state` after seq `after`, one per line, in pages. No connection is held between two pages.

    Raises `StoreUnavailable` when an event that should follow is not there.
    """
    after = max(after, state.first_seq - 1)
    limit = limits.JOURNAL_LINES_PAGE_ROWS
    while after < state.last_seq:
        with reader() as connection:
            page = read_page(connection, state.session_id, after, min(limit, state.last_seq - after), end="\n")
        if page.count == 0 or page.last_seq != after + page.count:
            raise StoreUnavailable(
                f"event {after + 1} of {state.session_id} is not in the store, or another one after it",
                hint="It may just have been pruned: try again. If not, `aura journal verify` says what is wrong.",
            )
        yield page
        after = page.last_seq
        limit = min(limits.JOURNAL_LINES_PAGE_ROWS, 2 * page.count)  # large events come in rows: few at a time then


def read_state(connection: apsw.Connection, session_id: str) -> JournalState:
    """Return where a session's journal begins and ends, and the hash at its end. Raises `NotFound`."""
    row = fetch_one(connection, _STATE, session_id)
    if row is None:
        raise NotFound(f"there is no session {session_id}", hint="`aura session list` shows what there is.")
    sid, last_seq, head, first_seq = cast("tuple[int, int, bytes, int]", row)
    if first_seq == 1:
        return JournalState(session_id, 1, last_seq, head, Link(0, GENESIS_HASH))
    before = _find_anchor(connection, sid, first_seq - 1) or _find_hash(connection, sid, first_seq - 1)
    if before is not None:
        return JournalState(session_id, first_seq, last_seq, head, Link(first_seq - 1, before))
    first = _find_hash(connection, sid, first_seq)
    start = Link(first_seq, first) if first is not None else Link(last_seq, head)
    return JournalState(session_id, first_seq, last_seq, head, start, covered=False)


def read_matching(
    connection: apsw.Connection, session_id: str, after: int, until: int, where: EventFilter, limit: int
) -> JournalPage:
    """Return the first `limit` events that match, of those after `after` and up to `until`, one per line with its end.

    The page ends at the last one that was looked at: `until` when fewer than `limit` match.
    """
    condition, values = _condition(where, 5)
    events = f"""
        FROM {EVENTS} WHERE e.sid = (SELECT sid FROM session WHERE id = ?1) AND e.seq > ?2 AND e.seq <= ?3 {condition}
        ORDER BY e.seq LIMIT ?4
    """
    sql = f"""
        SELECT count(*), max(seq), CAST(group_concat(line, '') AS BLOB)
        FROM (SELECT e.seq AS seq, {LINE} || char(10) AS line {events})
    """
    while True:
        row = _fetch_joined(connection, sql, limit, session_id, after, until, limit, *values)
        if row is not None:
            count, last_seq, lines = row
            return JournalPage(count, until if last_seq is None or count < limit else last_seq, lines or b"")
        limit //= 2


def find_start_of_last(connection: apsw.Connection, session_id: str, until: int, where: EventFilter, count: int) -> int:
    """Return the seq after which exactly the last `count` matching events up to `until` follow."""
    if count == 0:
        return until
    condition, values = _condition(where, 4)
    sql = f"""
        SELECT min(seq) FROM (SELECT e.seq AS seq FROM {EVENTS}
            WHERE e.sid = (SELECT sid FROM session WHERE id = ?1) AND e.seq <= ?2 {condition}
            ORDER BY e.seq DESC LIMIT ?3)
    """
    row = fetch_one(connection, sql, session_id, until, count, *values)
    first = cast("tuple[int | None]", row)[0]
    return until if first is None else first - 1


def _fetch_joined(
    connection: apsw.Connection, sql: str, limit: int, *values: SqlValue
) -> tuple[int, int | None, bytes | None] | None:
    """Return the row of a statement that joins up to `limit` events, None when they are too large to be joined.

    SQLite itself stops at the limit, which costs nothing; measuring the rows first would take a third of the time.
    """
    if limit <= 1:
        row = fetch_one(connection, sql, *values)
    else:
        before = connection.limit(apsw.SQLITE_LIMIT_LENGTH, limits.JOURNAL_PAGE_BYTES)
        try:
            row = fetch_one(connection, sql, *values)
        except apsw.TooBigError:
            return None
        finally:
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, before)
    return cast("tuple[int, int | None, bytes | None]", row)


def _condition(where: EventFilter, number: int) -> tuple[str, list[SqlValue]]:
    conditions, values = [""], list[SqlValue]()
    if where.run_id is not None:
        conditions.append(f"r.run_id = ?{number}")
        values.append(where.run_id)
    if where.types:
        marks = ", ".join(f"?{number + len(values) + index}" for index in range(len(where.types)))
        conditions.append(f"e.type IN ({marks})")
        values += where.types
    return " AND ".join(conditions), values


def _find_anchor(connection: apsw.Connection, sid: int, seq: int) -> bytes | None:
    """Return the hash that pruning kept of the last event it removed, None when nobody kept it."""
    if not fetch_all(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'journal_anchor'"):
        return None
    row = fetch_one(connection, "SELECT chain_hash FROM journal_anchor WHERE sid = ? AND seq = ?", sid, seq)
    return cast(bytes, row[0]) if row is not None else None


def _find_hash(connection: apsw.Connection, sid: int, seq: int) -> bytes | None:
    row = fetch_one(connection, "SELECT chain_hash FROM event WHERE sid = ? AND seq = ?", sid, seq)
    return cast(bytes, row[0]) if row is not None else None
