"""Message chains and revisions: append-only, copy-on-write (DESIGN.md section 4).

A chain begins with the first messages of its base, so a fork or a compaction writes a handful of rows, and an old
revision stays readable for ever: it is its chain's first `length` messages and its tail.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import apsw

from aura import limits
from aura.clock import parse_time
from aura.conversation import Header
from aura.errors import BadRequest, NotFound, StoreUnavailable
from aura.store.protocol import Checkpoint, NewMessage
from aura.store.sqlite.database import fetch_all, fetch_one
from aura.store.sqlite.rows import SessionRow
from aura.wire import canonical

_SEGMENTS = """
    WITH RECURSIVE segment (chain, until, depth) AS (
        SELECT ?1, ?2, 0
        UNION ALL
        SELECT c.base, min(c.base_length, g.until), g.depth + 1
        FROM segment g JOIN chain c ON c.id = g.chain WHERE c.base IS NOT NULL
    )
    SELECT chain, until FROM segment ORDER BY depth DESC
"""
_BODIES = """
    SELECT idx, ordinal, CAST(body AS BLOB) FROM message
    WHERE chain = ? AND idx >= ? AND idx < ? ORDER BY idx LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision as it is stored, with its system prompt's text."""

    id: int
    n: int
    sha256: str
    chain: int
    length: int
    prompt: int
    system: str
    tail: bytes


def get_revision(connection: apsw.Connection, row: SessionRow, prefix: str | None = None) -> RevisionRow:
    """Return the head, or the newest revision whose SHA-256 starts with `prefix`.

    Raises `NotFound` when there is none, `BadRequest` when the prefix fits several contents.
    """
    sql = """
        SELECT v.id, v.n, v.sha256, v.chain, v.length, v.prompt, p.text, CAST(v.tail AS BLOB)
        FROM revision v JOIN prompt p ON p.id = v.prompt WHERE v.sid = ?
    """
    if prefix is None:
        found = fetch_one(connection, f"{sql} AND v.id = ?", row.sid, row.head)
    else:
        sha256 = _find_sha256(connection, row, prefix)
        found = fetch_one(connection, f"{sql} AND v.sha256 = ? ORDER BY v.n DESC LIMIT 1", row.sid, sha256)
    if found is None:
        raise NotFound(f"session {row.id} has no revision {prefix or ''}".rstrip())
    return RevisionRow(*found)  # type: ignore[arg-type]


def _find_sha256(connection: apsw.Connection, row: SessionRow, prefix: str) -> str | None:
    sql = "SELECT DISTINCT sha256 FROM revision WHERE sid = ? AND sha256 >= ? AND sha256 < ? LIMIT 2"
    found = fetch_all(connection, sql, row.sid, prefix, prefix + "g")
    if len(found) > 1:
        raise BadRequest(f"the revision {prefix!r} is not unique", hint="Give more of its digits.")
    return cast(str, found[0][0]) if found else None


def read_bodies(
    connection: apsw.Connection, chain: int, length: int, start: int = 0, limit: int | None = None
) -> Iterator[list[tuple[int, int | None, bytes]]]:
    """Yield pages of (idx, ordinal, body) for idx in `start`..`length`, at most `limit` in all.

    No cursor is open while a page is out, so the caller may take its time. Raises `StoreUnavailable` where a message is
    missing, rather than to skip it.
    """
    left = limit if limit is not None else length
    for segment, until in read_segments(connection, chain, length):
        while start < until and left > 0:
            rows = fetch_all(connection, _BODIES, segment, start, until, min(limits.PAGE_ROWS, left))
            page = cast("list[tuple[int, int | None, bytes]]", rows)
            if not page or (page[0][0], page[-1][0]) != (start, start + len(page) - 1):
                raise StoreUnavailable(
                    f"message {start} or one after it is missing",
                    hint="The database was changed from outside; restore it from a backup.",
                )
            yield page
            start, left = page[-1][0] + 1, left - len(page)


def create_chain(connection: apsw.Connection, sid: int, base: int | None, base_length: int) -> int:
    """Insert a chain that begins with the first `base_length` messages of `base`; return its id.

    It hangs on the chain that really holds its last message, so that forks of forks stay shallow.
    """
    if base is not None:
        base = _owner(connection, base, base_length)
    row = fetch_one(
        connection,
        "INSERT INTO chain (sid, base, base_length) VALUES (?, ?, ?) RETURNING id",
        sid,
        base,
        base_length,
    )
    assert row is not None and isinstance(row[0], int)
    return row[0]


