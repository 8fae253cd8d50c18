"""Measures what is in a store: bytes by table, free pages, large texts, growth by day. It only reads.

Bytes by table come from SQLite's `dbstat`, which reads every page; where it is missing or takes too long they are
estimated from the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import apsw

from aura import limits
from aura.clock import format_time
from aura.store.care import Day, StoreStats, TableSize
from aura.store.sqlite.check import read_facts
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.inspection import Inspection
from aura.store.sqlite.locks import is_session_locked

_DAY_MS = 24 * 3600 * 1000

_PAGES = """
    SELECT o.tbl_name, sum(iif(o.type = 'table', d.pgsize, 0)), sum(iif(o.type = 'index', d.pgsize, 0)),
           sum(d.pgsize - d.unused)
    FROM (SELECT name, pgsize, unused FROM dbstat WHERE aggregate = TRUE) d
    JOIN sqlite_schema o ON o.name = d.name GROUP BY o.tbl_name
"""
_OBJECTS = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_TEXTS: Mapping[str, str] = {
    "event": "octet_length(data) + coalesce(octet_length(ext), 0)",
    "message": "octet_length(body)",
    "revision": "octet_length(tail)",
    "prompt": "octet_length(text)",
}
_LARGE = """
    SELECT (SELECT count(*) FROM event WHERE octet_length(data) > ?1)
         + (SELECT count(*) FROM message WHERE octet_length(body) > ?1)
"""
_EVENT_DAYS = """
    SELECT at_ms / 86400000, count(*), sum(octet_length(data) + coalesce(octet_length(ext), 0))
    FROM event WHERE id >= ?1 AND at_ms >= ?2 GROUP BY 1
"""
_REVISION_DAYS = "SELECT at_ms / 86400000, count(*) FROM revision WHERE at_ms >= ? GROUP BY 1"
_RUN_DAYS = "SELECT accepted_at_ms / 86400000, count(*) FROM run WHERE accepted_at_ms >= ? GROUP BY 1"


def measure(connection: apsw.Connection, path: Path, now_ms: int, days: int) -> StoreStats:
    """Return what is in the database now, and what was added on each of the last `days` days, today included."""
    tables, exact = _measure_tables(connection, path)
    sessions = cast("list[tuple[str, int]]", fetch_all(connection, "SELECT id, frozen FROM session"))
    return StoreStats(
        facts=read_facts(connection, path),
        tables=tables,
        exact=exact,
        sessions=len(sessions),
        frozen=sum(frozen for _, frozen in sessions),
        held=sum(is_session_locked(path.parent, session_id) for session_id, _ in sessions),
        large_texts=cast(int, fetch_all(connection, _LARGE, limits.INLINE_MAX_BYTES)[0][0]),
        days=_measure_days(connection, now_ms, days),
    )


def _measure_tables(connection: apsw.Connection, path: Path) -> tuple[tuple[TableSize, ...], bool]:
    names = [cast(str, row[0]) for row in fetch_all(connection, _OBJECTS)]
    rows = {name: cast(int, fetch_all(connection, f'SELECT count(*) FROM "{name}"')[0][0]) for name in names}
    found = _read_pages(connection, path)
    exact = found is not None
    sizes = found or {name: (size, 0, size) for name, size in _estimate(connection).items()}
    tables = [TableSize(name, rows.get(name, 0), *sizes.get(name, (0, 0, 0))) for name in {*names, *sizes}]
    return tuple(sorted(tables, key=lambda table: (-table.table_bytes - table.index_bytes, table.name))), exact


def _read_pages(connection: apsw.Connection, path: Path) -> dict[str, tuple[int, int, int]] | None:
    inspection = Inspection(connection, path, quick=True)
    found: dict[str, tuple[int, int, int]] | None = None
    try:
        with inspection.watched("dbstat"):
            rows = cast("list[tuple[str, int, int, int]]", fetch_all(connection, _PAGES))
            found = {name: (table, index, used) for name, table, index, used in rows}
    except apsw.SQLError as error:
        if "dbstat" in str(error):
            return None  # a SQLite that was built without it
        raise
    return found


def _estimate(connection: apsw.Connection) -> dict[str, int]:
    sizes = {}
    for table, text in _TEXTS.items():
        sizes[table] = cast(int, fetch_all(connection, f"SELECT coalesce(sum({text}), 0) FROM {table}")[0][0])
    return sizes


def _measure_days(connection: apsw.Connection, now_ms: int, days: int) -> tuple[Day, ...]:
    today = now_ms // _DAY_MS
    first = today - days + 1
    since_ms = first * _DAY_MS
    start = _find_first_event(connection, since_ms)
    events = {row[0]: row[1:] for row in fetch_all(connection, _EVENT_DAYS, start, since_ms)}
    revisions = dict(cast("list[tuple[int, int]]", fetch_all(connection, _REVISION_DAYS, since_ms)))
    runs = dict(cast("list[tuple[int, int]]", fetch_all(connection, _RUN_DAYS, since_ms)))
    return tuple(
        Day(
            format_time(day * _DAY_MS)[:10],
            *cast("tuple[int, int]", events.get(day, (0, 0))),
            revisions.get(day, 0),
            runs.get(day, 0),
        )
        for day in range(first, today + 1)
    )


def _find_first_event(connection: apsw.Connection, since_ms: int) -> int:
    """Return a row id before which no event of this store was added after `since_ms`, but for imported journals.

    Row ids grow with time, so it is found by halving; there is no index over times.
    """
    low, high = cast(
        "tuple[int, int]", fetch_all(connection, "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM event")[0]
    )
    while low < high:
        middle = (low + high) // 2
        row = fetch_all(connection, "SELECT id, at_ms FROM event WHERE id >= ? ORDER BY id LIMIT 1", middle)
        if cast(int, row[0][1]) >= since_ms:
            high = middle
        else:
            low = cast(int, row[0][0]) + 1
    return low
