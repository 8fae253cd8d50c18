"""Hashes every revision again from the stored messages, each message once.

Chains form a forest: a chain begins with the first messages of its base. So each is walked from where it leaves its
base, with the hash state that its base had there, and every revision on the way costs its tail only. Messages and
revisions never change, so no snapshot is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from aura.clock import parse_time
from aura.store.sqlite.chains import count_non_system
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.inspection import Inspection, PageSize
from aura.wire import document

_PROMPTS_KEPT_COUNT = 32  # encoded system prompts: a session changes between few of them
_CHAINS = "SELECT id, base, base_length FROM chain WHERE id > ? ORDER BY id LIMIT 1000"
_LENGTHS = "SELECT id, chain, length FROM revision WHERE id > ? ORDER BY id LIMIT 1000"
_REVISIONS = """
    SELECT v.id, s.id, v.n, v.sha256, v.length, v.prompt, CAST(v.tail AS BLOB)
    FROM revision v LEFT JOIN session s USING (sid) WHERE v.id IN (SELECT value FROM json_each(?))
"""
_MESSAGES = """
    SELECT idx, ordinal, CAST(body AS BLOB),
           CASE WHEN json_valid(body) THEN role IS json_extract(body, '$.Role') ELSE 0 END
           AND (role = 'system') = (ordinal IS NULL)
    FROM message WHERE chain = ? AND idx >= ? AND idx < ? ORDER BY idx LIMIT ?
"""
_HEADS = """
    SELECT s.id, s.title, s.created_at_ms, s.updated_at_ms, s.frozen, s.parent_id, s.parent_revision, s.messages,
           CAST(v.tail AS BLOB), p.text, v.n, v.chain, v.length
    FROM session s JOIN revision v ON v.id = s.head JOIN prompt p ON p.id = v.prompt WHERE s.sid > ? AND s.sid <= ?
