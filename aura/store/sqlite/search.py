"""The full-text index over messages: searched on a read-only connection, filled by short units of the writer.

Nobody who appends a message waits for it. It follows `message.id` from a mark, in steps of which each is a transaction
of `limits.SEARCH_STEP_BYTES`, under the writers' lock, so that servers get in between two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import apsw

from aura import limits
from aura.errors import BadRequest
from aura.store.history import Hit, Indexed, SearchQuery, StoredMessage
from aura.store.sqlite.database import DATABASE_NAME, SqlValue, fetch_all, fetch_one
from aura.store.sqlite.errors import translated
from aura.store.sqlite.rows import find_session_row
from aura.store.sqlite.sessions import missing
from aura.wire import canonical

if TYPE_CHECKING:
    from aura.store.sqlite.writer import Work, Writer

# What the sessions' conversations consist of now: a message that was dropped or compacted away is in none of them.
_SEGMENTS = """
    WITH RECURSIVE segment (sid, chain, until) AS (
        SELECT s.sid, r.chain, r.length FROM session s JOIN revision r ON r.id = s.head {where}
        UNION ALL
        SELECT g.sid, c.base, min(c.base_length, g.until)
        FROM segment g JOIN chain c ON c.id = g.chain WHERE c.base IS NOT NULL
    )
"""
# FTS5 is the outer loop and yields rows by rank, so that LIMIT ends it and only what is shown gets a snippet.
_FIND = """
    , reach (chain, until) AS MATERIALIZED (SELECT chain, max(until) FROM segment GROUP BY chain)
    SELECT m.chain, m.idx, m.ordinal, CAST(m.body AS BLOB), f.rank,
           snippet(message_search, -1, char(2), char(3), '…', {tokens})
    FROM message_search f CROSS JOIN message m ON m.id = f.rowid
    WHERE message_search MATCH ? AND m.idx < (SELECT until FROM reach WHERE reach.chain = m.chain) {more}
    ORDER BY f.rank LIMIT ?
"""
# What stands in a chain below the length that it had then is older. A message's own time, if it has one, may say more.
_OLD = ", old (chain, length) AS MATERIALIZED (SELECT chain, max(length) FROM revision WHERE at_ms < ? GROUP BY chain)"
_SINCE = """
    AND m.idx >= coalesce((SELECT length FROM old WHERE old.chain = m.chain), 0)
    AND coalesce(CAST(unixepoch(m.body ->> '$.created_at', 'subsec') * 1000 AS INTEGER) >= ?, 1)
"""
_SESSIONS = """
    SELECT h.key, s.id FROM json_each(?) h
    JOIN segment g ON g.chain = h.value ->> 0 AND g.until > h.value ->> 1
    JOIN session s ON s.sid = g.sid JOIN chain c ON c.id = g.chain
    ORDER BY h.key, c.sid <> s.sid, s.updated_at_ms DESC, s.id
