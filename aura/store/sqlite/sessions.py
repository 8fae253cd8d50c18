"""Sessions as documents: create, import, fork, list, load, export. Statements only; transactions are the writer's.

What needs the whole conversation (hashing it, comparing it) is done by the caller outside of the transaction, so that a
large session never keeps other writers waiting.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import apsw

from aura.clock import parse_time
from aura.conversation import Conversation, Header, Parent, Summary, count_non_system
from aura.errors import BadRequest, Exists, NotFound, RevisionMismatch, SessionFrozen
from aura.store.protocol import Checkpoint, NewMessage, Page, Revision, SessionFilter, StoredConversation
from aura.store.sqlite import chains, summaries
from aura.store.sqlite.database import SQL_INTEGER_END, fetch_all, fetch_one
from aura.store.sqlite.journal import GENESIS_HASH
from aura.store.sqlite.rows import (
    SessionRow,
    find_session_row,
    insert_session_row,
    update_session_row,
)
from aura.wire import canonical, document


def get_summary(connection: apsw.Connection, session_id: str) -> Summary:
    """Return a session's summary. Raises `NotFound`."""
    summary = summaries.find_summary(connection, session_id)
    if summary is None:
        raise missing(session_id)
    return summary


def get_row(connection: apsw.Connection, session_id: str) -> SessionRow:
    """Return a session's row. Raises `NotFound`."""
    row = find_session_row(connection, session_id)
    if row is None:
        raise missing(session_id)
    return row


def missing(session_id: str) -> NotFound:
    """Return the error for a session that is not there."""
    return NotFound(f"there is no session {session_id}", hint="`aura session list` shows what there is.")


def list_summaries(
    connection: apsw.Connection, where: SessionFilter, cursor: str | None, limit: int | None
) -> Page[Summary]:
    """Return sessions, the most recently updated first, at most `limit` from `cursor` on. Raises `BadRequest`."""
    after = None if cursor is None else _decode_cursor(cursor)
    wanted = None if limit is None else limit + 1
    items = summaries.list_summaries(connection, parent_id=where.parent_id, after=after, limit=wanted)
    if limit is None or len(items) <= limit:
        return Page(tuple(items))
    last = items[limit - 1]
    return Page(tuple(items[:limit]), _encode_cursor(last.updated_at_ms, last.id))


def find_ids(connection: apsw.Connection, prefix: str, limit: int) -> list[str]:
    """Return the ids that start with `prefix`, an exact match alone, at most `limit` of them."""
    if fetch_one(connection, "SELECT 1 FROM session WHERE id = ?", prefix):
        return [prefix]
    sql = "SELECT id FROM session WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT ?"
    return [cast(str, row[0]) for row in fetch_all(connection, sql, len(prefix), prefix, limit)]


def list_revisions(connection: apsw.Connection, session_id: str) -> list[Revision]:
    """Return a session's revisions, the newest first. Raises `NotFound`."""
    row = get_row(connection, session_id)
    sql = """
        SELECT v.n, v.sha256, v.at_ms, v.reason, r.run_id, v.length
        FROM revision v LEFT JOIN run r ON r.id = v.run WHERE v.sid = ? ORDER BY v.n DESC
    """
    return [Revision(*values) for values in fetch_all(connection, sql, row.sid)]  # type: ignore[arg-type]


def load(connection: apsw.Connection, session_id: str, revision: str | None) -> StoredConversation:
    """Return a session's document at its head or at `revision`. Raises `NotFound` and `BadRequest`."""
    row = get_row(connection, session_id)
    found = chains.get_revision(connection, row, revision)
    bodies = [body for page in chains.read_bodies(connection, found.chain, found.length) for _, _, body in page]
    header = document.decode_tail(found.tail, found.system)
    return StoredConversation(Conversation(header, tuple(bodies)), found.sha256, row.persisted_seq, row.last_seq)


def insert(
    connection: apsw.Connection,
    header: Header,
    stored: Sequence[NewMessage],
    *,
    revision: str,
    reason: str,
    profile: str,
    at_ms: int,
) -> Summary:
    """Insert a session with one revision. Raises `Exists`. `revision` is the document's hash."""
    if find_session_row(connection, header.id) is not None:
        raise exists(header.id)
    row = _insert_row(connection, header, profile)
    chain = chains.create_chain(connection, row.sid, None, 0)
    messages = chains.append_messages(connection, chain, 0, 0, stored)
    saved = chains.add_revision(
        connection,
        row,
        n=1,
        chain=chain,
        length=len(stored),
        header=header,
        tail=document.encode_tail(header),
        sha256=revision,
        reason=reason,
        run=None,
        messages=messages,
        at_ms=at_ms,
    )
    update_session_row(connection, row, saved)
    return get_summary(connection, header.id)