def append_messages(
    connection: apsw.Connection, chain: int, start: int, ordinal: int, messages: Sequence[NewMessage]
) -> int:
    """Insert messages from position `start`; return the ordinal after the last non-system one."""
    values: list[tuple[int, int, int | None, str, str]] = []
    for idx, message in enumerate(messages, start):
        counted = message.role != "system"
        values.append((chain, idx, ordinal if counted else None, message.role, message.body.decode()))
        ordinal += counted
    connection.executemany("INSERT INTO message (chain, idx, ordinal, role, body) VALUES (?, ?, ?, ?, ?)", values)
    return ordinal


def add_revision(
    connection: apsw.Connection,
    row: SessionRow,
    *,
    n: int,
    chain: int,
    length: int,
    header: Header,
    tail: bytes,
    sha256: str,
    reason: str,
    run: int | None,
    messages: int,
    at_ms: int,
) -> SessionRow:
    """Insert a revision; return the session row with it as head, for the caller to write."""
    values = (row.sid, n, sha256, chain, length, _prompt(connection, header.system), tail.decode(), reason, run, at_ms)
    inserted = fetch_one(
        connection,
        """
        INSERT INTO revision (sid, n, sha256, chain, length, prompt, tail, reason, run, at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
        """,
        *values,
    )
    assert inserted is not None and isinstance(inserted[0], int)
    return row._replace(
        head=inserted[0],
        title=header.title,
        created_at_ms=parse_time(header.created_at),
        updated_at_ms=parse_time(header.updated_at),
        frozen=int(header.frozen),
        messages=messages,
    )


def apply_checkpoint(
    connection: apsw.Connection, row: SessionRow, checkpoint: Checkpoint, run: int | None, at_ms: int
) -> SessionRow:
    """Append a checkpoint's messages and its revision; return the session row for the caller to write."""
    head = get_revision(connection, row)
    chain, length, ordinal = head.chain, head.length, row.messages
    if checkpoint.keep is not None:
        if not 0 <= checkpoint.keep <= head.length:
            raise ValueError(f"cannot keep {checkpoint.keep} of {head.length} messages")
        length, ordinal = checkpoint.keep, count_non_system(connection, chain, checkpoint.keep)
        chain = create_chain(connection, row.sid, chain, length)
    ordinal = append_messages(connection, chain, length, ordinal, checkpoint.new_messages)
    if ordinal != checkpoint.messages:
        raise ValueError(f"the holder counts {checkpoint.messages} messages, the store {ordinal}")
    return add_revision(
        connection,
        row,
        n=head.n + 1,
        chain=chain,
        length=length + len(checkpoint.new_messages),
        header=checkpoint.header,
        tail=checkpoint.tail,
        sha256=checkpoint.revision,
        reason=checkpoint.reason,
        run=run,
        messages=ordinal,
        at_ms=at_ms,
    )


def count_shared(connection: apsw.Connection, one: tuple[int, int], other: tuple[int, int]) -> int:
    """Return how many messages two (chain, length) begin with in common: the same rows, not merely equal ones."""
    if one[0] == other[0]:
        return min(one[1], other[1])
    shared = 0
    for (chain, until), (its_chain, its_until) in zip(
        read_segments(connection, *one), read_segments(connection, *other), strict=False
    ):
        if chain == its_chain:
            shared = max(shared, min(until, its_until))
        if chain != its_chain or until != its_until:
            break
    return shared


def read_segments(connection: apsw.Connection, chain: int, length: int) -> list[tuple[int, int]]:
    """Return what the first `length` messages of a chain consist of: (chain, until) from position 0 on, each of them
    holding the messages from where the one before ends.
    """
    return cast("list[tuple[int, int]]", fetch_all(connection, _SEGMENTS, chain, length))


def _owner(connection: apsw.Connection, chain: int, length: int) -> int:
    for segment, until in read_segments(connection, chain, length):
        if until == length:
            return segment
    return chain


def count_non_system(connection: apsw.Connection, chain: int, length: int) -> int:
    """Return how many of the first `length` messages of a chain are not system messages."""
    sql = """
        SELECT ordinal FROM message WHERE chain = ? AND idx < ? AND ordinal IS NOT NULL ORDER BY idx DESC LIMIT 1
    """
    for segment, until in reversed(read_segments(connection, chain, length)):
        row = fetch_one(connection, sql, segment, until)
        if row is not None:
            return cast(int, row[0]) + 1
    return 0


def _prompt(connection: apsw.Connection, text: str) -> int:
    text = canonical.clean(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    row = fetch_one(connection, "SELECT id FROM prompt WHERE sha256 = ?", digest)
    if row is None:
        row = fetch_one(connection, "INSERT INTO prompt (sha256, text) VALUES (?, ?) RETURNING id", digest, text)
    assert row is not None and isinstance(row[0], int)
    return row[0]
