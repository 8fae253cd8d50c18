"""One live session: it holds the lease, accepts runs, works on one at a time, and saves at the end.

Opening a host recovers what a crash left behind. Closing it settles the live run within its time. It serves no reader
and speaks no HTTP: that is the service's and the api's business. Native threads only.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aura import __version__, limits
from aura import events as e
from aura.clock import Clock
from aura.engine.lane import TurnOutcome
from aura.engine.scope import Alarm, Scope
from aura.errors import AuraError, Busy, CommitInDoubt, ShuttingDown
from aura.events import StopReason
from aura.jsontypes import JsonObject
from aura.runs import NewRun, Run, RunError
from aura.runtime.current import CurrentAgent
from aura.runtime.feeds import Feeds
from aura.runtime.inbox import Inbox
from aura.runtime.lane import LiveState, MainLane, Session
from aura.runtime.log import Log
from aura.runtime.recorder import Recorder
from aura.runtime.recovery import recover
from aura.runtime.saver import Saver
from aura.runtime.settle import settle
from aura.store.protocol import Accepted, Holder, Store


@dataclass(frozen=True, slots=True)
class HostParts:
    """What a host needs of its process."""

    store: Store
    feeds: Feeds
    inbox: Inbox
    clock: Clock
    alarm: Alarm
    log: Log


@dataclass(slots=True)
class _Live:
    run: Run
    scope: Scope
    thread: threading.Thread


class Host:
    """A held session at work. Make it with `open_host`."""

    def __init__(self, session: Session, current: CurrentAgent, log: Log, *, settle_ms: int) -> None:
        self._session = session
        self._current = current
        self._log = log
        self._settle_ms = settle_ms
        self._lock = threading.Lock()
        self._live: _Live | None = None
        self._doubtful: NewRun | None = None
        self._stopping = False
        self._gave_up = threading.Event()
        self._after_run: Callable[[], object] = lambda: None

    @property
    def session_id(self) -> str:
        """The session that is held."""
        return self._session.id

    @property
    def stopping(self) -> bool:
        """True once no new run is accepted."""
        return self._stopping

    @property
    def live(self) -> LiveState:
        """What readers are shown of the session at work."""
        return self._session.live

    def check_command(self, text: str) -> None:
        """Raise `BadRequest` unless `text` is a command that this session takes."""
        from aura.runtime.commands.dispatch import check_command

        check_command(text, self._current.commands)

    def accept(self, new: NewRun) -> Accepted:
        """Make a run and start working on it, or find the one that its request id made.

        Raises `ShuttingDown`, `Busy`, `RequestConflict` and store errors.
        """
        with self._lock:
            if self._stopping:
                return self._replay(new)
            self._start_doubtful()
            try:
                accepted = self._session.store.accept(self._session.lease, new)
            except CommitInDoubt:
                self._doubtful = new
                raise
            except Busy:
                self._start_doubtful()
                raise
            if accepted.created:
                self._start(accepted.run, new)
        return accepted

    def wait_idle(self, timeout_ms: int | None = None) -> bool:
        """Return True once no run is being worked on, False after `timeout_ms`."""
        live = self._live
        if live is not None:
            live.thread.join(None if timeout_ms is None else timeout_ms / 1000)
            return not live.thread.is_alive()
        return True

    def cancel(self) -> None:
        """Cancel the live run, as somebody at the keyboard asks for it; it is recorded like any other request."""
        live = self._live
        if live is not None:
            now_ms = self._session.clock.now_ms()
            self._session.store.request_cancel(live.run.id, reason="request", message=None, at_ms=now_ms)

    def call_after_runs(self, hook: Callable[[], object]) -> None:
        """Have `hook` called on the run's thread once a run has settled. It must not block. Before the first run."""
        self._after_run = hook

    def notify(self, notice: e.Notice) -> None:
        """Record something that a person should know of this server. Any thread; it does not wait."""
        self._session.recorder.record(notice, None)

    def stop_accepting(self) -> None:
        """Refuse new runs from now on."""
        with self._lock:
            self._stopping = True

    def close(self, reason: StopReason) -> bool:
        """Settle the live run, save, and let the session go; return False if the run or the save did not make it.

        New runs are refused from the first moment. Takes at most the settle time and a commit.
        """
        self.stop_accepting()
        saved = self._record_stopping(reason)
        live = self._live
        if live is not None:
            live.scope.cancel("shutdown")
        if not self.wait_idle(self._settle_ms):
            self._gave_up.set()
            return False
        saved = self._save_last() and saved
        self._session.store.release(self._session.lease)
        return saved

    def _replay(self, new: NewRun) -> Accepted:
        """Return the run that the request made before: a server on its way down still answers for what it accepted."""
        run = self._session.store.find_request(self._session.id, new.request_id)
        if run is None or run.request_digest != new.digest:
            raise ShuttingDown("the server is shutting down", hint="Submit to the next server.")
        return Accepted(run, created=False)

    def _start_doubtful(self) -> None:
        """Start the run whose acceptance was in doubt, if it has come true: nobody else would ever work on it."""
        if self._doubtful is None:
            return
        new = self._doubtful
        run = self._session.store.find_request(self._session.id, new.request_id)
        if run is not None and run.id == new.id:
            self._doubtful = None
            self._start(run, new)

    def _start(self, run: Run, new: NewRun) -> None:
        scope = Scope(self._session.alarm)
        before = self._live.thread if self._live is not None else None
        work = threading.Thread(
            target=self._work, args=(run, new.text, scope, before), name=f"aura-{run.id}", daemon=True
        )
        self._live = _Live(run, scope, work)
        work.start()

    def _work(self, run: Run, text: str, scope: Scope, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()  # its run is terminal, but it may not have noted yet what of the conversation is saved
        session = self._session
        with session.inbox.live(run.id, scope):
            outcome = self._outcome(run, text, MainLane(session, run, scope))
            if scope.reason != "lease_lost":
                reason: e.Reason = "command" if run.kind == "command" else "run"
                settle(session, run.id, outcome, reason, self._gave_up, self._log)
        self._after_run()

    def _outcome(self, run: Run, text: str, lane: MainLane) -> TurnOutcome:
        # Imported by the first run that needs them: a server is ready the sooner.
        try:
            if run.kind == "command":
                from aura.runtime.commands.dispatch import run_command

                return run_command(lane, self._current, self._session.saver.history, text)
            from aura.engine.turn import run_turn

            return run_turn(lane, self._current.agent, self._session.saver.history, text)
        except Exception as error:  # noqa: BLE001 a fault of ours must not leave a run without its terminal record
            fault_id = self._log.fault(run.id, error)
            return TurnOutcome(
                "failed", RunError("internal", f"unexpected fault {fault_id}; the server's log has more")
            )

    def _record_stopping(self, reason: StopReason) -> bool:
        try:
            self._session.recorder.commit((e.ServerStopping(reason=reason),), None, essential=True)
            return True
        except AuraError as error:
            self._log.warning("host", f"server.stopping is not recorded: {error.message}")
            return False

    def _save_last(self) -> bool:
        session = self._session
        try:
            session.recorder.save("shutdown", None)
            return True
        except AuraError as error:
            self._log.warning("host", f"the last save failed: {error.message}")
            return False


def open_host(
    parts: HostParts,
    session_id: str,
    open_agent: Callable[[JsonObject, Scope], tuple[CurrentAgent, tuple[str, ...]]],
    *,
    url: str | None,
    resumed: bool,
    notices: Callable[[], Sequence[e.Notice]] = tuple,
    settle_ms: int = limits.SETTLE_MS,
) -> Host:
    """Take a session, record what a crash left of it, save it, and return its host.

    `open_agent` is given the session's meta and returns the agent to go on with, and notices of what could not be
    restored; see `restore_agent`. `notices` are asked for after that. When this returns, `server.started`, notices, one
    `run.lost` per unsettled run and `session.persisted{start}` are committed, in this order (interfaces.md section 9).
    Raises `SessionLocked`, `SessionFrozen`, `NotFound`, what `open_agent` raises, and store errors.
    """
    store, clock = parts.store, parts.clock
    lease = store.acquire(session_id, Holder(os.getpid(), url))
    try:
        stored = store.load_conversation(session_id)
        saver = Saver(stored)
        current, unrestored = open_agent(saver.history.meta, Scope(parts.alarm))
        recorder = Recorder(store, lease, saver, clock, parts.alarm)
        recovered = recover(store, session_id, stored.persisted_seq, clock.now_ms(), parts.log)
        started = e.ServerStarted(
            pid=os.getpid(), version=__version__, resumed_revision=stored.revision if resumed else None
        )
        current.store(saver.history)
        live = LiveState(current.status(), dict(saver.history.meta))
        session = Session(session_id, store, lease, saver, recorder, parts.feeds, parts.inbox, clock, parts.alarm, live)
        recorder.record(started, None)
        warnings = tuple(e.Notice(level="warning", origin="resume", message=text) for text in unrestored)
        for notice in (*notices(), *warnings):
            recorder.record(notice, None)
        for item in recovered.events:
            recorder.record(item.event, item.run_id)
        recorder.save("start", None)
    except BaseException:
        store.release(lease)
        raise
    return Host(session, current, parts.log, settle_ms=settle_ms)
