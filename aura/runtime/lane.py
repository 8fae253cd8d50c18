"""The main lane of a run: the engine's way to the recorder, the feeds and the people (implements
`aura.engine.lane.Lane`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from aura import events as e
from aura import limits
from aura.clock import Clock
from aura.engine.history import History
from aura.engine.lane import Answer, InputRequired, PersistFailed, Question
from aura.engine.scope import Alarm, Cancelled, Scope
from aura.errors import AuraError, LeaseLost, NotPending
from aura.events import Event, Source, Transient
from aura.ids import new_input_id
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import Run, RunError
from aura.runtime.feeds import Feeds
from aura.runtime.inbox import Inbox
from aura.runtime.recorder import Recorder
from aura.runtime.saver import Saver
from aura.store.protocol import Lease, Store


@dataclass(slots=True)
class LiveState:
    """What readers are shown of a session at work. The run thread replaces the values, anybody reads them."""

    status: e.StatusChanged
    meta: JsonObject


@dataclass(frozen=True, slots=True)
class Session:
    """The parts of a held session that its runs share."""

    id: str
    store: Store
    lease: Lease
    saver: Saver
    recorder: Recorder
    feeds: Feeds
    inbox: Inbox
    clock: Clock
    alarm: Alarm
    live: LiveState


class MainLane:
    """One run at work on its session. Any thread, except where `Lane` says otherwise."""

    source: Source | None = None

    def __init__(
        self, session: Session, run: Run, scope: Scope, *, full: bool = False, opening: tuple[Event, ...] = ()
    ) -> None:
        """`full`: record also what the contract does not know. `opening` is recorded right behind the run's start."""
        self._session = session
        self._full = full
        self._opening = opening
        self._run = run
        self._deltas = _DeltaBuffer(session)
        self.run_id = run.id
        self.scope = scope
        self.clock = session.clock

    def emit(self, event: Event, *, durable: bool = False) -> None:
        """Record `event` after all earlier ones. With `durable` it is committed when this returns.

        Raises `PersistFailed` when a durable event cannot be stored, `Cancelled` when the session is lost.
        """
        self._deltas.flush()
        if event.full and not self._full:
            return
        if isinstance(event, e.StatusChanged) and not self._is_news(event):
            return
        if isinstance(event, e.RunStarted):
            self._session.recorder.record(event, self._run.id, *self._opening)
            return
        if not durable:
            self._session.recorder.record(event, self._run.id)
            return
        self._commit((event,))

    def transient(self, item: Transient) -> None:
        """Show a live event to whoever watches; deltas are joined to one per `limits.DELTA_INTERVAL_MS`."""
        if isinstance(item, e.Delta):
            self._deltas.add(item)
            return
        self._deltas.flush()
        show(self._session, item)

    def checkpoint(self, history: History) -> None:
        """Save the conversation and all events so far. Raises `PersistFailed`, `Cancelled` when the lease is lost."""
        session = self._session
        assert history is session.saver.history, "the main lane saves the session's own conversation"
        try:
            session.recorder.save("checkpoint", self._run.id)
        except LeaseLost as error:
            self.scope.cancel("lease_lost")
            raise Cancelled("lease_lost") from error
        except AuraError as error:
            failed = persist_error(error)
            session.recorder.record(e.SessionPersistFailed(error=failed, reason="checkpoint"), self._run.id)
            raise PersistFailed(failed) from error

    def ask(self, question: Question) -> Answer:
        """Return the answer. Raises `InputRequired` under `on_input: block`, `Cancelled`, `PersistFailed`."""
        if self._run.on_input == "block":
            raise InputRequired(question.question)
        session = self._session
        input_id = new_input_id(session.clock.now_ms())
        with session.inbox.expect(self._run.id, input_id) as pending:
            self.emit(_input_required(input_id, question), durable=True)
            try:
                return Answer(self.scope.wait(pending))
            except Cancelled:
                self._dismiss(input_id, question)
                raise

    def process_started(self, call_id: str, pid: int, start_time: str) -> None:
        """Note the process group of a call, so that recovery can end it after a crash."""
        self._session.store.note_process(self._session.lease, self._run.id, call_id, pid, start_time)

    def _is_news(self, status: e.StatusChanged) -> bool:
        live = self._session.live
        live.meta = dict(self._session.saver.history.meta)
        if status == live.status:
            return False
        live.status = status
        return True

    def _dismiss(self, input_id: str, question: Question) -> None:
        answer: JsonValue = "deny" if question.kind == "confirm" else None
        session = self._session
        try:
            session.store.answer(input_id, answer, answered_by="cancel", at_ms=session.clock.now_ms())
        except NotPending:  # an answer came in the same instant: it stands in the journal, the cancel still wins
            return

    def _commit(self, events: tuple[Event, ...]) -> None:
        try:
            self._session.recorder.commit(events, self._run.id)
        except LeaseLost as error:
            self.scope.cancel("lease_lost")
            raise Cancelled("lease_lost") from error
        except AuraError as error:
            raise PersistFailed(persist_error(error)) from error


class _DeltaBuffer:
    """Shows the first delta after a silence at once, and joins what follows until the interval is over. Dropping one
    would cost nothing but liveliness.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._joined: e.Delta | None = None
        self._next_ms = 0

    def add(self, delta: e.Delta) -> None:
        now_ms = self._session.clock.monotonic_ms()
        with self._lock:
            last = self._joined
            if last is not None and (last.message_id, last.thinking) == (delta.message_id, delta.thinking):
                self._joined = e.Delta(last.message_id, last.offset, last.text + delta.text, last.thinking)
                return
            wait_ms = max(self._next_ms - now_ms, 0) if last is None else limits.DELTA_INTERVAL_MS
            if wait_ms:
                ready, self._joined = last, delta
            else:
                ready, self._next_ms = delta, now_ms + limits.DELTA_INTERVAL_MS
        if ready is not None:
            show(self._session, ready)
        if wait_ms:
            self._session.alarm.call_later(wait_ms, self.flush)

    def flush(self) -> None:
        with self._lock:
            joined, self._joined = self._joined, None
            if joined is not None:
                self._next_ms = self._session.clock.monotonic_ms() + limits.DELTA_INTERVAL_MS
        if joined is not None:
            show(self._session, joined)


def show(session: Session, item: Transient) -> None:
    """Give a live item to the session's readers, if there are any."""
    feed = session.feeds.find(session.id)
    if feed is not None:
        feed.show(item)


def persist_error(error: AuraError) -> RunError:
    """Return the contract's `persist_failed` error for what the store said."""
    return RunError("persist_failed", error.message, details={"reason": error.code})


def _input_required(input_id: str, question: Question) -> e.InputRequired:
    return e.InputRequired(
        input_id=input_id,
        input_kind=question.kind,
        question=question.question,
        options=question.options,
        multi_select=question.multi_select,
        tool=question.tool,
        detail=question.detail,
        pattern=question.pattern,
    )
