"""Some messages of a conversation: by role, after one of them, only the last ones. Statements only.

`segments` are those of `chains.read_segments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import apsw

from aura import limits
from aura.conversation import Role
from aura.store.history import MessageFilter, StoredMessage
from aura.store.sqlite.database import fetch_all, fetch_one

Segments = Sequence[tuple[int, int]]


def find_start(connection: apsw.Connection, segments: Segments, where: MessageFilter) -> int:
    """Return the position before which `where` lets nothing through."""
    start = 0 if where.after is None else _find_after(connection, segments, where.after)
    if where.tail is not None:
        start = max(start, _find_tail(connection, segments, where.roles, where.tail))
    return start


def read_page(
    connection: apsw.Connection, chain: int, start: int, until: int, roles: frozenset[Role]
) -> list[StoredMessage]:
    """Return messages of these roles from `start` to before `until` of one segment, at most `limits.PAGE_ROWS`."""
    sql = f"""
        SELECT idx, ordinal, CAST(body AS BLOB) FROM message
        WHERE chain = ? AND idx >= ? AND idx < ? AND role IN ({_marks(roles)}) ORDER BY idx LIMIT ?
    """
    rows = fetch_all(connection, sql, chain, start, until, *sorted(roles), limits.PAGE_ROWS)
    return [StoredMessage(*row) for row in rows]  # type: ignore[arg-type]


def _find_after(connection: apsw.Connection, segments: Segments, ordinal: int) -> int:
    sql = "SELECT idx FROM message WHERE chain = ? AND idx < ? AND ordinal <= ? ORDER BY idx DESC LIMIT 1"
    for chain, until in reversed(segments):
        row = fetch_one(connection, sql, chain, until, ordinal)
        if row is not None:
            return cast(int, row[0]) + 1
    return 0


def _find_tail(connection: apsw.Connection, segments: Segments, roles: frozenset[Role], count: int) -> int:
    sql = f"""
        SELECT idx FROM message WHERE chain = ? AND idx < ? AND role IN ({_marks(roles)}) ORDER BY idx DESC LIMIT ?
    """
    last = segments[-1][1] if segments else 0
    for chain, until in reversed(segments):
        if count <= 0:
            break
        rows = fetch_all(connection, sql, chain, until, *sorted(roles), count)
        last = cast(int, rows[-1][0]) if rows else last
        count -= len(rows)
    return last


def _marks(values: frozenset[Role]) -> str:
    return ", ".join("?" * len(values))
