"""The figures of `aura stats`, read in one snapshot. Statements only: the caller opens the transaction."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import apsw

from aura import limits
from aura.store.history import Ended, Failure, ModelUse, RunNote, Size, Stats, ToolUse, Waiting
from aura.store.sqlite.database import DATABASE_NAME, SqlValue, fetch_all, fetch_one
from aura.store.sqlite.locks import is_session_locked

_AT_WORK = "(r.settled_at_ms IS NULL OR r.settled_at_ms >= ?1)"
_LIVE = "r.state IN ('accepted', 'running', 'finished')"
_SELECT_NOTE = """
    SELECT r.run_id, s.id, r.state, r.accepted_at_ms, r.text FROM run r JOIN session s USING (sid)
"""


def get_stats(connection: apsw.Connection, directory: Path, since_ms: int) -> Stats:
    """Return the figures of the store in `directory` since a moment (Unix ms)."""
    return Stats(
        since_ms=since_ms,
        ended=_read_ended(connection, since_ms),
        failures=_read_failures(connection, since_ms),
        lost=_read_notes(connection, directory, "r.state = 'lost' AND r.settled_at_ms >= ?", since_ms),
        live=_read_notes(connection, directory, _LIVE),
        waiting=_read_waiting(connection),
        models=_read_models(connection, since_ms),
        tools=_read_tools(connection, since_ms),
        size=_read_size(connection, directory),
    )


def _read_ended(connection: apsw.Connection, since_ms: int) -> tuple[Ended, ...]:
    sql = f"""
        SELECT r.state, r.outcome, count(*) AS runs FROM run r WHERE {_AT_WORK}
        GROUP BY r.state, r.outcome ORDER BY runs DESC, r.state, r.outcome
    """
    return tuple(Ended(*row) for row in fetch_all(connection, sql, since_ms))  # type: ignore[arg-type]


def _read_failures(connection: apsw.Connection, since_ms: int) -> tuple[Failure, ...]:
    # With a single max(), SQLite takes the other columns from the row that has it.
    sql = f"""
        WITH failure AS (
            SELECT coalesce(r.error, r.persist_error) AS error, coalesce(r.settled_at_ms, r.finished_at_ms) AS at_ms
            FROM run r WHERE coalesce(r.error, r.persist_error) IS NOT NULL AND {_AT_WORK}
        )
        SELECT error ->> '$.code' AS code, count(*) AS runs, max(at_ms), error ->> '$.message'
        FROM failure GROUP BY code ORDER BY runs DESC, code
    """
    return tuple(Failure(*row) for row in fetch_all(connection, sql, since_ms))  # type: ignore[arg-type]


def _read_notes(connection: apsw.Connection, directory: Path, where: str, *values: SqlValue) -> tuple[RunNote, ...]:
    sql = f"{_SELECT_NOTE} WHERE {where} ORDER BY r.id DESC LIMIT {limits.STATS_LINES_COUNT}"
    rows = cast("list[tuple[str, str, str, int, str]]", fetch_all(connection, sql, *values))
    return tuple(RunNote(*row, held=is_session_locked(directory, row[1])) for row in rows)  # type: ignore[arg-type]


def _read_waiting(connection: apsw.Connection) -> tuple[Waiting, ...]:
    sql = f"""
        SELECT i.input_id, s.id, r.run_id, i.kind, coalesce(i.question ->> '$.question', ''), i.question ->> '$.detail',
               i.created_at_ms, i.expires_at_ms
        FROM input i JOIN session s ON s.sid = i.sid JOIN run r ON r.id = i.run
        WHERE i.state = 'pending' AND {_LIVE} ORDER BY i.id LIMIT {limits.STATS_LINES_COUNT}
    """
    return tuple(Waiting(*row) for row in fetch_all(connection, sql))  # type: ignore[arg-type]


def _read_models(connection: apsw.Connection, since_ms: int) -> tuple[ModelUse, ...]:
    sql = """
        SELECT provider, model, count(*), sum(input_tokens), sum(output_tokens), sum(cost_usd)
        FROM usage WHERE at_ms >= ? GROUP BY provider, model
        ORDER BY sum(cost_usd) DESC, sum(input_tokens + output_tokens) DESC
    """
    return tuple(ModelUse(*row) for row in fetch_all(connection, sql, since_ms))  # type: ignore[arg-type]


def _read_tools(connection: apsw.Connection, since_ms: int) -> tuple[ToolUse, ...]:
    sql = """
        SELECT name, count(*), sum(status = 'error'), CAST(round(avg(finished_at_ms - started_at_ms)) AS INTEGER),
               max(finished_at_ms - started_at_ms)
        FROM tool_call WHERE coalesce(finished_at_ms, started_at_ms) >= ? GROUP BY name
        ORDER BY avg(finished_at_ms - started_at_ms) DESC, name
    """
    return tuple(ToolUse(*row) for row in fetch_all(connection, sql, since_ms))  # type: ignore[arg-type]


def _read_size(connection: apsw.Connection, directory: Path) -> Size:
    sql = """
        SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM run),
               (SELECT coalesce(sum(last_seq - journal_floor + 1), 0) FROM session),
               (SELECT count(*) FROM message)
    """
    row = fetch_one(connection, sql)
    assert row is not None
    sessions, runs, events, messages = cast("tuple[int, int, int, int]", row)
    path = directory / DATABASE_NAME
    return Size(sessions, runs, events, messages, _file_bytes(path), _file_bytes(path.with_name(f"{path.name}-wal")))


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
