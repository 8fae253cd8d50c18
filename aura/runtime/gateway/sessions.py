"""The sessions that a gateway holds: each from the moment that a run of it is accepted until the run has settled.

A session is taken for one run: its lease, its conversation and its recorder. Between two runs nobody holds it, so that
any other process may go on with it. Native threads only.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from aura import events as e
from aura import limits
from aura.clock import Clock, format_time
from aura.conversation import Header
from aura.engine.scope import Alarm, DeadlineHandle, Reason, Scope
from aura.errors import AuraError, Busy, Exists, Overloaded, SessionFrozen, SessionLocked, ShuttingDown
from aura.runs import NewRun, Run
from aura.runtime.feeds import Feeds
from aura.runtime.gateway.agents import AgentMaker
from aura.runtime.gateway.work import Job, work
from aura.runtime.inbox import Inbox
from aura.runtime.lane import LiveState, Session
from aura.runtime.log import Log
from aura.runtime.recorder import Recorder
from aura.runtime.recovery import recover
from aura.runtime.saver import Saver
from aura.runtime.settle import settle
from aura.store.protocol import Batch, Holder, Lease, RunFilter, Store
from aura.store.waiting import wait

PROFILE = "gateway"
_NOTHING_YET = e.StatusChanged(agent="", mode=None, provider="", model="", iteration=0, tokens_used=0, tokens_max=0)


@dataclass(frozen=True, slots=True)
class Parts:
    """What all sessions of a gateway share."""

    store: Store
    feeds: Feeds
    inbox: Inbox
    maker: AgentMaker
    clock: Clock
    alarm: Alarm
    log: Log
    url: str | None


@dataclass(slots=True)
class Held:
    """A session in use. `run` is set once it is accepted; `free` once the session was let go."""

    run: Run | None = None
    scope: Scope | None = None
    session: Session | None = None
    free: threading.Event = field(default_factory=threading.Event)


class Sessions:
    """The runs at work in this process, by session."""

    def __init__(self, parts: Parts, *, max_count: int = limits.LIVE_RUNS_MAX_COUNT) -> None:
        self._parts = parts
        self._max_count = max_count
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}
        self._stopping = False
        self._gave_up = threading.Event()
        self._idle = threading.Condition(self._lock)

    @property
    def count(self) -> int:
        """How many runs are at work."""
        return len(self._held)

    def ensure(self, session_id: str) -> None:
        """Make the session exist. Raises store errors."""
        store, now = self._parts.store, format_time(self._parts.clock.now_ms())
        if store.find_session(session_id) is not None:
            return
        try:
            store.create_session(Header(id=session_id, title="", created_at=now, updated_at=now), profile=PROFILE)
        except Exists:  # somebody was faster
            return

    def start(self, session_id: str, new: NewRun, job: Job, timeout_ms: int) -> Run:
        """Accept a run of an existing session and start its work; `timeout_ms` bounds it, 0 does not.

        Raises `Busy` while another run of the session has not settled, `Overloaded`, `ShuttingDown`, `SessionLocked`
        when another program holds the session, `SessionFrozen`, and store errors.
        """
        held = self._reserve(session_id)
        try:
            lease = self._acquire(session_id)
            try:
                run = self._accept(held, session_id, lease, new)
            except BaseException:
                self._parts.store.release(lease)
                raise
        except BaseException:
            self._free(session_id, held)
            raise
        thread = threading.Thread(
            target=self._work, args=(held, run, job, timeout_ms), name=f"aura-{run.id}", daemon=True
        )
        thread.start()
        return run

    def find_live(self, run_id: str) -> Held | None:
        """Return the held session whose run this is, None when it is not at work here."""
        return next((held for held in self._snapshot() if held.run is not None and held.run.id == run_id), None)

    def refuse(self) -> None:
        """Accept no run from now on."""
        with self._lock:
            self._stopping = True

    def cancel_all(self, reason: Reason) -> None:
        """Cancel every run at work."""
        for held in self._snapshot():
            if held.scope is not None:
                held.scope.cancel(reason)

    def give_up(self) -> None:
        """Stop trying to record the ends of runs: the next server will find them."""
        self._gave_up.set()

    def wait_idle(self, timeout_ms: int) -> bool:
        """Return True once no run is at work, False after `timeout_ms`."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._held, timeout_ms / 1000)

    def recover_all(self) -> int:
        """Record as lost what dead processes have left unsettled; return how many runs that are."""
        live = self._parts.store.list_runs(RunFilter(live=True)).items
        return sum(self._recover_free(session_id) for session_id in sorted({run.session_id for run in live}))

    # --- one run ------------------------------------------------------------------------------------------------

    def _reserve(self, session_id: str) -> Held:
        """Return the session's place, once a run that has just ended has left it."""
        deadline_ms = self._parts.clock.monotonic_ms() + limits.RELEASE_WAIT_MS
        while True:
            with self._lock:
                if self._stopping:
                    raise ShuttingDown("the server is shutting down", hint="Send the request to the next server.")
                before = self._held.get(session_id)
                if before is None:
                    if len(self._held) >= self._max_count:
                        raise Overloaded(
                            f"{self._max_count} runs are at work already",
                            hint="Try again in a moment.",
                            details={"retry_after_ms": limits.RETRY_AFTER_MS},
                        )
                    held = self._held[session_id] = Held()
                    return held
            run = before.run
            left_ms = deadline_ms - self._parts.clock.monotonic_ms()
            if run is None or left_ms <= 0 or not self._parts.store.get_run(run.id).terminal:
                raise _busy(run)
            before.free.wait(left_ms / 1000)

    def _acquire(self, session_id: str) -> Lease:
        store = self._parts.store
        try:
            return store.acquire(session_id, Holder(os.getpid(), self._parts.url))
        except SessionLocked:
            live = store.list_runs(RunFilter(session_id, live=True)).items
            if live:
                raise _busy(live[0]) from None
            raise

    def _accept(self, held: Held, session_id: str, lease: Lease, new: NewRun) -> Run:
        parts = self._parts
        self._record_lost(session_id, lease)
        saver = Saver(parts.store.load_conversation(session_id))
        recorder = Recorder(parts.store, lease, saver, parts.clock, parts.alarm)
        live = LiveState(_NOTHING_YET, dict(saver.history.meta))
        held.session = Session(
            session_id,
            parts.store,
            lease,
            saver,
            recorder,
            parts.feeds,
            parts.inbox,
            parts.clock,
            parts.alarm,
            live,
        )
        held.scope = Scope(parts.alarm)
        held.run = parts.store.accept(lease, new).run
        return held.run

    def _work(self, held: Held, run: Run, job: Job, timeout_ms: int) -> None:
        session, scope, parts = held.session, held.scope, self._parts
        assert session is not None and scope is not None
        deadline = _expire(parts.alarm, scope, timeout_ms)
        try:
            with parts.inbox.live(run.id, scope):
                outcome = work(job, run, session, scope, parts.maker, parts.log)
                if scope.reason != "lease_lost":
                    settle(session, run.id, outcome, "run", self._gave_up, parts.log)
        finally:
            if deadline is not None:
                deadline.cancel()
            parts.store.release(session.lease)
            self._free(session.id, held)

    def _free(self, session_id: str, held: Held) -> None:
        with self._lock:
            del self._held[session_id]
            self._idle.notify_all()
        held.free.set()

    # --- what a dead process has left ---------------------------------------------------------------------------

    def _recover_free(self, session_id: str) -> int:
        try:
            lease = self._parts.store.acquire(session_id, Holder(os.getpid(), self._parts.url))
        except (SessionLocked, SessionFrozen):
            return 0  # somebody is at work on it, or has settled it
        try:
            return self._record_lost(session_id, lease)
        except AuraError as error:
            self._parts.log.warning("gateway", f"what was lost of {session_id} is not recorded: {error.message}")
            return 0
        finally:
            self._parts.store.release(lease)

    def _record_lost(self, session_id: str, lease: Lease) -> int:
        store, now_ms = self._parts.store, self._parts.clock.now_ms()
        recovered = recover(store, session_id, store.read_persisted_seq(session_id), now_ms, self._parts.log)
        if recovered.events:
            wait(store.commit(lease, Batch(uuid.uuid4().hex, recovered.events, essential=True)))
        return recovered.run_count

    def _snapshot(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())


def _expire(alarm: Alarm, scope: Scope, timeout_ms: int) -> DeadlineHandle | None:
    expire: Callable[[], object] = lambda: scope.cancel("deadline")  # noqa: E731 it needs a type
    return alarm.call_later(timeout_ms, expire) if timeout_ms else None


def _busy(run: Run | None) -> Busy:
    if run is None:
        return Busy("a run of this session is just being accepted", hint="Wait for its end.")
    return Busy(f"run {run.id} has not settled", hint="Wait for its end.", details={"run_id": run.id})
