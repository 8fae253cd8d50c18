"""Runs, requests and questions as rows: accept, cancel, answer, find, list. Statements only, inside a transaction."""

from __future__ import annotations

from typing import cast

import apsw

from aura import events as e
from aura.errors import BadRequest, Busy, NotFound, NotPending, RequestConflict, SessionFrozen
from aura.events import Stamped
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import NewRun, Run, accept
from aura.store.protocol import Accepted, Input, InputState, Page, RunFilter
from aura.store.sqlite import journal
from aura.store.sqlite.database import Row, SqlValue, fetch_all, fetch_one
from aura.store.sqlite.rows import (
    SELECT_RUN,
    SessionRow,
    find_session_row,
    insert_run,
    read_run,
    update_session_row,
)
from aura.wire import canonical

_SELECT_INPUT = """
    SELECT i.input_id, s.id, r.run_id, i.kind, i.state, i.question, i.answer, i.expires_at_ms
    FROM input i JOIN session s ON s.sid = i.sid JOIN run r ON r.id = i.run
"""


def get_run(connection: apsw.Connection, run_id: str) -> Run:
    """Return a run's current record. Raises `NotFound`."""
    row = fetch_one(connection, f"{SELECT_RUN} WHERE r.run_id = ?", run_id)
    if row is None:
        raise NotFound(f"there is no run {run_id}")
    return read_run(row)


def find_request(connection: apsw.Connection, session_id: str, request_id: str) -> Run | None:
    """Return the run that `request_id` made in the session, or None."""
    sql = f"""
        {SELECT_RUN} JOIN request q ON q.run = r.id
        WHERE q.scope = (SELECT sid FROM session WHERE id = ?) AND q.request_id = ?
    """
    row = fetch_one(connection, sql, session_id, request_id)
    return read_run(row) if row else None


def list_runs(connection: apsw.Connection, where: RunFilter, cursor: str | None, limit: int | None) -> Page[Run]:
    """Return runs, the newest first, at most `limit` older than the run id `cursor`. Raises `BadRequest`."""
    conditions, values = ["1"], list[SqlValue]()
    if where.session_id is not None:
        conditions.append("s.id = ?")
        values.append(where.session_id)
    if where.live is not None:
        live = "r.state IN ('accepted', 'running', 'finished')"
        conditions.append(live if where.live else f"NOT {live}")
    if cursor is not None:
        before = fetch_one(connection, "SELECT id FROM run WHERE run_id = ?", cursor)
        if before is None:
            raise BadRequest("the cursor is not one that this store gave out", hint="Start again without a cursor.")
        conditions.append("r.id < ?")
        values.append(before[0])
    sql = f"{SELECT_RUN} WHERE {' AND '.join(conditions)} ORDER BY r.id DESC LIMIT ?"
    items = [read_run(row) for row in fetch_all(connection, sql, *values, -1 if limit is None else limit + 1)]
    if limit is None or len(items) <= limit:
        return Page(tuple(items))
    return Page(tuple(items[:limit]), items[limit - 1].id)


def replay(run: Run | None, new: NewRun) -> Accepted | None:
    """Return the earlier run of the same request, or None. Raises `RequestConflict` for another body."""
    if run is None:
        return None
    if run.request_digest != new.digest:
        raise RequestConflict(
            f"request {new.request_id!r} was used with another body",
            hint="Use a new request_id for a new request.",
            details={"run_id": run.id},
        )
    return Accepted(run, created=False)


def accept_run(connection: apsw.Connection, row: SessionRow, new: NewRun) -> tuple[SessionRow, Accepted]:
    """Make a run and its first event, or find the run that the request id made before.

    Raises `RequestConflict`, and `Busy` while another run of the session has not settled.
    """
    earlier = replay(find_request(connection, row.id, new.request_id), new)
    if earlier is not None:
        return row, earlier
    live = list_runs(connection, RunFilter(row.id, live=True), None, 1).items
    if live:
        raise Busy(f"run {live[0].id} has not settled", hint="Wait for its end.", details={"run_id": live[0].id})
    run = accept(new, row.id, row.last_seq + 1)
    insert_accepted(connection, row.sid, run, new)
    row, _ = journal.append(connection, row, [Stamped(new.accepted_at_ms, e.RunAccepted(), run.id)])
    return row, Accepted(run, created=True)


