"""A journal in numbers: by type and by run. It reads all of it, once for each, in one statement each."""

from __future__ import annotations

from typing import cast

import apsw

from aura.store.journals import JournalStats, RunStats, TypeStats
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.journal_lines import EVENTS, LINE, read_state

_OF_SESSION = f"FROM {EVENTS} WHERE e.sid = (SELECT sid FROM session WHERE id = ?1) AND e.seq >= ?2 AND e.seq <= ?3"
_BYTES = f"sum(octet_length({LINE}) + 1)"
_TYPES = f"SELECT e.type, count(*), {_BYTES} AS size {_OF_SESSION} GROUP BY e.type ORDER BY count(*) DESC, e.type"
_RUNS = f"""
    SELECT r.run_id, r.state, r.outcome, count(*), {_BYTES}, min(e.seq), max(e.seq), min(e.at_ms), max(e.at_ms)
    {_OF_SESSION} GROUP BY e.run ORDER BY e.run IS NULL DESC, min(e.seq)
"""


def read_stats(connection: apsw.Connection, session_id: str) -> JournalStats:
    """Return the numbers of a session's journal. Raises `NotFound`."""
    state = read_state(connection, session_id)
    values = (session_id, state.first_seq, state.last_seq)
    types = tuple(TypeStats(*row) for row in cast("list[tuple[str, int, int]]", fetch_all(connection, _TYPES, *values)))
    runs = tuple(RunStats(*row) for row in fetch_all(connection, _RUNS, *values))  # type: ignore[arg-type]
    return JournalStats(
        session_id=session_id,
        events=sum(item.events for item in types),
        size_bytes=sum(item.size_bytes for item in types),
        first_seq=state.first_seq,
        last_seq=state.last_seq,
        first_at_ms=min((item.first_at_ms for item in runs), default=None),
        last_at_ms=max((item.last_at_ms for item in runs), default=None),
        types=types,
        runs=runs,
    )
