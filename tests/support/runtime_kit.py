"""Parts for tests of the runtime without a disk or a clock: a store from a script, an alarm that rings on demand."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field

from aura.clock import format_time
from aura.conversation import Conversation, Header, Message
from aura.engine.scope import Poke
from aura.errors import AuraError, NotFound
from aura.events import Event
from aura.runs import NewRun, Run, accept
from aura.runtime.log import Log
from aura.runtime.saver import Saver
from aura.store.protocol import Batch, EventRow, Input, Lease, Listener, Receipt, StoredConversation
from aura.wire import document
from tests.support.lane import CountingClock

NOW_MS = 1_767_225_600_000
SESSION = "session-1"


@dataclass
class ManualAlarm:
    """Deadlines pass when the test says so."""

    waiting: list[tuple[int, Poke]] = field(default_factory=list)

    def call_later(self, delay_ms: int, callback: Poke) -> ManualAlarm:
        """Keep the deadline."""
        self.waiting.append((delay_ms, callback))
        return self

    def cancel(self) -> None:
        """Nothing is taken back in these tests."""

    def ring(self) -> int:
        """Let all present deadlines pass; return how many there were."""
        due, self.waiting = self.waiting, []
        for _, callback in due:
            callback()
        return len(due)


class StuckCommit(Future[Receipt]):
    """A commit that is not answered in time. `begun`: it cannot be taken back any more, so it may come true."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__()
        if begun:
            self.set_running_or_notify_cancel()

    def result(self, timeout: float | None = None) -> Receipt:
        """Time out at once."""
        raise FutureTimeout


@dataclass(frozen=True)
class FakeLease:
    """A lease that nobody checks."""

    session_id: str = SESSION


Answer = AuraError | Future[Receipt] | None


@dataclass
class FakeStore:
    """Keeps committed batches in memory. `answers` are what the next commits get: None is success."""

    answers: list[Answer] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)  # as committed, once each
    tried: list[Batch] = field(default_factory=list)  # as submitted
    runs: dict[str, Run] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    rows: list[EventRow] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    failure: AuraError | None = None  # of every read

    def commit(self, lease: Lease, batch: Batch) -> Future[Receipt]:
        """Store the batch, or answer as the script says."""
        self.tried.append(batch)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Future):
            return answer
        future: Future[Receipt] = Future()
        if isinstance(answer, AuraError):
            future.set_exception(answer)
            return future
        self.come_true(batch)
        future.set_result(Receipt(1, 1, None))
        return future

    def come_true(self, batch: Batch) -> None:
        """Store a batch, once."""
        if batch.id not in [old.id for old in self.batches]:
            self.batches.append(batch)

    @property
    def events(self) -> list[Event]:
        """All committed events in order."""
        return [item.event for batch in self.batches for item in batch.events]

    def get_run(self, run_id: str) -> Run:
        """Return the run that the test has put there."""
        self._check()
        if run_id not in self.runs:
            raise NotFound(f"there is no run {run_id}")
        return self.runs[run_id]

    def list_inputs(self, run_id: str) -> list[Input]:
        """Return the inputs that the test has put there."""
        self._check()
        return [item for item in self.inputs.values() if item.run_id == run_id]

    def read_last_seq(self, session_id: str) -> int:
        """Return the seq of the last row."""
        self._check()
        return self.rows[-1].seq if self.rows else 0

    def read_events(self, session_id: str, after: int, limit: int) -> list[EventRow]:
        """Return rows after `after`."""
        self._check()
        return [row for row in self.rows if row.seq > after][:limit]

    def watch(self, listener: Listener, *, poll_ms: int | None = None, control: bool = False) -> FakeSubscription:
        """Keep the listener until it is taken back."""
        self.listeners.append(listener)
        return FakeSubscription(lambda: self.listeners.remove(listener))

    def ring(self) -> None:
        """Tell all listeners that something was committed."""
        for listener in list(self.listeners):
            listener(None)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure


@dataclass(frozen=True)
class FakeSubscription:
    """Takes a listener back."""

    close: Callable[[], None]


def make_saver(messages: Sequence[Message] = ()) -> Saver:
    """Return a saver of a session with these stored messages."""
    at = format_time(NOW_MS)
    bodies = tuple(document.encode_message(message) for message in messages)
    header = Header(SESSION, "", at, at, system="Be careful.")
    hasher = document.Hasher()
    hasher.add(bodies)
    revision = hasher.revision(header.system, document.encode_tail(header))
    return Saver(StoredConversation(Conversation(header, bodies), revision, 0, 0))


def make_run(run_id: str = "run_1", on_input: str = "wait") -> Run:
    """Return a run that was just accepted."""
    new = NewRun(run_id, "r1", "prompt", "go", "wait" if on_input == "wait" else "block", "digest", NOW_MS)
    return accept(new, SESSION, 1)


def make_row(seq: int) -> EventRow:
    """Return a stored event."""
    return EventRow(seq, None, "notice", "notice", f'{{"seq":{seq}}}'.encode())


def make_log() -> tuple[Log, io.StringIO]:
    """Return a log and what is written to it."""
    stream = io.StringIO()
    return Log(CountingClock(), stream), stream
