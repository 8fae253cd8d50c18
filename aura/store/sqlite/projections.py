"""Rows that are derived from events in the same transaction: tool calls, usage, questions. They are never written
otherwise.

A projection has no decision of its own; dropping these tables and replaying the journal would rebuild them.
"""

from __future__ import annotations

import apsw

from aura import events as e
from aura.jsontypes import JsonObject
from aura.store.sqlite.database import fetch_all
from aura.wire import canonical
from aura.wire.automation import event_data


def apply(connection: apsw.Connection, sid: int, run: int | None, event: e.Event, seq: int, at_ms: int) -> None:
    """Bring the derived rows up to `event`, which is stored at `seq`. `run` is the run's row id."""
    match event:
        case e.MessageAssistant() if run is not None:
            _request_calls(connection, sid, run, event)
            _add_usage(connection, sid, run, event, seq, at_ms)
        case e.ToolStarted() if run is not None:
            _start_call(connection, sid, run, event, seq, at_ms)
        case e.ToolFinished() if run is not None:
            _finish_call(connection, run, event, seq, at_ms)
        case e.InputRequired() if run is not None:
            _add_input(connection, sid, run, event, at_ms)
        case e.InputResolved():
            _resolve_input(connection, event, at_ms)
        case e.RunLost() | e.RunPersisted() | e.RunPersistFailed():
            fetch_all(
                connection,
                "UPDATE tool_call SET status = 'unknown' WHERE run = ? AND status IN ('requested', 'started')",
                run,
            )


def _request_calls(connection: apsw.Connection, sid: int, run: int, event: e.MessageAssistant) -> None:
    for call in event.tool_calls:
        _insert_call(connection, sid, run, call.id, call.name, call.arguments)


def _insert_call(
    connection: apsw.Connection, sid: int, run: int, call_id: str, name: str, arguments: JsonObject
) -> None:
    sql = """
        INSERT INTO tool_call (run, call_id, n, sid, name, status, args_bytes)
        VALUES (?1, ?2, (SELECT count(*) FROM tool_call WHERE run = ?1 AND call_id = ?2), ?3, ?4, 'requested', ?5)
    """
    fetch_all(connection, sql, run, call_id, sid, name, len(canonical.encode(arguments)))


def _start_call(connection: apsw.Connection, sid: int, run: int, event: e.ToolStarted, seq: int, at_ms: int) -> None:
    sql = """
        UPDATE tool_call SET status = 'started', started_seq = ?, started_at_ms = ?
        WHERE run = ?3 AND call_id = ?4
          AND n = (SELECT min(n) FROM tool_call WHERE run = ?3 AND call_id = ?4 AND status = 'requested')
    """
    fetch_all(connection, sql, seq, at_ms, run, event.call_id)
    if connection.changes() == 1:
        return
    _insert_call(connection, sid, run, event.call_id, event.name, event.args)  # a call that no message asked for
    fetch_all(connection, sql, seq, at_ms, run, event.call_id)


def _finish_call(connection: apsw.Connection, run: int, event: e.ToolFinished, seq: int, at_ms: int) -> None:
    sql = """
        UPDATE tool_call SET status = ?, finished_seq = ?, finished_at_ms = ?, result_bytes = ?
        WHERE run = ?5 AND call_id = ?6
          AND n = (SELECT min(n) FROM tool_call WHERE run = ?5 AND call_id = ?6 AND status = 'started')
    """
    size = len(canonical.encode_text(event.result))
    fetch_all(connection, sql, event.status, seq, at_ms, size, run, event.call_id)


def _add_usage(
    connection: apsw.Connection, sid: int, run: int, event: e.MessageAssistant, seq: int, at_ms: int
) -> None:
    usage = event.usage
    if usage is None:
        return
    sql = """
        INSERT INTO usage (run, seq, sid, agent, provider, model, input_tokens, output_tokens, cost_usd, at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """
    agent = event.source.agent_name if event.source else None
    counts = (usage.input_tokens, usage.output_tokens, usage.cost_usd, at_ms)
    fetch_all(connection, sql, run, seq, sid, agent, usage.provider, usage.model, *counts)


def _add_input(connection: apsw.Connection, sid: int, run: int, event: e.InputRequired, at_ms: int) -> None:
    sql = """
        INSERT INTO input (input_id, sid, run, kind, state, question, created_at_ms, expires_at_ms)
        VALUES (?, ?, ?, ?, 'pending', ?, ?, ?)
    """
    question = canonical.encode(event_data(event, None)).decode()
    fetch_all(connection, sql, event.input_id, sid, run, event.input_kind, question, at_ms, event.expires_at_ms)


def _resolve_input(connection: apsw.Connection, event: e.InputResolved, at_ms: int) -> None:
    sql = """
        UPDATE input SET state = ?, answer = ?, answered_by = ?, resolved_at_ms = ?
        WHERE input_id = ? AND state = 'pending'
    """
    state = "dismissed" if event.answer is None else "answered"
    answer = None if event.answer is None else canonical.encode(event.answer).decode()
    fetch_all(connection, sql, state, answer, event.answered_by, at_ms, event.input_id)
