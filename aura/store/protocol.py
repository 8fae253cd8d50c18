"""The verbs of a store, and the frozen values that go in and out (SHAPES.md section 1).

One verb is one transaction. No row id, cursor, connection or transaction escapes. Every verb is safe to repeat. Methods
may be called from any native thread, never on a hub: they may block up to `limits.COMMIT_WAIT_MS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from aura.conversation import Conversation, Header, Parent, Role, Summary
from aura.events import Stamped
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import NewRun, Run

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aura.store.journals import (
        ChangePoll,
        EventFilter,
        ImportedJournal,
        JournalPage,
        JournalState,
        JournalStats,
        Verified,
    )
    from aura.store.replay import Replay
    from aura.wire.journal_text import JournalLine

T = TypeVar("T")

RevisionReason = Literal["create", "import", "fork", "freeze", "start", "checkpoint", "run", "command", "shutdown"]
InputState = Literal["pending", "answered", "dismissed"]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a listing. `next_cursor` is opaque, None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a session. `url` is where it serves, None when it does not."""

    pid: int
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `frozen_now`: this call made the stored session frozen."""

    session: Summary
    created: bool
    frozen_now: bool


@dataclass(frozen=True, slots=True)
class Forked:
    """What a fork did. `created` is False when the same child was there already."""

    session: Summary
    parent: Summary
    created: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a freeze did. `changed` is False when the session was frozen already."""

    session: Summary
    changed: bool


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run that exists. `created` is False when its request id had made it before."""

    run: Run
    created: bool


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append: its canonical bytes and its role."""

    body: bytes
    role: Role


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A save of the conversation, hashed by its holder. `keep`: start a new chain after that many messages."""

    new_messages: tuple[NewMessage, ...]
    header: Header
    tail: bytes
    revision: str
    messages: int
    reason: RevisionReason
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What a holder commits at once. `id` makes a repeat after a lost answer a no-op. `essential`: it may use the
    ballast."""

    id: str
    events: tuple[Stamped, ...]
    checkpoint: Checkpoint | None = None
    essential: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a batch's events are. `run` is the last record that the batch changed, None when it changed none."""

    first_seq: int
    last_seq: int
    run: Run | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """A stored event. `line` is exactly what is served and exported, without a line end; `ext` what only the gateway
    and SQL need."""

    seq: int
    run_id: str | None
    type: str
    kind: str
    line: bytes
    ext: str | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """One saved state of a session. `messages` counts all stored messages of it, `n` from 1."""

    n: int
    sha256: str
    at_ms: int
    reason: str
    run_id: str | None
    messages: int


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """What a live session resumes from: the document, its revision and the seq of the save that reported it."""

    conversation: Conversation
    revision: str
    persisted_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Input:
    """A question or approval. `question` is the data of its `input.required`; `answer` counts when it is answered."""

    id: str
    session_id: str
    run_id: str
    kind: Literal["ask", "confirm"]
    state: InputState
    question: JsonObject
    answer: JsonValue
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list; the default is all of them."""

    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; the default is all of them."""

    session_id: str | None = None
    live: bool | None = None


class Lease(Protocol):
    """The right to write one session. Held by one process at a time, for as long as its lock is."""

    @property
    def session_id(self) -> str:
        """The session it is for."""
        ...


class Subscription(Protocol):
    """A listener that can be taken back."""

    def close(self) -> None:
        """Stop being called. A call that is under way may still finish."""
        ...


Listener = Callable[["frozenset[str] | None"], None]


