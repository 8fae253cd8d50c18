"""The session row and the run row as values, and back. It decides nothing and runs no transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import apsw

from aura.errors import LeaseLost
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import Cancel, OnInput, Outcome, Persisted, Run, RunError, RunKind, RunResult, State, Stats
from aura.store.sqlite.database import Row, SqlValue, fetch_all, fetch_one
from aura.wire import canonical
from aura.wire.automation import error_fields, persisted_fields


class SessionRow(NamedTuple):
    """The `session` table's row, column for column. A tuple: a commit makes three, and dataclasses cost 19 µs each."""

    sid: int
    id: str
    title: str
    created_at_ms: int
    updated_at_ms: int
    head: int | None
    frozen: int
    parent_id: str | None
    parent_revision: str | None
    messages: int
    last_seq: int
    chain_hash: bytes
    journal_floor: int
    persisted_seq: int
    epoch: int
    holder: str | None
    holder_pid: int | None
    holder_url: str | None
    last_batch: str | None
    last_batch_seq: int | None
    profile: str


_SESSION_COLUMNS = SessionRow._fields
_SELECT_SESSION = f"SELECT {', '.join(_SESSION_COLUMNS)} FROM session WHERE id = ?"
_INSERT_SESSION = (
    f"INSERT INTO session ({', '.join(_SESSION_COLUMNS[1:])})"
    f" VALUES ({', '.join('?' * (len(_SESSION_COLUMNS) - 1))}) RETURNING sid"
)


def find_session_row(connection: apsw.Connection, session_id: str) -> SessionRow | None:
    """Return the row of a session, or None."""
    row = fetch_one(connection, _SELECT_SESSION, session_id)
    return SessionRow(*row) if row else None  # type: ignore[arg-type]


def insert_session_row(connection: apsw.Connection, row: SessionRow) -> int:
    """Insert a session and return its sid; the row's own `sid` is not looked at."""
    inserted = fetch_one(connection, _INSERT_SESSION, *row[1:])
    assert inserted is not None and isinstance(inserted[0], int)
    return inserted[0]


def update_session_row(connection: apsw.Connection, old: SessionRow, new: SessionRow) -> None:
    """Write `new` over `old`. Raises `LeaseLost` if somebody else has moved the session on meanwhile.

    Only columns that differ are set: SQLite rewrites the pages of every index over a column that is.
    """
    pairs = zip(_SESSION_COLUMNS, old, new, strict=True)
    changes: dict[str, SqlValue] = {name: after for name, before, after in pairs if after != before}
    if not changes:
        return
    columns = ", ".join(f"{name} = ?" for name in changes)
    sql = f"UPDATE session SET {columns} WHERE sid = ? AND epoch = ? AND last_seq = ?"
    fetch_all(connection, sql, *changes.values(), old.sid, old.epoch, old.last_seq)
    if connection.changes() != 1:
        raise LeaseLost(f"session {old.id} is written by somebody else")


SELECT_RUN = """
    SELECT r.id, r.run_id, r.request_id, r.kind, r.request_digest, r.on_input, s.id, r.state,
           r.accepted_seq, r.accepted_at_ms, r.outcome, r.error, r.persist_error, r.cancel, r.result, r.persisted,
           r.stats,
           r.started_at_ms, r.finished_at_ms, r.settled_at_ms
    FROM run r JOIN session s USING (sid)
"""


def read_run(row: Row) -> Run:
    """Return the run that a row of `SELECT_RUN` holds; the row id before it is not looked at."""
    (
        _,
        run_id,
        request_id,
        kind,
        digest,
        on_input,
        session_id,
        state,
        accepted_seq,
        accepted_at_ms,
        outcome,
        error,
        persist_error,
        cancel,
        result,
        persisted,
        stats,
        started_at_ms,
        finished_at_ms,
        settled_at_ms,
    ) = row
    return Run(
        id=cast(str, run_id),
        request_id=cast(str, request_id),
        kind=cast(RunKind, kind),
        request_digest=cast(str, digest),
        on_input=cast(OnInput, on_input),
        session_id=cast(str, session_id),
        state=cast(State, state),
        accepted_seq=cast(int, accepted_seq),
        accepted_at_ms=cast(int, accepted_at_ms),
        outcome=cast("Outcome | None", outcome),
        error=_read_error(error),
        persist_error=_read_error(persist_error),
        cancel=_read_cancel(cancel),
        result=_read_result(result),
        persisted=_read_persisted(persisted),
        stats=_read_stats(stats),
        started_at_ms=cast("int | None", started_at_ms),
        finished_at_ms=cast("int | None", finished_at_ms),
        settled_at_ms=cast("int | None", settled_at_ms),
    )


