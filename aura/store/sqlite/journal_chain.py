"""Checks a journal against its hash chain, and measures it while it reads it. It changes nothing.

What is covered is all that the automation profile serves of an event. `kind` and `ext` are not part of its line.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import cast

from aura import limits
from aura.store.journals import Fault, JournalState, Link, Problem, Verified
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.journal_lines import EVENTS, LINE, Reader, read_state

_LINKS = f"""
    SELECT e.seq, CAST({LINE} AS BLOB), e.chain_hash FROM {EVENTS}
    WHERE e.sid = (SELECT sid FROM session WHERE id = ?1) AND e.seq > ?2 AND e.seq <= ?3 ORDER BY e.seq
"""
_BEYOND = "SELECT seq FROM event WHERE sid = (SELECT sid FROM session WHERE id = ?) AND seq > ? LIMIT 1"


@dataclass(slots=True)
class _Walk:
    """A check under way: where it is, and what it found."""

    state: JournalState
    link: Link
    expected_sha256: bytes | None
    expected_seq: int | None
    sha: hashlib._Hash = field(default_factory=hashlib.sha256)
    events: int = 0
    size_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)
    expected: Link | None = None

    def note(self, seq: int, fault: Fault, message: str) -> None:
        if len(self.problems) < limits.JOURNAL_PROBLEMS_MAX_COUNT:
            self.problems.append(Problem(seq, fault, message))

    def take(self, rows: list[tuple[int, bytes, bytes]]) -> None:
        """Go over events that follow. A broken link is told once: from there on the stored hash counts."""
        last_seq, last = self.link.seq, self.link.sha256
        start = self.state.start
        expected = self.expected_sha256
        for seq, line, stored in rows:
            if seq > last_seq + 1:
                self.note(last_seq + 1, "missing", _missing(last_seq + 1, seq - 1))
            elif seq <= last_seq:
                self.note(seq, "disordered", f"there are two events {seq}")
            if seq == start.seq:  # of the first event left, when nobody kept the hash before it
                found = stored
            else:
                found = hashlib.sha256(last + line).digest()
            if found != stored:
                self.note(seq, "changed", f"event {seq} or the hash before it is not what was written")
            if found == expected and self.expected_seq in (None, seq):
                self.expected = Link(seq, found)
            last_seq, last = seq, stored
        text = b"\n".join([*(line for _, line, _ in rows), b""])
        self.sha.update(text)
        self.size_bytes += len(text)
        self.events += len(rows)
        self.link = Link(last_seq, last)


def verify(reader: Reader, session_id: str, expected: bytes | None = None, expected_seq: int | None = None) -> Verified:
    """Recompute every hash of a session's journal as it is now; see `Verified`.

    `expected` is a hash that was noted earlier: it must be that of event `expected_seq`, or of any event. Events that
    are appended meanwhile are not looked at. Raises `NotFound`.
    """
    for _ in range(limits.JOURNAL_VERIFY_ATTEMPTS_COUNT):
        with reader() as connection:
            state = read_state(connection, session_id)
        found = _verify(reader, state, expected, expected_seq)
        if not found.problems:
            return found
        with reader() as connection:
            if read_state(connection, session_id).first_seq == state.first_seq:
                return found  # nothing was pruned while we looked: it really is so
    return found


def _verify(reader: Reader, state: JournalState, expected: bytes | None, expected_seq: int | None) -> Verified:
    walk = _Walk(state, Link(state.first_seq - 1, state.start.sha256), expected, expected_seq)
    if expected == state.start.sha256 and expected_seq in (None, state.start.seq):
        walk.expected = state.start
    page_rows = limits.JOURNAL_LINES_PAGE_ROWS
    after = state.first_seq - 1
    while after < state.last_seq:
        until = min(after + page_rows, state.last_seq)
        with reader() as connection:
            rows = fetch_all(connection, _LINKS, state.session_id, after, until)
        walk.take(cast("list[tuple[int, bytes, bytes]]", rows))
        after = until
    _check_end(walk, reader)
    if expected is not None and walk.expected is None:
        where = f"event {expected_seq}" if expected_seq is not None else "any event"
        walk.note(expected_seq or 0, "head", f"the expected hash is not that of {where}")
    return Verified(
        state=state,
        events=walk.events,
        size_bytes=walk.size_bytes,
        sha256=walk.sha.hexdigest(),
        problems=tuple(walk.problems),
        expected=walk.expected,
    )


def _check_end(walk: _Walk, reader: Reader) -> None:
    state = walk.state
    if walk.link.seq != state.last_seq:
        walk.note(walk.link.seq + 1, "missing", _missing(walk.link.seq + 1, state.last_seq))
    elif walk.link.sha256 != state.head:
        walk.note(state.last_seq, "head", f"the session's hash is not that of its last event, {state.last_seq}")
    with reader() as connection:
        session_moved = read_state(connection, state.session_id).last_seq != state.last_seq
        beyond = fetch_all(connection, _BEYOND, state.session_id, state.last_seq)
    if beyond and not session_moved:
        seq = cast(int, beyond[0][0])
        walk.note(seq, "disordered", f"event {seq} is beyond the session's last one, {state.last_seq}")


def _missing(first: int, last: int) -> str:
    return f"event {first} is missing" if first == last else f"events {first} to {last} are missing"
