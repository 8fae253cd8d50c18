"""Removes rows of one session in pieces: events below the journal floor, old revisions, or all of it.

The caller holds the session's lock. Every function may be interrupted at any point and called again; what is left in
between is a store that every verb reads rightly (docs/store.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

import apsw

from aura import limits
from aura.store.sqlite.care_writer import CareWriter
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.prune_plan import Target

_ANCHOR = """
    INSERT INTO journal_anchor (sid, seq, chain_hash)
    SELECT sid, seq, chain_hash FROM event WHERE sid = ? AND seq = ?
    ON CONFLICT (sid) DO UPDATE SET seq = excluded.seq, chain_hash = excluded.chain_hash
"""
_USED = """
    SELECT max(coalesce((SELECT max(length) FROM revision WHERE sid = ?1 AND chain = ?2), 0),
               coalesce((SELECT max(base_length) FROM chain WHERE base = ?2), 0)),
           EXISTS (SELECT 1 FROM revision WHERE sid = ?1 AND chain = ?2) OR EXISTS (SELECT 1 FROM chain WHERE base = ?2)
"""


def remove_events(writer: CareWriter, target: Target, floor: int) -> int:
    """Let the journal begin at `floor`, keep the hash before it, and remove the events below; return how many."""
    writer.run(partial(_raise_floor, target, floor), target.session_id)
    return writer.repeat(partial(_delete_events, target.sid, floor), target.session_id)


def remove_revisions(writer: CareWriter, target: Target, ids: Sequence[int]) -> tuple[int, int, int]:
    """Remove revisions, then the messages and chains that no revision has any more.

    Returns (revisions, messages, bytes of the messages). A revision that a fork has named as its origin since is kept.
    """
    left = list(ids)
    revisions = writer.repeat(partial(_delete_revisions, left), target.session_id)
    removed = [0, 0]
    for chain in writer.run(partial(_list_chains, target.sid), target.session_id):
        writer.repeat(partial(_trim_chain, target.sid, chain, removed), target.session_id)
        writer.run(partial(_delete_unused_chain, target.sid, chain), target.session_id)
    return revisions, removed[0], removed[1]


def begin_removal(connection: apsw.Connection, target: Target, at_ms: int) -> None:
    """Take a session off all lists, in the caller's transaction: from then on only its removal goes on."""
    fetch_all(connection, "INSERT INTO removal (sid, at_ms) VALUES (?, ?)", target.sid, at_ms)
    sql = "UPDATE session SET head = NULL, journal_floor = last_seq + 1 WHERE sid = ?"
    fetch_all(connection, sql, target.sid)


def finish_removal(writer: CareWriter, target: Target) -> None:
    """Remove everything of a session whose removal was begun, its own row last."""
    sid, session_id = target.sid, target.session_id
    writer.repeat(partial(_delete_events, sid, None), session_id)
    writer.repeat(partial(_delete_all_revisions, sid), session_id)
    removed = [0, 0]
    for chain in writer.run(partial(_list_chains, sid), session_id):
        writer.repeat(partial(_trim_chain, sid, chain, removed), session_id)
        writer.run(partial(_delete_unused_chain, sid, chain), session_id)
    writer.repeat(partial(_delete_runs, sid), session_id)
    writer.run(partial(_delete_session, sid), session_id)


def remove_prompts(writer: CareWriter, ids: Iterable[int]) -> int:
    """Remove system prompts that no revision has; return how many."""
    return sum(writer.run(partial(_delete_prompt, id)) for id in ids)


def _raise_floor(target: Target, floor: int, connection: apsw.Connection) -> None:
    sql = "SELECT 1 FROM session WHERE sid = ? AND journal_floor < ?"
    if fetch_all(connection, sql, target.sid, floor):
        fetch_all(connection, _ANCHOR, target.sid, floor - 1)
        fetch_all(connection, "UPDATE session SET journal_floor = ? WHERE sid = ?", floor, target.sid)


