"""Tells whether a store is sound: the file, its rows, its journals, its revisions. It only reads.

Servers may write meanwhile. Events, messages, revisions and settled runs never change, so they are gone through in
short statements without a snapshot, up to where the session's row said that they end; only what may change (a live
run and its rows) is compared inside one snapshot, which is small. So a check pins the WAL for milliseconds, whatever
the size of the store; SQLite's own check of the file is one long statement and is given up when the WAL has grown to
`limits.CHECK_WAL_MAX_BYTES` meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import apsw

from aura import limits
from aura.store.care import CheckReport, Facts, Progress, no_progress
from aura.store.sqlite import check_journal, check_revisions, check_rows
from aura.store.sqlite.database import fetch_all, fetch_one
from aura.store.sqlite.inspection import Inspection, wal_bytes

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_INDEX_TROUBLE = ("missing from index", "wrong # of entries in index", "non-unique entry in index")


def inspect(
    connection: apsw.Connection,
    path: Path,
    *,
    quick: bool = False,
    progress: Progress = no_progress,
    wal_max_bytes: int = limits.CHECK_WAL_MAX_BYTES,
) -> CheckReport:
    """Check the database `path` through `connection`, which belongs to the caller and may be read-only.

    `quick` leaves out what takes time in proportion to the text of the store, and says so in the report. Raises store
    errors only when the file cannot be read at all; damage inside of it is a finding.
    """
    inspection = Inspection(connection, path, quick, progress, wal_max_bytes)
    _check_file(inspection)
    check_rows.check(inspection)
    check_revisions.check(inspection)
    check_journal.check(inspection)
    return CheckReport(
        findings=tuple(inspection.findings),
        finding_count=inspection.finding_count,
        checked=dict(inspection.checked),
        skipped=tuple(inspection.skipped),
        facts=read_facts(connection, path),
    )


def read_facts(connection: apsw.Connection, path: Path) -> Facts:
    """Return what the files of the store are like now."""
    page_bytes = _pragma(connection, "page_size")
    ballast = path.with_name(".ballast")
    return Facts(
        database_bytes=page_bytes * _pragma(connection, "page_count"),
        wal_bytes=wal_bytes(path),
        free_bytes=page_bytes * _pragma(connection, "freelist_count"),
        ballast_bytes=ballast.stat().st_size if ballast.exists() else 0,
        schema=_pragma(connection, "user_version"),
    )


def _check_file(inspection: Inspection) -> None:
    with inspection.guarded("the schema"):
        tables = [str(row[0]) for row in fetch_all(inspection.connection, _TABLES)]
        name = "quick_check" if inspection.quick else "integrity_check"
        if inspection.quick:
            inspection.skip("the content of indexes", "--quick")
        for number, table in enumerate(tables):
            inspection.progress("file", number, len(tables))
            with inspection.guarded(f"table {table}", table=table):
                _check_table(inspection, name, table)


def _check_table(inspection: Inspection, check: str, table: str) -> None:
    with inspection.watched(f"{check} of table {table}"):
        rows = cast("list[tuple[str]]", fetch_all(inspection.connection, f'PRAGMA {check}("{table}")'))
        for (message,) in rows:
            if message != "ok":
                repairable = any(text in message for text in _INDEX_TROUBLE)
                inspection.report("damaged", message, table=table, repairable=repairable)
    with inspection.watched(f"the foreign keys of table {table}"):
        broken = fetch_all(inspection.connection, f'PRAGMA foreign_key_check("{table}")')
        for _, rowid, parent, _ in cast("list[tuple[str, int | None, str, int]]", broken):
            row = "a row" if rowid is None else f"row {rowid}"
            inspection.report("foreign_key", f"{row} of {table} refers to no row of {parent}", table=table)


def _pragma(connection: apsw.Connection, name: str) -> int:
    row = fetch_one(connection, f"PRAGMA {name}")
    assert row is not None and isinstance(row[0], int)
    return row[0]