"""


class SqliteSearch:
    """The index of one store. One thread at a time. Every verb may raise `StoreUnavailable`."""

    def __init__(self, directory: Path, connection: apsw.Connection) -> None:
        """Take over a read-only connection to the database in `directory`."""
        self._directory = directory
        self._connection = connection
        self._writer: Writer | None = None
        with translated():
            sql = "SELECT 1 FROM sqlite_schema WHERE name = 'message_search'"
            self._is_there = fetch_one(connection, sql) is not None  # not in an older store that cannot be written

    def check(self, where: SearchQuery) -> None:
        """Raise `NotFound` for an unknown session, `BadRequest` for an expression that FTS5 does not understand."""
        with translated():
            if where.session_id is not None and find_session_row(self._connection, where.session_id) is None:
                raise missing(where.session_id)
            if not self._is_there:
                return
            try:
                sql = "SELECT 1 FROM message_search WHERE message_search MATCH ? LIMIT 1"
                fetch_all(self._connection, sql, where.expression)
            except apsw.SQLError as error:
                raise BadRequest(
                    f"the full-text query is wrong: {error}",
                    hint="Without --fts words are taken as they are. The syntax is that of SQLite's FTS5.",
                ) from error

    def find(self, where: SearchQuery) -> list[Hit]:
        """Return what the index knows of `where`, which passes `check`, the best first."""
        with translated():
            if not self._is_there:
                return []
            sql, values = _statement(where)
            rows = fetch_all(self._connection, sql, *values)
            return self._read_hits(cast("list[tuple[int, int, int | None, bytes, float, str]]", rows))

    def count_indexed(self) -> Indexed:
        """Return how many messages are in the index, and how many are not yet."""
        with translated():
            missing_count = self._count_missing()
            return Indexed(self._read_number("SELECT count(*) FROM message") - missing_count, missing_count)

    def catch_up(self, progress: Callable[[int], object]) -> None:
        """Bring into the index what is in the store now; what comes meanwhile is not waited for.

        `progress` is told after each step how many messages are left. Raises `StoreUnavailable` and `StoreFull` where
        nothing can be written; the steps before stay done.
        """
        with translated():
            left = self._count_missing()
            last = self._read_number("SELECT coalesce(max(id), 0) FROM message")
        done = left == 0
        while not done:
            added, done = self._write(lambda connection: _step(connection, last))
            left = max(0, left - added)
            progress(left)

    def clear(self) -> None:
        """Empty the index, so that the next `catch_up` makes all of it. Raises `StoreUnavailable`."""
        self._write(_clear)

    def close(self) -> None:
        """Commit, and close all files."""
        self._connection.close()  # first, so that the writer's connection is the last one and takes the WAL away
        if self._writer is not None:
            self._writer.close()

    # --- inside -------------------------------------------------------------------------------------------------

    def _read_hits(self, rows: list[tuple[int, int, int | None, bytes, float, str]]) -> list[Hit]:
        places = canonical.encode([[chain, idx] for chain, idx, *_ in rows]).decode()
        sessions: dict[int, list[str]] = {}
        found = fetch_all(self._connection, _SEGMENTS.format(where="") + _SESSIONS, places)
        for key, session_id in cast("list[tuple[int, str]]", found):
            sessions.setdefault(key, []).append(session_id)
        return [
            Hit(tuple(sessions[key]), StoredMessage(idx, ordinal, body), rank, snippet)
            for key, (_, idx, ordinal, body, rank, snippet) in enumerate(rows)
            if key in sessions
        ]

    def _count_missing(self) -> int:
        if not self._is_there:
            return self._read_number("SELECT count(*) FROM message")
        return self._read_number("SELECT count(*) FROM message WHERE id > (SELECT mark FROM message_search_mark)")

    def _read_number(self, sql: str) -> int:
        row = fetch_one(self._connection, sql)
        assert row is not None and isinstance(row[0], int)
        return row[0]

    def _write(self, work: Work[tuple[int, bool]]) -> tuple[int, bool]:
        from aura.store.waiting import wait  # only what writes pays for threads and futures

        if self._writer is None:
            self._writer = self._start_writer()
        return wait(self._writer.submit(work, ""))

    def _start_writer(self) -> Writer:
        from aura.store.sqlite.bell import Bell
        from aura.store.sqlite.database import open_writer
        from aura.store.sqlite.locks import Ballast, WriterLock
        from aura.store.sqlite.writer import Writer

        with translated(), ExitStack() as on_failure:
            connection = open_writer(self._directory / DATABASE_NAME)
            on_failure.callback(connection.close)
            lock = WriterLock(self._directory)
            on_failure.callback(lock.close)
            writer = Writer(connection, lock, Ballast(self._directory), Bell())
            on_failure.pop_all()
            return writer


def _step(connection: apsw.Connection, last: int) -> tuple[int, bool]:
    """Index the next messages up to the id `last`; return how many they were, and whether these were all."""
    sql = """
        SELECT id, octet_length(body) FROM message
        WHERE id > (SELECT mark FROM message_search_mark) AND id <= ? ORDER BY id LIMIT ?
    """
    rows = cast("list[tuple[int, int]]", fetch_all(connection, sql, last, limits.SEARCH_STEP_ROWS))
    taken, used_bytes = 0, 0
    for _, size_bytes in rows:
        if taken and used_bytes + size_bytes > limits.SEARCH_STEP_BYTES:
            break
        taken, used_bytes = taken + 1, used_bytes + size_bytes
    if taken:
        sql = """
            INSERT INTO message_search (rowid, content, calls)
            SELECT id, content, calls FROM message_text
            WHERE id > (SELECT mark FROM message_search_mark) AND id <= ? ORDER BY id
        """
        mark = rows[taken - 1][0]
        fetch_all(connection, sql, mark)
        fetch_all(connection, "UPDATE message_search_mark SET mark = ?", mark)
    is_last = len(rows) < limits.SEARCH_STEP_ROWS or rows[-1][0] >= last
    return taken, is_last and taken == len(rows)


def _clear(connection: apsw.Connection) -> tuple[int, bool]:
    fetch_all(connection, "INSERT INTO message_search (message_search) VALUES ('delete-all')")
    fetch_all(connection, "UPDATE message_search_mark SET mark = 0")
    return 0, False


def _statement(where: SearchQuery) -> tuple[str, tuple[SqlValue, ...]]:
    """Return the SQL that finds, and its values."""
    scope, old, more = "", "", ""
    before, after = list[SqlValue](), list[SqlValue]()
    if where.session_id is not None:
        scope = "WHERE s.id = ?"
        before.append(where.session_id)
    if where.roles:
        more = f"AND m.role IN ({', '.join('?' * len(where.roles))})"
        after += sorted(where.roles)
    if where.since_ms is not None:
        old, more = _OLD, more + _SINCE
        before.append(where.since_ms)
        after.append(where.since_ms)
    sql = _SEGMENTS.format(where=scope) + old + _FIND.format(more=more, tokens=limits.SNIPPET_TOKENS_COUNT)
    return sql, (*before, where.expression, *after, where.limit)