def _delete_events(sid: int, floor: int | None, connection: apsw.Connection, *, limit: int) -> int:
    sql = """
        SELECT seq, octet_length(data) + coalesce(octet_length(ext), 0) FROM event
        WHERE sid = ?1 AND (?2 IS NULL OR seq < ?2) ORDER BY seq LIMIT ?3
    """
    last = _find_last(fetch_all(connection, sql, sid, floor, limit))
    if last is None:
        return 0
    fetch_all(connection, "DELETE FROM event WHERE sid = ? AND seq <= ?", sid, last)
    return connection.changes()


def _delete_revisions(left: list[int], connection: apsw.Connection, *, limit: int) -> int:
    ids, left[:] = left[:limit], left[limit:]
    done = 0
    for id in ids:
        sql = """
            DELETE FROM revision WHERE id = ? AND NOT EXISTS (
                SELECT 1 FROM session f JOIN session s ON s.id = f.parent_id
                WHERE s.sid = revision.sid AND f.parent_revision = revision.sha256)
        """
        fetch_all(connection, sql, id)
        done += connection.changes()
    return done


def _delete_all_revisions(sid: int, connection: apsw.Connection, *, limit: int) -> int:
    sql = "DELETE FROM revision WHERE id IN (SELECT id FROM revision WHERE sid = ? ORDER BY n LIMIT ?)"
    fetch_all(connection, sql, sid, limit)
    return connection.changes()


def _list_chains(sid: int, connection: apsw.Connection) -> list[int]:
    rows = fetch_all(connection, "SELECT id FROM chain WHERE sid = ? ORDER BY id DESC", sid)
    return [cast(int, row[0]) for row in rows]


def _trim_chain(sid: int, chain: int, removed: list[int], connection: apsw.Connection, *, limit: int) -> int:
    used = fetch_all(connection, _USED, sid, chain)[0][0]
    sql = """
        SELECT idx, octet_length(body) FROM message WHERE chain = ? AND idx >= ? ORDER BY idx DESC LIMIT ?
    """
    rows = fetch_all(connection, sql, chain, used, limit)
    first = _find_last(rows)
    if first is None:
        return 0
    fetch_all(connection, "DELETE FROM message WHERE chain = ? AND idx >= ?", chain, first)
    removed[0] += connection.changes()
    removed[1] += sum(size for idx, size in cast("list[tuple[int, int]]", rows) if idx >= first)
    return connection.changes()


def _delete_unused_chain(sid: int, chain: int, connection: apsw.Connection) -> None:
    if not fetch_all(connection, _USED, sid, chain)[0][1]:
        fetch_all(connection, "DELETE FROM chain WHERE id = ?", chain)


def _delete_runs(sid: int, connection: apsw.Connection, *, limit: int) -> int:
    rows = fetch_all(connection, "SELECT id, request_id FROM run WHERE sid = ? ORDER BY id LIMIT ?", sid, limit)
    for run, request_id in rows:
        for table in ("tool_call", "usage", "input"):
            fetch_all(connection, f"DELETE FROM {table} WHERE run = ?", run)
        fetch_all(connection, "DELETE FROM run WHERE id = ?", run)
        sql = "DELETE FROM request WHERE scope IN (?, 0) AND request_id = ? AND run = ?"
        fetch_all(connection, sql, sid, request_id, run)
    return len(rows)


def _delete_session(sid: int, connection: apsw.Connection) -> None:
    for table in ("journal_anchor", "session", "removal"):
        fetch_all(connection, f"DELETE FROM {table} WHERE sid = ?", sid)


def _delete_prompt(id: int, connection: apsw.Connection) -> int:
    if fetch_all(connection, "SELECT 1 FROM revision WHERE prompt = ? LIMIT 1", id):
        return 0  # somebody uses it again
    fetch_all(connection, "DELETE FROM prompt WHERE id = ?", id)
    return connection.changes()


def _find_last(rows: Sequence[tuple[object, ...]]) -> int | None:
    """Return the key of the last row up to which the texts fit one transaction: of one row at least."""
    last, total = None, 0
    for key, size in cast("Sequence[tuple[int, int]]", rows):
        total += size
        if last is not None and total > limits.CARE_BYTES:
            break
        last = key
    return last
