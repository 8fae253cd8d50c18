"""Puts right what can be put right without losing anything, one code of `check` at a time (docs/store.md).

Derived rows are made again from their events, unless the journal itself is in doubt; rows that no verb can reach are
removed; an index is built again; a run whose server is gone is recorded as lost, as the next server would do. Anything
else is left for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import cast

import apsw

from aura.store.care import CheckReport, Finding
from aura.store.sqlite.care_writer import CareWriter
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.derived import DERIVED, Replay, find_difference, late_value, read_derived
from aura.wire.stored_event import read_stored_event

_DOUBT = frozenset(("seq_gap", "last_seq", "chain_hash", "event_unreadable", "anchor", "run_record"))
_ORPHANS: Mapping[str, str] = {
    "request": "DELETE FROM request WHERE run NOT IN (SELECT id FROM run)",
    "tool_call": "DELETE FROM tool_call WHERE run NOT IN (SELECT id FROM run)",
    "usage": "DELETE FROM usage WHERE run NOT IN (SELECT id FROM run)",
    "input": "DELETE FROM input WHERE run NOT IN (SELECT id FROM run)",
    "journal_anchor": "DELETE FROM journal_anchor WHERE sid NOT IN (SELECT sid FROM session)",
    "removal": "DELETE FROM removal WHERE sid NOT IN (SELECT sid FROM session)",
    "prompt": "DELETE FROM prompt WHERE id NOT IN (SELECT prompt FROM revision)",
    "message": """
        DELETE FROM message WHERE idx >= max(
            coalesce((SELECT max(length) FROM revision WHERE chain = message.chain), 0),
            coalesce((SELECT max(base_length) FROM chain WHERE base = message.chain), 0))
          AND chain IN (SELECT c.id FROM chain c JOIN session s USING (sid) WHERE NOT s.frozen)
    """,
}
_UNUSED_CHAINS = """
    DELETE FROM chain WHERE id NOT IN (SELECT chain FROM revision) AND id NOT IN (SELECT chain FROM message)
      AND id NOT IN (SELECT base FROM chain WHERE base NOT NULL) AND sid IN (SELECT sid FROM session WHERE NOT frozen)
"""
_RUN_EVENTS = """
    SELECT e.sid, e.seq, e.at_ms, e.type, e.data, e.kind, e.ext FROM run r
    JOIN event e ON e.sid = r.sid AND e.seq >= r.accepted_seq AND e.seq <= r.last_seq AND e.run = r.id
    WHERE r.id = ? ORDER BY e.seq
"""

_EventRow = tuple[int, int, int, str, str, str, "str | None"]


def repair(reader: apsw.Connection, writer: CareWriter, report: CheckReport) -> list[str]:
    """Repair what `report` found as far as this module can; return what was done, a line each."""
    doubted = {finding.session_id for finding in report.findings if finding.code in _DOUBT}
    done: list[str] = []
    for table in sorted({finding.table for finding in report.findings if _is_index(finding)} - {None}, key=str):
        writer.run(partial(_execute, f'REINDEX "{table}"'))
        done.append(f"built the indexes of {table} again")
    for table in dict.fromkeys(finding.table for finding in report.findings if finding.code == "orphan"):
        count = writer.run(partial(_remove_orphans, table)) if table is not None and table in _ORPHANS else 0
        if count:
            done.append(f"removed {count} rows of {table} that nothing refers to")
    sessions = {finding.session_id for finding in report.findings if finding.code in DERIVED and finding.repairable}
    for session_id in sorted(sessions - doubted - {None}, key=str):
        done += _rebuild(reader, writer, str(session_id))
    return done


def _is_index(finding: Finding) -> bool:
    return finding.code == "damaged" and finding.repairable


def _execute(sql: str, connection: apsw.Connection) -> int:
    fetch_all(connection, sql)
    return connection.changes()


def _remove_orphans(table: str, connection: apsw.Connection) -> int:
    count = _execute(_ORPHANS[table], connection)
    while table == "message" and (chains := _execute(_UNUSED_CHAINS, connection)):
        count += chains
    return count


def _rebuild(reader: apsw.Connection, writer: CareWriter, session_id: str) -> Iterator[str]:
    sql = """
        SELECT r.id, r.run_id FROM run r JOIN session s USING (sid)
        WHERE s.id = ? AND r.accepted_seq >= s.journal_floor ORDER BY r.id
    """
    replay = Replay(reader)
    try:
        for run, run_id in cast("list[tuple[int, str]]", fetch_all(reader, sql, session_id)):
            table = writer.run(partial(_rebuild_run, replay, run), session_id)
            if table is not None:
                yield f"made the {table} rows of run {run_id} again from its events"
    finally:
        replay.close()


def _rebuild_run(replay: Replay, run: int, connection: apsw.Connection) -> str | None:
    for sid, seq, at_ms, type, data, kind, ext in cast("list[_EventRow]", fetch_all(connection, _RUN_EVENTS, run)):
        replay.apply(sid, run, read_stored_event(type, data, kind, ext), seq, at_ms)
    made, stored = replay.take(run), read_derived(connection, run)
    different = find_difference(stored, made)
    if different is None:
        return None
    for table, (columns, key) in DERIVED.items():
        names = columns.split(", ")
        places = [names.index(name) for name in key.split(", ")]
        old = {tuple(row[place] for place in places): row for row in stored.rows[table]}
        keep = _keep_processes(connection, run) if table == "tool_call" else None
        fetch_all(connection, f"DELETE FROM {table} WHERE run = ?", run)
        for row in made.rows[table]:
            values = (*row[:-1], late_value(table, old.get(tuple(row[place] for place in places)), row))
            marks = ", ".join("?" * len(values))
            fetch_all(connection, f"INSERT INTO {table} ({columns}) VALUES ({marks})", *values)
        if keep is not None:
            keep()
    return different


def _keep_processes(connection: apsw.Connection, run: int) -> Callable[[], None]:
    """Return what puts the process groups of calls back, which no event carries."""
    noted = fetch_all(connection, "SELECT pid, pid_start_time, run, call_id, n FROM tool_call WHERE run = ?", run)

    def put_back() -> None:
        for row in noted:
            sql = "UPDATE tool_call SET pid = ?, pid_start_time = ? WHERE run = ? AND call_id = ? AND n = ?"
            fetch_all(connection, sql, *row)

    return put_back
