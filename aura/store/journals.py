"""The values of the verbs that move and check whole journals: export, import, verify, statistics. They decide nothing.

A chain hash is SHA-256 over the hash before it and an event's line (DESIGN.md section 4, Evidence).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, Protocol

GENESIS_HASH = hashlib.sha256(b"aura journal 1").digest()  # the hash before the first event of every journal

Fault = Literal["missing", "changed", "disordered", "head"]


@dataclass(frozen=True, slots=True)
class Link:
    """A place in a chain: the hash of the event with this seq. Seq 0 has the hash that all journals start from."""

    seq: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class JournalState:
    """A journal at one moment. `start` is where its chain begins; `covered` is False when events were pruned and
    nobody kept the hash before the first one left: then that event's own hash is taken on trust.
    """

    session_id: str
    first_seq: int
    last_seq: int
    head: bytes
    start: Link
    covered: bool = True


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Events that follow one another, as served: `lines` holds `count` of them, joined, up to `last_seq`.

    One per line, each with its line end, unless the verb says otherwise.
    """

    count: int
    last_seq: int
    lines: bytes


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a reader wants; the default is all of them."""

    types: tuple[str, ...] = ()
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was written. `seq` is where it was noticed."""

    seq: int
    fault: Fault
    message: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check of a whole chain found. `problems` is empty when the journal is as it was written.

    `size_bytes` is the size of the exported journal, `sha256` its hash. `expected` is the noted link, found again;
    None when none was given or it is not there.
    """

    state: JournalState
    events: int
    size_bytes: int
    sha256: str
    problems: tuple[Problem, ...] = ()
    expected: Link | None = None


@dataclass(frozen=True, slots=True)
class TypeStats:
    """What a journal holds of one type. Bytes are those of the exported lines."""

    type: str
    events: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RunStats:
    """What a journal holds of one run; `run_id` is None for the events outside of runs."""

    run_id: str | None
    state: str | None
    outcome: str | None
    events: int
    size_bytes: int
    first_seq: int
    last_seq: int
    first_at_ms: int
    last_at_ms: int


@dataclass(frozen=True, slots=True)
class JournalStats:
    """A journal in numbers. Times are None when it is empty."""

    session_id: str
    events: int
    size_bytes: int
    first_seq: int
    last_seq: int
    first_at_ms: int | None
    last_at_ms: int | None
    types: tuple[TypeStats, ...]
    runs: tuple[RunStats, ...]


@dataclass(frozen=True, slots=True)
class ImportedJournal:
    """What an import did. The journal begins with seq 1, so `last_seq` is also the number of its events."""

    session_id: str
    last_seq: int


class ChangePoll(Protocol):
    """Tells cheaply whether anybody has committed since it was asked last. One thread."""

    def changed(self) -> bool:
        """Return True if there was a commit, by any process, since the last call or since it was made."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...