class Store(Protocol):
    """All verbs. See each method of `aura.store.sqlite.store.SqliteStore` for its errors."""

    def create_session(self, header: Header, profile: str = "automation") -> Summary: ...
    def find_session(self, session_id: str) -> Summary | None: ...
    def get_session(self, session_id: str) -> Summary: ...
    def list_sessions(
        self, where: SessionFilter, cursor: str | None = None, limit: int | None = None
    ) -> Page[Summary]: ...
    def find_session_ids(self, prefix: str) -> list[str]: ...
    def import_session(self, conversation: Conversation, *, freeze: bool, at_ms: int) -> Imported: ...
    def fork(
        self,
        parent_id: str,
        child_id: str,
        *,
        title: str | None = None,
        expect_revision: str | None = None,
        revision: str | None = None,
        at_ms: int,
    ) -> Forked: ...
    def freeze(self, session_id: str, *, expect_revision: str | None = None, at_ms: int) -> Frozen: ...

    def acquire(self, session_id: str, holder: Holder) -> Lease: ...
    def release(self, lease: Lease) -> None: ...
    def find_holder(self, session_id: str) -> Holder | None: ...

    def accept(self, lease: Lease, new: NewRun) -> Accepted: ...
    def commit(self, lease: Lease, batch: Batch) -> Future[Receipt]: ...
    def note_process(self, lease: Lease, run_id: str, call_id: str, pid: int, start_time: str) -> None: ...

    def request_cancel(self, run_id: str, *, reason: str, message: str | None, at_ms: int) -> Run: ...
    def answer(self, input_id: str, answer: JsonValue, *, answered_by: str, at_ms: int) -> Input: ...

    def get_run(self, run_id: str) -> Run: ...
    def find_request(self, session_id: str, request_id: str) -> Run | None: ...
    def list_runs(self, where: RunFilter, cursor: str | None = None, limit: int | None = None) -> Page[Run]: ...
    def list_inputs(self, run_id: str) -> list[Input]: ...
    def get_input(self, input_id: str) -> Input: ...
    def read_last_seq(self, session_id: str) -> int: ...
    def read_persisted_seq(self, session_id: str) -> int: ...
    def read_events(self, session_id: str, after: int, limit: int) -> list[EventRow]: ...
    def read_messages(
        self, session_id: str, after: int, limit: int | None, revision: str | None = None
    ) -> tuple[list[tuple[int, bytes]], int]: ...
    def list_processes(self, run_id: str) -> list[tuple[int, str]]: ...
    def load_conversation(self, session_id: str, revision: str | None = None) -> StoredConversation: ...
    def export(self, session_id: str, revision: str | None = None) -> tuple[Summary, Iterator[bytes]]: ...
    def list_revisions(self, session_id: str) -> list[Revision]: ...
    def read_journal(self, session_id: str) -> JournalState: ...
    def iterate_journal(self, state: JournalState, after: int = 0) -> Iterator[JournalPage]: ...
    def read_journal_page(self, session_id: str, after: int, limit: int) -> JournalPage: ...
    def read_matching(self, session_id: str, after: int, until: int, where: EventFilter, limit: int) -> JournalPage: ...
    def find_start_of_last(self, session_id: str, until: int, where: EventFilter, count: int) -> int: ...
    def poll_changes(self) -> ChangePoll: ...
    def verify_journal(
        self, session_id: str, expected: bytes | None = None, expected_seq: int | None = None
    ) -> Verified: ...
    def read_journal_stats(self, session_id: str) -> JournalStats: ...
    def import_journal(self, replay: Replay, lines: Iterator[JournalLine]) -> ImportedJournal: ...
    def watch(self, listener: Listener, *, poll_ms: int | None = None, control: bool = False) -> Subscription: ...
    def close(self) -> None: ...


__all__ = [
    "Accepted",
    "Batch",
    "Checkpoint",
    "EventRow",
    "Forked",
    "Frozen",
    "Holder",
    "Imported",
    "Input",
    "InputState",
    "Lease",
    "Listener",
    "NewMessage",
    "Page",
    "Parent",
    "Receipt",
    "Revision",
    "RevisionReason",
    "RunFilter",
    "SessionFilter",
    "Store",
    "StoredConversation",
    "Subscription",
]
