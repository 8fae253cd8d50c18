"""What a turn needs from whoever runs it: one agent at work inside a run (SHAPES.md section 2).

The engine calls down through this protocol only. It never sees the store, the journal or HTTP: the runtime implements
`Lane`. Nothing here has behaviour beyond the values it passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from aura.clock import Clock
from aura.engine.history import History
from aura.engine.scope import Scope
from aura.events import Event, Option, Source, Transient
from aura.jsontypes import JsonValue
from aura.runs import Outcome, RunError


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a person (`ask`) or an approval of a call (`confirm`)."""

    kind: Literal["ask", "confirm"]
    question: str
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    tool: str | None = None
    detail: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a question ended. For `ask`: text, a list of labels, or None when dismissed. For `confirm`: an action."""

    value: JsonValue

    @property
    def allowed(self) -> bool:
        """True only for an explicit approval."""
        return self.value in ("allow", "allow_session")


class InputRequired(Exception):
    """Raised by `Lane.ask` where nobody may be waited for (`on_input: block`)."""


class PersistFailed(Exception):
    """Raised by `Lane.checkpoint`: the save failed, the run must end."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error


class Lane(Protocol):
    """The way from a turn to everybody else. The runtime implements it; methods may be called from any thread."""

    @property
    def source(self) -> Source | None:
        """The agent at work, None on the main lane."""
        ...

    @property
    def run_id(self) -> str:
        """The run that the lane works for."""
        ...

    @property
    def scope(self) -> Scope:
        """The run's cancellation."""
        ...

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        ...

    def emit(self, event: Event, *, durable: bool = False) -> None:
        """Record `event` after all earlier ones. With `durable` it is committed when this returns."""
        ...

    def transient(self, item: Transient) -> None:
        """Show a live event to whoever watches. It may be dropped."""
        ...

    def checkpoint(self, history: History) -> None:
        """Save the conversation together with all events so far. Raises `PersistFailed`. Run thread only."""
        ...

    def ask(self, question: Question) -> Answer:
        """Return the answer, waiting under the scope. Raises `InputRequired` (block) and `Cancelled`."""
        ...

    def process_started(self, call_id: str, pid: int, start_time: str) -> None:
        """Note the process group of a call, so that recovery can end it after a crash."""
        ...


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended: exactly one of the contract's outcomes. `content` is the final assistant text, if any."""

    outcome: Outcome
    error: RunError | None = None
    content: str | None = None
