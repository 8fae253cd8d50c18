"""What people ask of a store as a whole, as values: is it sound, copy it, make it smaller, what is in it.

The verbs are in `aura.store.caretaker`. Nothing here opens a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Progress = Callable[[str, int, int], None]  # (what is being done, how much of it is done, how much there is)


def no_progress(what: str, done: int, total: int) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in the store that is not as it must be. `code` is one of those that docs/store.md lists.

    `repairable`: `check --repair` puts it right without losing anything.
    """

    code: str
    message: str
    table: str | None = None
    session_id: str | None = None
    repairable: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a check that was left out, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The files of the store as they were found. `ballast_bytes` 0: it is given up, or was not needed yet."""

    database_bytes: int
    wal_bytes: int
    free_bytes: int
    ballast_bytes: int
    schema: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found. `finding_count` may be more than there are `findings`, which are bounded.

    `checked` counts what was looked at, by table. `repaired` says what was put right; such findings are no longer in
    `findings`.
    """

    findings: tuple[Finding, ...]
    finding_count: int
    checked: Mapping[str, int]
    skipped: tuple[Skipped, ...]
    facts: Facts
    repaired: tuple[str, ...] = field(default=())

    @property
    def clean(self) -> bool:
        """True when nothing was found that is still there."""
        return self.finding_count == 0


What = Literal["sessions", "revisions", "journal"]


@dataclass(frozen=True, slots=True)
class PruneRule:
    """What is to go. `before_ms`: only what is older than that moment (Unix ms); None for any age.

    The `keep` most recently updated sessions are left alone. For revisions: the `keep_revisions` newest ones of each
    session stay, at least the head.
    """

    what: What
    before_ms: int | None = None
    keep: int = 0
    keep_revisions: int = 1


@dataclass(frozen=True, slots=True)
class Pruned:
    """What goes, or went, of one session: rows by table, and the bytes of their texts."""

    session_id: str
    rows: Mapping[str, int]
    text_bytes: int


@dataclass(frozen=True, slots=True)
class Spared:
    """A session that the rule asked for and that stays, and why."""

    session_id: str
    why: str


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a prune did, or would do. `longest_ms`: how long its longest transaction kept other writers waiting."""

    pruned: tuple[Pruned, ...]
    spared: tuple[Spared, ...]
    prompts: int
    longest_ms: float
    dry_run: bool

    @property
    def text_bytes(self) -> int:
        """The bytes of all texts that went."""
        return sum(item.text_bytes for item in self.pruned)

    @property
    def rows(self) -> int:
        """How many rows went."""
        return self.prompts + sum(sum(item.rows.values()) for item in self.pruned)


@dataclass(frozen=True, slots=True)
class TableSize:
    """What one table takes, with its indexes. `used_bytes` is what its rows take of their pages."""

    name: str
    rows: int
    table_bytes: int
    index_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Day:
    """What was added on one day, in UTC. `event_bytes` is the text of its events."""

    date: str
    events: int
    event_bytes: int
    revisions: int
    runs: int


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What is in a store. `large_texts` counts events and messages over `limits.INLINE_MAX_BYTES`."""

    facts: Facts
    tables: tuple[TableSize, ...]
    exact: bool
    sessions: int
    frozen: int
    held: int
    large_texts: int
    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What a vacuum did to the size of the database file."""

    before_bytes: int
    after_bytes: int
