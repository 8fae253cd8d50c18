"""What a listing shows of sessions, read from their rows. It writes nothing and knows no message, event or run.

It stands apart so that `aura session list` imports little.
"""

from __future__ import annotations

from typing import cast

import apsw

from aura.conversation import Parent, Summary
from aura.store.sqlite.database import Row, SqlValue, fetch_all, fetch_one

_SELECT = """
    SELECT s.id, s.title, s.created_at_ms, s.updated_at_ms, r.sha256, s.messages, s.frozen,
           s.parent_id, s.parent_revision
    FROM session s JOIN revision r ON r.id = s.head
"""


def find_summary(connection: apsw.Connection, session_id: str) -> Summary | None:
    """Return a session's summary, or None."""
    row = fetch_one(connection, f"{_SELECT} WHERE s.id = ?", session_id)
    return _summary(row) if row else None


def list_summaries(
    connection: apsw.Connection,
    *,
    parent_id: str | None = None,
    after: tuple[int, str] | None = None,
    limit: int | None = None,
) -> list[Summary]:
    """Return sessions, the most recently updated first, at most `limit` of them.

    `parent_id`: only forks of that session. `after`: only what stands behind this (update in Unix ms, id).
    """
    conditions, values = ["1"], list[SqlValue]()
    if parent_id is not None:
        conditions.append("s.parent_id = ?")
        values.append(parent_id)
    if after is not None:
        conditions.append("(s.updated_at_ms, s.id) < (?, ?)")
        values.extend(after)
    sql = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY s.updated_at_ms DESC, s.id DESC LIMIT ?"
    return [_summary(row) for row in fetch_all(connection, sql, *values, -1 if limit is None else limit)]


def _summary(row: Row) -> Summary:
    id, title, created_at_ms, updated_at_ms, revision, messages, frozen, parent_id, parent_revision = row
    return Summary(
        id=cast(str, id),
        title=cast(str, title),
        created_at_ms=cast(int, created_at_ms),
        updated_at_ms=cast(int, updated_at_ms),
        revision=cast(str, revision),
        messages=cast(int, messages),
        frozen=bool(frozen),
        parent=Parent(cast(str, parent_id), cast(str, parent_revision)) if parent_id is not None else None,
    )
