"""A lane in memory: records what a turn or a tool call does, and answers questions from a list."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from aura.engine.history import History
from aura.engine.lane import Answer, InputRequired, Question
from aura.engine.scope import Poke, Scope
from aura.events import Event, Source, Transient


class StillAlarm:
    """An alarm that never rings: deadlines do not pass in these tests."""

    def call_later(self, delay_ms: int, callback: Poke) -> StillAlarm:
        """Take the deadline and forget it."""
        return self

    def cancel(self) -> None:
        """Nothing to take back."""


@dataclass
class CountingClock:
    """A clock that moves by one millisecond at each look."""

    at_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        """Return the next moment."""
        self.at_ms += 1
        return self.at_ms

    def monotonic_ms(self) -> int:
        """Return the next moment."""
        return self.now_ms()


@dataclass
class RecordingLane:
    """Keeps everything it is given, in order. Without an answer left, `ask` raises `InputRequired`, as `block` does."""

    answers: list[Answer] = field(default_factory=list)
    source: Source | None = None
    run_id: str = "run_1"
    scope: Scope = field(default_factory=lambda: Scope(StillAlarm()))
    clock: CountingClock = field(default_factory=CountingClock)
    emitted: list[tuple[Event, bool]] = field(default_factory=list)
    shown: list[Transient] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    processes: list[tuple[str, int, str]] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def events(self) -> Sequence[Event]:
        """The events so far, without how durable they were."""
        return [event for event, _ in self.emitted]

    def emit(self, event: Event, *, durable: bool = False) -> None:
        """Record the event."""
        with self._changed:
            self.emitted.append((event, durable))
            self._changed.notify_all()

    def transient(self, item: Transient) -> None:
        """Record the live event."""
        with self._changed:
            self.shown.append(item)
            self._changed.notify_all()

    def checkpoint(self, history: History) -> None:
        """Record how many messages were saved."""
        self.saved.append(len(history.messages))

    def ask(self, question: Question) -> Answer:
        """Return the next answer."""
        self.scope.check()
        self.questions.append(question)
        if not self.answers:
            raise InputRequired
        return self.answers.pop(0)

    def process_started(self, call_id: str, pid: int, start_time: str) -> None:
        """Record the process."""
        with self._changed:
            self.processes.append((call_id, pid, start_time))
            self._changed.notify_all()

    def wait_for_process(self, timeout_s: float = 20) -> tuple[str, int, str]:
        """Return the first process that was started, waiting for it."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.processes, timeout_s), "no process was started"
            return self.processes[0]

    def wait_for_output(self, text: str, timeout_s: float = 20) -> None:
        """Wait until a live line with `text` was shown."""

        def seen() -> bool:
            return any(text in getattr(item, "line", "") for item in self.shown)

        with self._changed:
            assert self._changed.wait_for(seen, timeout_s), f"{text!r} was not shown"
