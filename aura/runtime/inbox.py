"""Brings committed control rows to live runs: cancellations to scopes, answers to whoever asked (DESIGN.md section 4).

Our own handlers' requests take the same way as those of other processes: through the store. One thread per process
reads the rows after a ring; it writes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aura import limits
from aura.engine.scope import REASONS, Reason, Scope
from aura.errors import AuraError
from aura.jsontypes import JsonValue
from aura.runtime.log import Log
from aura.store.protocol import Input, Store, Subscription


class PendingAnswer:
    """An answer that somebody waits for: a `Job` for `Scope.wait`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._ended = False
        self._value: JsonValue = None

    @property
    def ended(self) -> bool:
        """True once the answer is there or nobody waits any more."""
        return self._ended

    def cancel(self) -> None:
        """Stop waiting."""
        self.resolve(None)

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the answer is there, at once if it is."""
        with self._lock:
            if not self._ended:
                self._callbacks.append(callback)
                return
        callback()

    def result(self) -> JsonValue:
        """Return the answer, None when it was dismissed."""
        return self._value

    def resolve(self, value: JsonValue) -> None:
        """Set the answer; the first one counts."""
        with self._lock:
            if self._ended:
                return
            self._ended, self._value = True, value
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


@dataclass(slots=True)
class _LiveRun:
    scope: Scope
    waiting: dict[str, PendingAnswer] = field(default_factory=dict)


def _reason(text: str) -> Reason:
    """Return the reason that a row gives, `request` for one that this version does not know."""
    return next((reason for reason in REASONS if reason == text), "request")


class Inbox:
    """The live runs of this process, and the thread that reads their rows after a ring."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store = store
        self._log = log
        self._runs: dict[str, _LiveRun] = {}
        self._changed = threading.Condition()
        self._rung = False
        self._closed = False
        self._subscription: Subscription | None = None
        self._thread = threading.Thread(target=self._run, name="aura-inbox", daemon=True)
        self._thread.start()

    @contextmanager
    def live(self, run_id: str, scope: Scope) -> Iterator[None]:
        """While the block runs, a committed request to cancel the run cancels `scope`."""
        with self._changed:
            self._runs[run_id] = _LiveRun(scope)
            if self._subscription is None:
                self._subscription = self._store.watch(self._ring, poll_ms=limits.POLL_LIVE_MS, control=True)
            self._ring_locked()  # a request may have come between accept and now
        try:
            yield
        finally:
            with self._changed:
                del self._runs[run_id]
                if not self._runs and self._subscription is not None:
                    self._subscription.close()
                    self._subscription = None

    @contextmanager
    def expect(self, run_id: str, input_id: str) -> Iterator[PendingAnswer]:
        """While the block runs, the committed answer of the question resolves what is yielded."""
        answer = PendingAnswer()
        with self._changed:
            waiting = self._runs[run_id].waiting
            waiting[input_id] = answer
        try:
            yield answer
        finally:
            with self._changed:
                waiting.pop(input_id, None)

    def close(self) -> None:
        """End the thread; returns when it has ended."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _ring(self, _sessions: frozenset[str] | None) -> None:
        with self._changed:
            self._ring_locked()

    def _ring_locked(self) -> None:
        self._rung = True
        self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._rung or self._closed)
                if self._closed:
                    return
                self._rung = False
                runs = dict(self._runs)
            for run_id, live in runs.items():
                self._look(run_id, live)

    def _look(self, run_id: str, live: _LiveRun) -> None:
        try:
            run = self._store.get_run(run_id)
            inputs = self._store.list_inputs(run_id) if live.waiting else []
        except AuraError as error:  # the next ring, or the next poll, looks again
            self._log.warning("inbox", f"cannot read the rows of {run_id}: {error.message}")
            return
        except Exception as error:  # noqa: BLE001 this thread serves all runs: it must outlive a fault of ours
            self._log.fault("inbox", error)
            return
        if run.cancel is not None:
            live.scope.cancel(_reason(run.cancel.reason))
        for item in inputs:
            self._resolve(item, live)

    def _resolve(self, item: Input, live: _LiveRun) -> None:
        with self._changed:
            waiting = live.waiting.get(item.id)
        if waiting is not None and item.state != "pending":
            waiting.resolve(item.answer)
