"""Replays the events of runs into fresh tables, to see what the derived rows of a run must be.

It uses `projections.apply`, as the store did, on a database in memory; so there is no second opinion about what an
event means. Nothing of the store is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from aura import events as e
from aura.store.sqlite import projections
from aura.store.sqlite.database import Row, SqlValue, fetch_all

DERIVED: Mapping[str, tuple[str, str]] = {
    "tool_call": (
        "run, call_id, n, sid, name, status, started_seq, finished_seq, started_at_ms, finished_at_ms, args_bytes,"
        " result_bytes",
        "call_id, n",
    ),
    "usage": ("run, seq, sid, agent, provider, model, input_tokens, output_tokens, at_ms, cost_usd", "seq"),
    "input": (
        "input_id, run, sid, kind, state, question, answer, answered_by, created_at_ms, resolved_at_ms, expires_at_ms",
        "input_id",
    ),
}
_LATE_COLUMNS = frozenset(("cost_usd", "expires_at_ms"))  # events of the first versions did not carry them


@dataclass(frozen=True, slots=True)
class Derived:
    """The derived rows of one run, by table."""

    rows: Mapping[str, list[Row]]


class Replay:
    """Tables in memory, in which runs are replayed one after the other."""

    def __init__(self, store: apsw.Connection) -> None:
        """Take the tables' shapes from `store`."""
        self._scratch = apsw.Connection(":memory:")
        for table in DERIVED:
            for (sql,) in fetch_all(store, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", table):
                self._scratch.execute(str(sql)).fetchall()

    def apply(self, sid: int, run: int, event: e.Event, seq: int, at_ms: int) -> None:
        """Take in the next event of a run."""
        projections.apply(self._scratch, sid, run, event, seq, at_ms)

    def take(self, run: int) -> Derived:
        """Return the rows that the run's events make, and forget them."""
        rows = read_derived(self._scratch, run)
        for table in DERIVED:
            fetch_all(self._scratch, f"DELETE FROM {table} WHERE run = ?", run)
        return rows

    def close(self) -> None:
        """Give the memory back."""
        self._scratch.close()


def read_derived(connection: apsw.Connection, run: int) -> Derived:
    """Return the derived rows of a run as they are."""
    return Derived(
        {
            table: fetch_all(connection, f"SELECT {columns} FROM {table} WHERE run = ? ORDER BY {order}", run)
            for table, (columns, order) in DERIVED.items()
        }
    )


def find_difference(stored: Derived, made: Derived) -> str | None:
    """Return the table in which what is stored is not what the events make, or None."""
    for table, (columns, _) in DERIVED.items():
        late = columns.rsplit(", ", 1)[1] in _LATE_COLUMNS
        if len(stored.rows[table]) != len(made.rows[table]):
            return table
        for old, new in zip(stored.rows[table], made.rows[table], strict=True):
            if old != new and not (late and new[-1] is None and old[:-1] == new[:-1]):
                return table
    return None


def late_value(table: str, old: Row | None, new: Row) -> SqlValue:
    """Return the last column of a rebuilt row: what the event says, or else what was stored."""
    return new[-1] if new[-1] is not None or old is None or table == "tool_call" else old[-1]
