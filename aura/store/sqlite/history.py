"""Reads of a store's past on one read-only connection: saved states, their messages, runs, figures. It writes nothing.

No cursor and no transaction is open while a page of messages is out, so a reader who pauses holds nobody up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import apsw

from aura import limits
from aura.conversation import Summary
from aura.errors import NotFound
from aura.store.history import MessageFilter, RunEntry, RunQuery, Save, Stats, StoredMessage
from aura.store.sqlite import chains, figures, selection
from aura.store.sqlite.database import Row, SqlValue, fetch_all, fetch_one
from aura.store.sqlite.errors import translated
from aura.store.sqlite.rows import SELECT_RUN, SessionRow, find_session_row, read_run
from aura.store.sqlite.summaries import find_summary
from aura.wire import document

_SELECT_REVISION = """
    SELECT v.n, v.sha256, v.at_ms, v.reason, r.run_id, v.chain, v.length, v.prompt, CAST(v.tail AS BLOB)
    FROM revision v LEFT JOIN run r ON r.id = v.run WHERE v.sid = ?
"""


class SqliteHistory:
    """The past of one store. One thread at a time. Every verb may raise `StoreUnavailable`."""

    def __init__(self, directory: Path, connection: apsw.Connection) -> None:
        """Take over a read-only connection to the database in `directory`."""
        self._directory = directory
        self._connection = connection

    def get_summary(self, session_id: str) -> Summary:
        """Return a session's summary. Raises `NotFound`."""
        with translated():
            summary = find_summary(self._connection, session_id)
        if summary is None:
            raise _missing(session_id)
        return summary

    def list_saves(self, session_id: str, limit: int | None) -> list[Save]:
        """Return a session's revisions, the newest first, at most `limit` of them. Raises `NotFound`."""
        with self._snapshot():
            row = self._get_row(session_id)
            count = -1 if limit is None else limit + 1
            rows = fetch_all(self._connection, f"{_SELECT_REVISION} ORDER BY v.n DESC LIMIT ?", row.sid, count)
            return self._read_saves(rows)[:limit]

    def get_save(self, session_id: str, prefix: str | None) -> Save:
        """Return the head, or the newest revision whose SHA-256 starts with `prefix`.

        Raises `NotFound`, and `BadRequest` for a prefix that fits several contents.
        """
        with self._snapshot():
            row = self._get_row(session_id)
            return self._read_save(row, chains.get_revision(self._connection, row, prefix).n)

    def find_save_before(self, session_id: str, n: int) -> Save | None:
        """Return the newest revision before number `n`, or None when there is none. Raises `NotFound`."""
        with self._snapshot():
            row = self._get_row(session_id)
            found = fetch_one(self._connection, "SELECT max(n) FROM revision WHERE sid = ? AND n < ?", row.sid, n)
            return self._read_save(row, cast(int, found[0])) if found and found[0] is not None else None

    def count_shared(self, session_id: str, n: int, other_n: int) -> int:
        """Return how many stored messages two revisions begin with in common. Raises `NotFound`."""
        with self._snapshot():
            row = self._get_row(session_id)
            return chains.count_shared(self._connection, self._get_place(row, n), self._get_place(row, other_n))

    def read_messages(self, session_id: str, n: int, start: int) -> Iterator[StoredMessage]:
        """Yield the messages of revision `n` from position `start` on. Raises `NotFound`, `StoreUnavailable`."""
        with self._snapshot():
            chain, length = self._get_place(self._get_row(session_id), n)
        while start < length:
            with translated():
                page = next(chains.read_bodies(self._connection, chain, length, start))
            yield from (StoredMessage(*values) for values in page)
            start = page[-1][0] + 1

    def select_messages(self, session_id: str, n: int, where: MessageFilter) -> Iterator[StoredMessage]:
        """Yield the messages of revision `n` that `where` lets through, in order. Raises `NotFound`."""
        with self._snapshot():
            segments = chains.read_segments(self._connection, *self._get_place(self._get_row(session_id), n))
            start = selection.find_start(self._connection, segments, where)
        for chain, until in segments:
            while start < until:
                with translated():
                    page = selection.read_page(self._connection, chain, start, until, where.roles)
                yield from page
                start = until if len(page) < limits.PAGE_ROWS else page[-1].idx + 1

    def list_runs(self, where: RunQuery, limit: int | None) -> list[RunEntry]:
        """Return runs, the newest first, at most `limit` of them. Raises `NotFound` for an unknown session."""
        with self._snapshot():
            if where.session_id is not None:
                self._get_row(where.session_id)
            condition, values = _run_condition(where)
            end = f"WHERE {condition} ORDER BY r.id DESC LIMIT ?"
            values = (*values, -1 if limit is None else limit)
            runs = fetch_all(self._connection, f"{SELECT_RUN} {end}", *values)
            texts = fetch_all(self._connection, f"SELECT r.text FROM run r JOIN session s USING (sid) {end}", *values)
        return [RunEntry(read_run(row), cast(str, text)) for row, (text,) in zip(runs, texts, strict=True)]

    def get_stats(self, since_ms: int) -> Stats:
        """Return a morning's figures, all of one moment."""
        with self._snapshot():
            return figures.get_stats(self._connection, self._directory, since_ms)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # --- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Let all statements of the block see the same state. Failures leave it as store errors."""
        with translated():
            fetch_all(self._connection, "BEGIN")
            try:
                yield
            finally:
                fetch_all(self._connection, "ROLLBACK")

    def _get_row(self, session_id: str) -> SessionRow:
        row = find_session_row(self._connection, session_id)
        if row is None:
            raise _missing(session_id)
        return row

    def _get_place(self, row: SessionRow, n: int) -> tuple[int, int]:
        found = fetch_one(self._connection, "SELECT chain, length FROM revision WHERE sid = ? AND n = ?", row.sid, n)
        if found is None:
            raise NotFound(f"session {row.id} has no revision number {n} any more")
        return cast("tuple[int, int]", found)

    def _read_save(self, row: SessionRow, n: int) -> Save:
        sql = f"{_SELECT_REVISION} AND v.n <= ? ORDER BY v.n DESC LIMIT 2"
        return self._read_saves(fetch_all(self._connection, sql, row.sid, n))[0]

    def _read_saves(self, rows: Sequence[Row]) -> list[Save]:
        """Return the saves of rows that are the newest first; the last one is compared with nothing."""
        prompts: dict[SqlValue, str] = {}
        saves = []
        for row, before in zip(rows, [*rows[1:], None], strict=True):
            n, sha256, at_ms, reason, run_id, chain, length, prompt, tail = row
            if prompt not in prompts:
                prompts[prompt] = self._get_prompt(prompt)
            place = cast("tuple[int, int]", (chain, length))
            earlier = cast("tuple[int, int]", before[5:7]) if before else (place[0], 0)
            save = Save(
                n=cast(int, n),
                sha256=cast(str, sha256),
                at_ms=cast(int, at_ms),
                reason=cast(str, reason),
                run_id=cast("str | None", run_id),
                messages=chains.count_non_system(self._connection, *place),
                stored=place[1],
                shared=chains.count_shared(self._connection, earlier, place),
                before=earlier[1],
                header=document.decode_tail(cast(bytes, tail), prompts[prompt]),
            )
            saves.append(save)
        return saves

    def _get_prompt(self, prompt: SqlValue) -> str:
        row = fetch_one(self._connection, "SELECT text FROM prompt WHERE id = ?", prompt)
        assert row is not None, "a revision's prompt is kept"
        return cast(str, row[0])


def _run_condition(where: RunQuery) -> tuple[str, tuple[SqlValue, ...]]:
    conditions, values = ["1"], list[SqlValue]()
    if where.session_id is not None:
        conditions.append("s.id = ?")
        values.append(where.session_id)
    if where.states or where.outcomes:
        conditions.append(f"(r.state IN ({_marks(where.states)}) OR r.outcome IN ({_marks(where.outcomes)}))")
        values += [*sorted(where.states), *sorted(where.outcomes)]
    if where.since_ms is not None:
        conditions.append("(r.settled_at_ms IS NULL OR r.settled_at_ms >= ?)")
        values.append(where.since_ms)
    return " AND ".join(conditions), tuple(values)


def _marks(values: frozenset[str]) -> str:
    return ", ".join("?" * len(values))


def _missing(session_id: str) -> NotFound:
    return NotFound(f"there is no session {session_id}", hint="`aura session list` shows what there is.")
