"""Takes a whole journal into a session that has none, in transactions small enough for others to write between them.

Runs, requests, questions and tool calls come of the same fold and the same projections as in a live session. An import
that was broken off goes on where it ended, if it is begun again with the same journal.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from aura import events as e
from aura.errors import Exists, LeaseLost
from aura.events import Stamped
from aura.runs import accept
from aura.store.replay import Replay
from aura.store.sqlite import sessions
from aura.store.sqlite.database import fetch_one
from aura.store.sqlite.journal import Appender
from aura.store.sqlite.lease import SqliteLease
from aura.store.sqlite.rows import update_session_row
from aura.store.sqlite.runs import insert_accepted
from aura.wire.catalogue import Encoded
from aura.wire.journal_text import JournalLine, encode_data, read_new_run


def find_progress(connection: apsw.Connection, session_id: str, journal: Replay) -> int:
    """Return the seq up to which this very journal was imported before, 0 for a session without a journal.

    Raises `NotFound`; `Exists` when the session has a journal, or another session has one of its runs or questions.
    """
    row = sessions.get_row(connection, session_id)
    if row.last_seq > 0 and (row.last_batch != _mark(journal) or row.last_seq >= journal.last_seq):
        raise Exists(
            f"session {session_id} has a journal of {row.last_seq} events",
            hint="Import into a session that has none: one from `aura session import` or a fork.",
        )
    if row.last_seq == 0:
        _check_free(connection, journal)
    return row.last_seq


def write(lease: SqliteLease, journal: Replay, lines: Sequence[JournalLine], connection: apsw.Connection) -> int:
    """Append the next lines of the journal, which `journal` has been through; return the last seq.

    Inside a transaction only. Raises `LeaseLost` when somebody else has written to the session meanwhile.
    """
    old = sessions.get_row(connection, lease.session_id)
    sessions.check_not_frozen(old)
    if old.last_seq != lines[0].seq - 1:
        raise LeaseLost(f"session {old.id} is written by somebody else")
    appender = Appender(connection, lease.claim(old)._replace(last_batch=_mark(journal), last_batch_seq=lines[0].seq))
    for line in lines:
        if isinstance(line.event, e.RunAccepted):
            appender.write_runs()  # the one before has settled, and its row must say so first
            new = read_new_run(line, journal.inputs[line.run_id or ""])
            insert_accepted(connection, old.sid, accept(new, old.id, line.seq), new)
        encoded = Encoded(line.type, encode_data(line, old.id), line.event.kind, None)
        appender.add(Stamped(line.at_ms, line.event, line.run_id), encoded)
    row, _ = appender.finish()
    if row.last_seq == journal.last_seq and row.chain_hash != journal.chain_hash:
        raise LeaseLost("the journal changed while it was read")
    update_session_row(connection, old, row)
    return row.last_seq


def _mark(journal: Replay) -> str:
    """Return what the session keeps while the import is under way: it tells this journal from any other."""
    return f"import {journal.chain_hash.hex()}"


def _check_free(connection: apsw.Connection, journal: Replay) -> None:
    for run_id in journal.run_ids:
        row = fetch_one(connection, "SELECT s.id FROM run r JOIN session s USING (sid) WHERE r.run_id = ?", run_id)
        if row is not None:
            raise _taken(f"run {run_id}", row[0])
    for input_id in journal.input_ids:
        row = fetch_one(
            connection, "SELECT s.id FROM input i JOIN session s USING (sid) WHERE i.input_id = ?", input_id
        )
        if row is not None:
            raise _taken(f"question {input_id}", row[0])


def _taken(what: str, session_id: object) -> Exists:
    return Exists(
        f"session {session_id} of this store has {what} already",
        hint="A journal can be once in a store; import it in another write home.",
    )