def insert_fork(
    connection: apsw.Connection,
    parent: SessionRow,
    copied: chains.RevisionRow,
    header: Header,
    revision: str,
    at_ms: int,
) -> Summary:
    """Insert a session that shares its parent's messages. Raises `Exists`."""
    if find_session_row(connection, header.id) is not None:
        raise exists(header.id)
    row = _insert_row(connection, header, parent.profile)
    chain = chains.create_chain(connection, row.sid, copied.chain, copied.length)
    saved = chains.add_revision(
        connection,
        row,
        n=1,
        chain=chain,
        length=copied.length,
        header=header,
        tail=document.encode_tail(header),
        sha256=revision,
        reason="fork",
        run=None,
        messages=chains.count_non_system(connection, copied.chain, copied.length),
        at_ms=at_ms,
    )
    update_session_row(connection, row, saved)
    return get_summary(connection, header.id)


def exists(session_id: str) -> Exists:
    """Return the error for a session that is there and differs."""
    return Exists(f"session {session_id} exists and differs", hint="Choose another id.")


def check_revision(row: SessionRow, found: chains.RevisionRow, expected: str | None) -> None:
    """Raise `RevisionMismatch` unless `expected` is None or the revision found."""
    if expected is not None and expected != found.sha256:
        raise RevisionMismatch(f"session {row.id} is at revision {found.sha256}", hint="Look at what changed it first.")


def check_not_frozen(row: SessionRow) -> None:
    """Raise `SessionFrozen` if the session is frozen."""
    if row.frozen:
        raise SessionFrozen(f"session {row.id} is frozen", hint="Fork it and work on the fork.")


def check_frozen_revision(connection: apsw.Connection, session_id: str, expected: str | None) -> None:
    """Raise `RevisionMismatch` unless `expected` is the frozen session's revision or the one before it was frozen."""
    if expected is None:
        return
    row = get_row(connection, session_id)
    head = chains.get_revision(connection, row)
    sql = "SELECT sha256 FROM revision WHERE sid = ? AND n = ?"
    before = fetch_one(connection, sql, row.sid, head.n - 1)
    if before is None or before[0] != expected:
        check_revision(row, head, expected)


def frozen_checkpoint(stored: StoredConversation, updated_at: str) -> Checkpoint:
    """Return the save that freezes a session: nothing new but its header."""
    header = replace(stored.conversation.header, frozen=True, updated_at=updated_at)
    hasher = document.Hasher()
    hasher.add(stored.conversation.messages)
    tail = document.encode_tail(header)
    return Checkpoint(
        new_messages=(),
        header=header,
        tail=tail,
        revision=hasher.revision(header.system, tail),
        messages=_count_roles(stored.conversation.messages),
        reason="freeze",
    )


def _count_roles(bodies: Sequence[bytes]) -> int:
    return count_non_system(document.read_messages(bodies))


def summarize(connection: apsw.Connection, row: SessionRow, found: chains.RevisionRow) -> Summary:
    """Return the summary of a session as it was at the revision `found`."""
    header = document.decode_tail(found.tail, found.system)
    return Summary(
        id=row.id,
        title=header.title,
        created_at_ms=parse_time(header.created_at),
        updated_at_ms=parse_time(header.updated_at),
        revision=found.sha256,
        messages=chains.count_non_system(connection, found.chain, found.length),
        frozen=header.frozen,
        parent=header.parent,
    )


def _insert_row(connection: apsw.Connection, header: Header, profile: str) -> SessionRow:
    parent: Parent | None = header.parent
    row = SessionRow(
        sid=0,
        id=header.id,
        title=header.title,
        created_at_ms=parse_time(header.created_at),
        updated_at_ms=parse_time(header.updated_at),
        head=None,
        frozen=0,
        parent_id=parent.id if parent else None,
        parent_revision=parent.revision if parent else None,
        messages=0,
        last_seq=0,
        chain_hash=GENESIS_HASH,
        journal_floor=1,
        persisted_seq=0,
        epoch=0,
        holder=None,
        holder_pid=None,
        holder_url=None,
        last_batch=None,
        last_batch_seq=None,
        profile=profile,
    )
    return row._replace(sid=insert_session_row(connection, row))


def _encode_cursor(updated_at_ms: int, session_id: str) -> str:
    return base64.urlsafe_b64encode(canonical.encode([updated_at_ms, session_id])).decode()


def _decode_cursor(cursor: str) -> tuple[int, str]:
    try:
        match canonical.decode(base64.urlsafe_b64decode(cursor)):
            case [int(updated_at_ms), str(session_id)] if abs(updated_at_ms) < SQL_INTEGER_END:
                return updated_at_ms, session_id
    except (ValueError, canonical.NotCanonical):
        pass
    raise BadRequest("the cursor is not one that this store gave out", hint="Start again without a cursor.")