def insert_accepted(connection: apsw.Connection, sid: int, run: Run, new: NewRun) -> None:
    """Insert an accepted run and the request that made it."""
    rowid = insert_run(connection, sid, run, new.text)
    fetch_all(
        connection,
        "INSERT INTO request (scope, request_id, digest, run) VALUES (?, ?, ?, ?)",
        sid,
        new.request_id,
        new.digest,
        rowid,
    )


def cancel_run(connection: apsw.Connection, run_id: str, reason: str, message: str | None, at_ms: int) -> Run:
    """Note that the run shall be cancelled; a second request and a settled run change nothing. Raises `NotFound`."""
    run = get_run(connection, run_id)
    if run.terminal or run.cancel_requested:
        return run
    event = e.RunCancelRequested(reason=reason, message=message)
    changed = append_control(connection, run.session_id, Stamped(at_ms, event, run_id))
    assert changed is not None
    return changed


def get_input(connection: apsw.Connection, input_id: str) -> Input:
    """Return a question or approval. Raises `NotFound`."""
    row = fetch_one(connection, f"{_SELECT_INPUT} WHERE i.input_id = ?", input_id)
    if row is None:
        raise NotFound(f"there is no input {input_id}")
    return _read_input(row)


def list_inputs(connection: apsw.Connection, run_id: str) -> list[Input]:
    """Return a run's questions and approvals, in the order they came up."""
    rows = fetch_all(connection, f"{_SELECT_INPUT} WHERE r.run_id = ? ORDER BY i.id", run_id)
    return [_read_input(row) for row in rows]


def resolve_input(connection: apsw.Connection, input_id: str, answer: JsonValue, answered_by: str, at_ms: int) -> Input:
    """Resolve a pending input; the first one wins. `answer` None dismisses it. Raises `NotFound` and `NotPending`."""
    pending = get_input(connection, input_id)
    if pending.state != "pending" or get_run(connection, pending.run_id).terminal:
        raise NotPending(f"input {input_id} is not pending any more")
    event = e.InputResolved(input_id=input_id, answer=answer, answered_by=answered_by)
    append_control(connection, pending.session_id, Stamped(at_ms, event, pending.run_id))
    return get_input(connection, input_id)


def append_control(connection: apsw.Connection, session_id: str, item: Stamped) -> Run | None:
    """Append an event of somebody who does not hold the session. Raises `NotFound` and `SessionFrozen`."""
    row = find_session_row(connection, session_id)
    if row is None:
        raise NotFound(f"there is no session {session_id}")
    if row.frozen:
        raise SessionFrozen(f"session {session_id} is frozen")
    new, run = journal.append(connection, row, [item])
    update_session_row(connection, row, new)
    return run


def note_process(connection: apsw.Connection, run_id: str, call_id: str, pid: int, start_time: str) -> None:
    """Note the process group of a call that has started."""
    sql = """
        UPDATE tool_call SET pid = ?1, pid_start_time = ?2
        WHERE run = (SELECT id FROM run WHERE run_id = ?3) AND call_id = ?4 AND status = 'started' AND pid IS NULL
    """
    fetch_all(connection, sql, pid, start_time, run_id, call_id)


def list_processes(connection: apsw.Connection, run_id: str) -> list[tuple[int, str]]:
    """Return (pid, start time) of the process groups of calls that have not finished."""
    sql = """
        SELECT t.pid, t.pid_start_time FROM tool_call t JOIN run r ON r.id = t.run
        WHERE r.run_id = ? AND t.pid IS NOT NULL AND t.finished_seq IS NULL
    """
    return cast("list[tuple[int, str]]", fetch_all(connection, sql, run_id))


def _read_input(row: Row) -> Input:
    input_id, session_id, run_id, kind, state, question, answer, expires_at_ms = row
    return Input(
        id=cast(str, input_id),
        session_id=cast(str, session_id),
        run_id=cast(str, run_id),
        kind="ask" if kind == "ask" else "confirm",
        state=cast(InputState, state),
        question=cast(JsonObject, canonical.decode(cast(str, question))),
        answer=None if answer is None else canonical.decode(cast(str, answer)),
        expires_at_ms=cast("int | None", expires_at_ms),
    )
