"""What people ask of a store's past, as values: saved states, runs, a morning's figures, hits of a search.

The verbs are those of `aura.store.sqlite.history.SqliteHistory` and `aura.store.sqlite.search.SqliteSearch`. It stands
beside `aura.store.protocol`, which is what a live session needs; nothing here knows a lease or a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from aura.conversation import Header, Role, Summary
from aura.runs import Outcome, Run, State


@dataclass(frozen=True, slots=True)
class Save:
    """One revision of a session. `messages` counts its non-system ones, `stored` all of them.

    `shared`: how many of the stored ones it has in common with the revision before it, which had `before` of them.
    """

    n: int
    sha256: str
    at_ms: int
    reason: str
    run_id: str | None
    messages: int
    stored: int
    shared: int
    before: int
    header: Header


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message where it stands. `ordinal` is its index among non-system messages, None for a system message."""

    idx: int
    ordinal: int | None
    body: bytes


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages of a conversation: of these roles, after that ordinal, only the last so many of them."""

    roles: frozenset[Role]
    after: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs, the default being all. `states` and `outcomes` are alternatives to one another.

    `since_ms`: only runs that were at work then or later: that settled since, or have not settled.
    """

    session_id: str | None = None
    states: frozenset[State] = frozenset()
    outcomes: frozenset[Outcome] = frozenset()
    since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run and the prompt or command that it was asked."""

    run: Run
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How many runs are in a state with an outcome."""

    state: State
    outcome: Outcome | None
    runs: int


@dataclass(frozen=True, slots=True)
class Failure:
    """How often runs, or their saves, failed with a code; `message` is that of the latest one."""

    code: str
    runs: int
    latest_at_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class RunNote:
    """A run that somebody may want to look at. `held`: a process holds its session now."""

    run_id: str
    session_id: str
    state: State
    accepted_at_ms: int
    text: str
    held: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question or approval that nobody has answered."""

    input_id: str
    session_id: str
    run_id: str
    kind: str
    question: str
    detail: str | None
    created_at_ms: int
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What model calls took. `cost_usd` is None when no call had a price."""

    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """How the calls of one tool went; times are of those that ended."""

    name: str
    calls: int
    errors: int
    mean_ms: int | None
    longest_ms: int | None


@dataclass(frozen=True, slots=True)
class Size:
    """How much the store holds. The bytes are those of the database file and of its write-ahead log."""

    sessions: int
    runs: int
    events: int
    messages: int
    database_bytes: int
    wal_bytes: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a person asks every morning. All but `live`, `waiting` and `size` are of the time since `since_ms`."""

    since_ms: int
    ended: tuple[Ended, ...]
    failures: tuple[Failure, ...]
    lost: tuple[RunNote, ...]
    live: tuple[RunNote, ...]
    waiting: tuple[Waiting, ...]
    models: tuple[ModelUse, ...]
    tools: tuple[ToolUse, ...]
    size: Size


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search for, as an FTS5 expression, and where."""

    expression: str
    session_id: str | None = None
    roles: frozenset[Role] = frozenset()
    since_ms: int | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found: once, with the sessions whose conversation has it now, its own one first.

    Forks share messages, and a message has the same place in all of them. `rank` is bm25's, less is better. In
    `snippet` a found word stands between U+0002 and U+0003.
    """

    session_ids: tuple[str, ...]
    message: StoredMessage
    rank: float
    snippet: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """How far the search index is: messages in it, and messages that came after."""

    indexed: int
    missing: int


class History(Protocol):
    """Reads of the past. See `aura.store.sqlite.history.SqliteHistory` for errors; one thread at a time."""

    def get_summary(self, session_id: str) -> Summary: ...
    def list_saves(self, session_id: str, limit: int | None) -> list[Save]: ...
    def get_save(self, session_id: str, prefix: str | None) -> Save: ...
    def find_save_before(self, session_id: str, n: int) -> Save | None: ...
    def count_shared(self, session_id: str, n: int, other_n: int) -> int: ...
    def read_messages(self, session_id: str, n: int, start: int) -> Iterator[StoredMessage]: ...
    def select_messages(self, session_id: str, n: int, where: MessageFilter) -> Iterator[StoredMessage]: ...
    def list_runs(self, where: RunQuery, limit: int | None) -> list[RunEntry]: ...
    def get_stats(self, since_ms: int) -> Stats: ...
    def close(self) -> None: ...


class Search(Protocol):
    """The full-text index. See `aura.store.sqlite.search.SqliteSearch` for errors; one thread at a time."""

    def check(self, where: SearchQuery) -> None: ...
    def find(self, where: SearchQuery) -> list[Hit]: ...
    def count_indexed(self) -> Indexed: ...
    def catch_up(self, progress: Callable[[int], object]) -> None: ...
    def clear(self) -> None: ...
    def close(self) -> None: ...


__all__ = [
    "Ended",
    "Failure",
    "History",
    "Hit",
    "Indexed",
    "MessageFilter",
    "ModelUse",
    "RunEntry",
    "RunNote",
    "RunQuery",
    "Save",
    "Search",
    "SearchQuery",
    "Size",
    "Stats",
    "StoredMessage",
    "ToolUse",
    "Waiting",
]
