"""The holder's two transactions: accept a run, commit a batch. Everything else that a session's holder writes is in
them."""

from __future__ import annotations

import apsw

from aura.runs import NewRun
from aura.store.lost import lost_events
from aura.store.protocol import Accepted, Batch, Checkpoint, Receipt, RunFilter
from aura.store.sqlite import chains, journal, runs, sessions
from aura.store.sqlite.database import fetch_one
from aura.store.sqlite.lease import SqliteLease
from aura.store.sqlite.rows import SessionRow, update_session_row


def accept(connection: apsw.Connection, lease: SqliteLease, new: NewRun) -> Accepted:
    """Make a run or find its earlier self. Raises `Busy`, `RequestConflict`, `LeaseLost`."""
    old = sessions.get_row(connection, lease.session_id)
    row, accepted = runs.accept_run(connection, lease.claim(old), new)
    if accepted.created:
        update_session_row(connection, old, row)
    return accepted


def commit(connection: apsw.Connection, lease: SqliteLease, batch: Batch, at_ms: int) -> Receipt:
    """Store a batch: checkpoint, events, run records and derived rows together.

    The batch's id makes a repeat a no-op. `at_ms` dates the revision. Raises `LeaseLost`, `SessionFrozen`.
    """
    old = sessions.get_row(connection, lease.session_id)
    if old.last_batch == batch.id:
        return _repeat(connection, old, batch)
    sessions.check_not_frozen(old)
    row = lease.claim(old)._replace(last_batch=batch.id, last_batch_seq=old.last_seq + 1)
    row, run = journal.append(connection, row, batch.events)
    if batch.checkpoint is not None:
        rowid = _find_run_rowid(connection, batch)
        row = chains.apply_checkpoint(connection, row, batch.checkpoint, rowid, at_ms)
    update_session_row(connection, old, row)
    return Receipt(old.last_seq + 1, row.last_seq, run)


def freeze(connection: apsw.Connection, lease: SqliteLease, checkpoint: Checkpoint, at_ms: int) -> Receipt:
    """Settle what a crash left behind, then freeze the session by `checkpoint`. Raises what `commit` raises."""
    row = sessions.get_row(connection, lease.session_id)
    live = runs.list_runs(connection, RunFilter(row.id, live=True), None, None).items
    inputs = [item for run in live for item in runs.list_inputs(connection, run.id)]
    summary = sessions.get_summary(connection, row.id)
    lost = lost_events(live, inputs, summary, row.persisted_seq, at_ms)
    return commit(connection, lease, Batch(f"freeze {lease.token}", lost, checkpoint), at_ms)


def _repeat(connection: apsw.Connection, row: SessionRow, batch: Batch) -> Receipt:
    first_seq = row.last_batch_seq or row.last_seq + 1
    run_ids = [item.run_id for item in batch.events if item.run_id is not None]
    run = runs.get_run(connection, run_ids[-1]) if run_ids else None
    return Receipt(first_seq, first_seq + len(batch.events) - 1, run)


def _find_run_rowid(connection: apsw.Connection, batch: Batch) -> int | None:
    run_ids = {item.run_id for item in batch.events if item.run_id is not None}
    if len(run_ids) != 1:
        return None
    row = fetch_one(connection, "SELECT id FROM run WHERE run_id = ?", run_ids.pop())
    return row[0] if row and isinstance(row[0], int) else None