"""


@dataclass(slots=True)
class _State:
    """A place in a chain: the hash over all messages before it, and how many of them are not system messages."""

    hasher: document.Hasher
    ordinal: int = 0

    def copy(self) -> _State:
        return _State(self.hasher.copy(), self.ordinal)


@dataclass(slots=True)
class _Chain:
    id: int
    start: int
    base: int | None
    revisions: dict[int, list[int]] = field(default_factory=dict)  # by length
    children: dict[int, list[int]] = field(default_factory=dict)  # by the length that they begin with


def check(inspection: Inspection) -> None:
    """Check prompts and session rows, and hash every revision unless the check is a quick one."""
    with inspection.guarded("table prompt", table="prompt"):
        _check_prompts(inspection)
    with inspection.guarded("table session", table="session"):
        _check_heads(inspection)
    if inspection.quick:
        inspection.skip("the hashes of revisions", "--quick")
        return
    with inspection.guarded("table chain", table="chain"):
        _Walk(inspection).run()


def _check_prompts(inspection: Inspection) -> None:
    after = 0
    while rows := fetch_all(
        inspection.connection,
        "SELECT id, sha256, CAST(text AS BLOB) FROM prompt WHERE id > ? ORDER BY id LIMIT 50",
        after,
    ):
        for id, sha256, text in cast("list[tuple[int, str, bytes]]", rows):
            after = id
            inspection.checked["prompts"] += 1
            if hashlib.sha256(text).hexdigest() != sha256:
                inspection.report("prompt_hash", f"system prompt {id} no longer hashes to {sha256}", table="prompt")


def _check_heads(inspection: Inspection) -> None:
    first, last = 0, cast(int, fetch_all(inspection.connection, "SELECT coalesce(max(sid), 0) FROM session")[0][0])
    while first < last:
        for row in fetch_all(inspection.connection, _HEADS, first, first + 100):
            inspection.checked["sessions"] += 1
            with_head = cast(
                "tuple[str, str, int, int, int, str | None, str | None, int, bytes, str, int, int, int]", row
            )
            _check_head(inspection, *with_head)
        first += 100


def _check_head(
    inspection: Inspection,
    session_id: str,
    title: str,
    created_at_ms: int,
    updated_at_ms: int,
    frozen: int,
    parent_id: str | None,
    parent_revision: str | None,
    messages: int,
    tail: bytes,
    system: str,
    n: int,
    chain: int,
    length: int,
) -> None:
    try:
        header = document.decode_tail(tail, system)
        times = (parse_time(header.created_at), parse_time(header.updated_at))
    except (ValueError, AssertionError) as error:
        message = f"the tail of revision number {n} is not one: {error}"
        inspection.report("revision_hash", message, table="revision", session_id=session_id)
        return
    parent = (header.parent.id, header.parent.revision) if header.parent else (None, None)
    count = count_non_system(inspection.connection, chain, length)
    shown = (session_id, title, created_at_ms, updated_at_ms, bool(frozen), (parent_id, parent_revision), messages)
    if shown != (header.id, header.title, *times, header.frozen, parent, count):
        message = "its row says something else than its head"
        inspection.report("session_row", message, table="session", session_id=session_id)


class _Walk:
    """One walk through the forest of chains."""

    def __init__(self, inspection: Inspection) -> None:
        self._inspection = inspection
        self._chains: dict[int, _Chain] = {}
        self._prompts: dict[int, bytes] = {}
        self._done = 0

    def run(self) -> None:
        """Visit all chains, bases first."""
        self._read_forest()
        stack = [(chain.id, _State(document.Hasher())) for chain in self._chains.values() if chain.base is None]
        while stack:
            id, state = stack.pop()
            self._inspection.progress("revisions", self._done, len(self._chains))
            stack.extend(self._visit(self._chains[id], state))
            self._done += 1

    def _read_forest(self) -> None:
        for id, base, base_length in self._read_rows(_CHAINS):
            if base is not None and base not in self._chains:
                self._inspection.report("chain", f"the base of chain {id} is not there or not older", table="chain")
                continue
            self._chains[id] = _Chain(id, base_length, base)
            if base is not None:
                self._owner(base, base_length).children.setdefault(base_length, []).append(id)
        for id, chain, length in self._read_rows(_LENGTHS):
            if chain is not None and chain in self._chains:
                self._owner(chain, length).revisions.setdefault(length, []).append(id)

    def _read_rows(self, sql: str) -> Iterator[tuple[int, int | None, int]]:
        after = 0
        while rows := cast("list[tuple[int, int | None, int]]", fetch_all(self._inspection.connection, sql, after)):
            yield from rows
            after = rows[-1][0]

    def _owner(self, id: int, length: int) -> _Chain:
        """Return the chain that holds the place after `length` messages of the chain `id`."""
        chain = self._chains[id]
        while chain.base is not None and length < chain.start:
            chain = self._chains[chain.base]
        return chain

    def _visit(self, chain: _Chain, state: _State) -> Iterator[tuple[int, _State]]:
        at = chain.start
        for stop in sorted({*chain.revisions, *chain.children}):
            if not self._advance(chain, state, at, stop):
                lost = sum(len(ids) for length, ids in chain.revisions.items() if length >= stop)
                message = f"chain {chain.id} lacks messages before {stop}: {lost} revisions cannot be hashed"
                self._inspection.report("message_missing", message, table="message", session_id=self._session(chain))
                return
            at = stop
            self._check_revisions(chain.revisions.get(stop, ()), state)
            for child in chain.children.get(stop, ()):
                yield child, state.copy()

    def _advance(self, chain: _Chain, state: _State, start: int, stop: int) -> bool:
        size = PageSize()
        while start < stop:
            rows = cast(
                "list[tuple[int, int | None, bytes, int]]",
                fetch_all(self._inspection.connection, _MESSAGES, chain.id, start, stop, size.rows),
            )
            if not rows or (rows[0][0], rows[-1][0]) != (start, start + len(rows) - 1):
                return False
            size.learn(len(rows), sum(len(row[2]) for row in rows))
            for idx, ordinal, _, role_matches in rows:
                self._check_message(chain, state, idx, ordinal, bool(role_matches))
            state.hasher.add(row[2] for row in rows)
            start += len(rows)
            self._inspection.checked["messages"] += len(rows)
        return True

    def _check_message(self, chain: _Chain, state: _State, idx: int, ordinal: int | None, role_matches: bool) -> None:
        if ordinal is not None:
            right, state.ordinal = ordinal == state.ordinal, state.ordinal + 1
            role_matches = role_matches and right
        if not role_matches:
            message = f"the role or the number of message {idx} of chain {chain.id} is not that of its body"
            self._inspection.report("message", message, table="message", session_id=self._session(chain))

    def _check_revisions(self, ids: list[int] | tuple[()], state: _State) -> None:
        for first in range(0, len(ids), 100):
            listed = str(list(ids[first : first + 100]))
            rows = fetch_all(self._inspection.connection, _REVISIONS, listed)
            for _, session_id, n, sha256, _, prompt, tail in cast(
                "list[tuple[int, str | None, int, str, int, int, bytes]]", rows
            ):
                self._inspection.checked["revisions"] += 1
                if state.hasher.digest(self._ending(prompt) + tail) != sha256:
                    message = f"revision number {n} no longer hashes to {sha256}"
                    self._inspection.report("revision_hash", message, table="revision", session_id=session_id)

    def _ending(self, prompt: int) -> bytes:
        if prompt not in self._prompts:
            rows = fetch_all(self._inspection.connection, "SELECT text FROM prompt WHERE id = ?", prompt)
            if len(self._prompts) >= _PROMPTS_KEPT_COUNT:
                self._prompts.clear()
            self._prompts[prompt] = document.encode_system(cast(str, rows[0][0]) if rows else "")
        return self._prompts[prompt]

    def _session(self, chain: _Chain) -> str | None:
        sql = "SELECT s.id FROM session s JOIN chain c USING (sid) WHERE c.id = ?"
        rows = fetch_all(self._inspection.connection, sql, chain.id)
        return cast(str, rows[0][0]) if rows else None