def insert_run(connection: apsw.Connection, sid: int, run: Run, text: str) -> int:
    """Insert an accepted run and return its row id."""
    sql = """
        INSERT INTO run (run_id, sid, request_id, kind, text, on_input, request_digest, state, stats,
                         accepted_seq, last_seq, accepted_at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
    """
    row = fetch_one(
        connection,
        sql,
        run.id,
        sid,
        run.request_id,
        run.kind,
        text,
        run.on_input,
        run.request_digest,
        run.state,
        _text(_stats_fields(run.stats)),
        run.accepted_seq,
        run.accepted_seq,
        run.accepted_at_ms,
    )
    assert row is not None and isinstance(row[0], int)
    return row[0]


def update_run(connection: apsw.Connection, rowid: int, old: Run, new: Run, last_seq: int) -> None:
    """Write a run's record over its row, which holds `old`; only columns that differ are set.

    `last_seq` is the seq of its latest event.
    """
    changes: dict[str, SqlValue] = {"last_seq": last_seq}
    if new != old:
        before = _run_columns(old)
        changes |= {name: value for name, value in _run_columns(new).items() if value != before[name]}
    sql = f"UPDATE run SET {', '.join(f'{name} = ?' for name in changes)} WHERE id = ?"
    fetch_all(connection, sql, *changes.values(), rowid)


def _run_columns(run: Run) -> dict[str, SqlValue]:
    cancel = run.cancel
    return {
        "state": run.state,
        "outcome": run.outcome,
        "error": _text(error_fields(run.error)),
        "persist_error": _text(error_fields(run.persist_error)),
        "cancel": _text(
            {"reason": cancel.reason, "message": cancel.message, "at_ms": cancel.at_ms} if cancel else None
        ),
        "result": _text({"content": run.result.content} if run.result else None),
        "persisted": _text(persisted_fields(run.persisted)),
        "stats": _text(_stats_fields(run.stats)),
        "started_at_ms": run.started_at_ms,
        "finished_at_ms": run.finished_at_ms,
        "settled_at_ms": run.settled_at_ms,
    }


def _text(value: JsonValue) -> str | None:
    return None if value is None else canonical.encode(value).decode()


def _stats_fields(stats: Stats) -> JsonObject:
    return {
        "iterations": stats.iterations,
        "tool_calls": dict(stats.tool_calls),
        "tool_errors": stats.tool_errors,
    }


def _object(text: SqlValue) -> Mapping[str, JsonValue] | None:
    if text is None:
        return None
    value = canonical.decode(cast(str, text))
    assert isinstance(value, dict), "the column holds an object"
    return value


def _read_error(text: SqlValue) -> RunError | None:
    value = _object(text)
    if value is None:
        return None
    details = cast("Mapping[str, str | int | bool | None]", value["details"])
    return RunError(cast(str, value["code"]), cast(str, value["message"]), bool(value["retryable"]), details)


def _read_cancel(text: SqlValue) -> Cancel | None:
    value = _object(text)
    if value is None:
        return None
    return Cancel(cast(str, value["reason"]), cast("str | None", value["message"]), cast(int, value["at_ms"]))


def _read_result(text: SqlValue) -> RunResult | None:
    value = _object(text)
    return RunResult(cast(str, value["content"])) if value is not None else None


def _read_persisted(text: SqlValue) -> Persisted | None:
    value = _object(text)
    if value is None:
        return None
    return Persisted(cast(str, value["revision"]), cast(int, value["messages"]), cast(int, value["seq"]))


def _read_stats(text: SqlValue) -> Stats:
    value = _object(text)
    assert value is not None
    calls = cast("Mapping[str, int]", value["tool_calls"])
    return Stats(cast(int, value["iterations"]), calls, cast(int, value["tool_errors"]))
