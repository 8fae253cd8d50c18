"""A short journal in which every kind of event happens, made by the real fold and encoders, and one of each live item.

Schemas are tested with it, and docs/events.md shows its lines. Times and ids are fixed, so it is the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aura import events as e
from aura.conversation import Call
from aura.runs import NewRun, Run, RunError, RunResult, accept, fold
from aura.wire import automation
from aura.wire.catalogue import encode_event

SESSION_ID = "task-1"
START_MS = 1_796_083_200_000
REVISIONS = tuple(digit * 64 for digit in "3a7c")
PROVIDER_DOWN = RunError(
    "provider_server",
    "the engine is not running",
    retryable=True,
    details={"status": 503, "provider": "llamaswap", "retry_after_ms": 1500},
)
DISK_FULL = RunError("persist_failed", "there is no room left on the disk", details={"reason": "store_unavailable"})
LIVE_ITEMS: tuple[e.Transient, ...] = (
    e.Delta("msg_019e4d20-8f6b-7a02-8d17-5a3c9b1e4f70", 0, "I will run "),
    e.Delta("msg_019e4d20-8f6b-7a02-8d17-5a3c9b1e4f70", 0, "The tests first.", thinking=True),
    e.ToolOutput("Bash", "1 passed in 0.02s", "call_1"),
    e.Spinner("waiting for the model"),
)


@dataclass(frozen=True)
class Line:
    """One event as it is served."""

    seq: int
    type: str
    text: bytes
    event: e.Event


class _Journal:
    """Appends events as the store does."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._run: Run | None = None

    def add(self, event: e.Event) -> None:
        """Append one event; the live run takes part in it."""
        seq, at_ms = len(self.lines) + 1, START_MS + 40 * len(self.lines)
        if self._run is not None and not isinstance(event, e.RunAccepted):
            self._run = fold(self._run, event, seq, at_ms)
        encoded = encode_event(event, self._run)
        run_id = self._run.id if self._run is not None else None
        text = automation.envelope(seq, at_ms, encoded.type, SESSION_ID, run_id, encoded.data)
        self.lines.append(Line(seq, encoded.type, text, event))
        if self._run is not None and self._run.terminal:
            self._run = None

    def accept(self, number: int, kind: str, text: str, on_input: str = "block") -> None:
        """Append `run.accepted`."""
        seq = len(self.lines) + 1
        run_id = f"run_019e4d20-8f6a-7c31-9b52-6d1f0c3a7e0{number}"
        digest = automation.request_digest(kind, on_input, text)
        at_ms = START_MS + 40 * (seq - 1)
        new = NewRun(run_id, f"task-1:{number}", kind, text, on_input, digest, at_ms)  # type: ignore[arg-type]
        self._run = accept(new, SESSION_ID, seq)
        self.add(e.RunAccepted())


def journal() -> list[Line]:
    """Return the journal: six runs, which end in all the ways a run can end."""
    made = _Journal()
    made.add(e.ServerStarted(pid=4711, version="0.1.0", resumed_revision=None))
    made.add(_saved("start", 0))
    for add in (_completed, _asked, _command, _failed, _unsaved, _lost):
        add(made)
    made.add(e.ServerStopping(reason="request"))
    made.add(_saved("shutdown", 2, changed=False))
    return made.lines


def first_of_each_type() -> Iterator[Line]:
    """Yield the first line of each type, in the journal's order."""
    seen: set[str] = set()
    for line in journal():
        if line.type not in seen:
            seen.add(line.type)
            yield line


def _completed(made: _Journal) -> None:
    run_id = "run_019e4d20-8f6a-7c31-9b52-6d1f0c3a7e01"
    user, first, last = (f"msg_019e4d20-8f6b-7a0{n}-8d17-5a3c9b1e4f70" for n in (1, 2, 3))
    call = Call("call_1", "Bash", {"command": "pytest -q"})
    made.accept(1, "prompt", "Do the tests pass?")
    made.add(e.MessageUser(message_id=user, content="Do the tests pass?"))
    made.add(e.RunStarted(run_id=run_id, message_id=user))
    made.add(_status(1))
    made.add(e.MessageAssistant(message_id=first, content="I will run them.", tool_calls=(call,)))
    made.add(e.ToolStarted(call_id=call.id, name=call.name, args=call.arguments))
    made.add(e.ToolFinished(call_id=call.id, name=call.name, status="ok", result="1 passed in 0.02s\n"))
    made.add(_saved("checkpoint", 1, 3))
    made.add(e.MessageAssistant(message_id=last, content="They pass."))
    made.add(e.RunFinished(outcome="completed", result=RunResult("They pass.")))
    made.add(_saved("run", 2, 4))
    made.add(e.RunPersisted())


def _asked(made: _Journal) -> None:
    ask = "inp_019e4d20-9a07-7d4e-8c11-2f5b7a9d3e60"
    confirm = "inp_019e4d20-9a07-7d4e-8c11-2f5b7a9d3e61"
    made.accept(2, "prompt", "Write it down.", "wait")
    options = (e.Option("README", "the project's own"), e.Option("NOTES"))
    made.add(e.InputRequired(input_id=ask, input_kind="ask", question="Where?", options=options))
    made.add(e.InputResolved(input_id=ask, answer="README", answered_by="api"))
    made.add(
        e.InputRequired(
            input_id=confirm,
            input_kind="confirm",
            question="Run Write?",
            tool="Write",
            detail='{"path":"README"}',
            pattern="Write",
        )
    )
    made.add(e.RunCancelRequested())
    made.add(e.InputResolved(input_id=confirm, answer=None, answered_by="cancel"))
    error = RunError("cancelled", "the run was cancelled", details={"reason": "request"})
    made.add(e.RunFinished(outcome="cancelled", error=error))
    made.add(_saved("run", 2, 4, changed=False))
    made.add(e.RunPersisted())


def _command(made: _Journal) -> None:
    made.accept(3, "command", "/stats")
    made.add(e.CommandResult(command="/stats", message="messages: 4\ntool calls: 1"))
    made.add(e.RunFinished(outcome="completed", result=RunResult("messages: 4\ntool calls: 1")))
    made.add(_saved("command", 2, 4, changed=False))
    made.add(e.RunPersisted())
    made.accept(4, "command", "/help nothing")
    made.add(e.CommandResult(command="/help nothing", message="", error="/nothing is not a command"))
    made.add(e.RunFinished(outcome="failed", error=RunError("command_failed", "/nothing is not a command")))
    made.add(_saved("command", 2, 4, changed=False))
    made.add(e.RunPersisted())


def _failed(made: _Journal) -> None:
    made.add(e.Notice(level="warning", origin="config", message="agents/old.md: the key `mode` is not used yet"))
    made.accept(5, "prompt", "Go on.")
    made.add(e.RunFinished(outcome="failed", error=PROVIDER_DOWN))
    made.add(_saved("run", 2, 4))
    made.add(e.RunPersisted())


def _unsaved(made: _Journal) -> None:
    made.accept(6, "prompt", "Go on.")
    made.add(e.ToolFinished(call_id="call_2", name="Read", status="error", result="Error: no such file", error="none"))
    made.add(e.RunFinished(outcome="failed", error=DISK_FULL))
    made.add(e.SessionPersistFailed(error=DISK_FULL, reason="run"))
    made.add(e.RunPersistFailed(error=DISK_FULL))


def _lost(made: _Journal) -> None:
    made.accept(7, "prompt", "Once more.")
    made.add(e.RunLost(revision=REVISIONS[2], messages=4, persisted_seq=2))
    made.accept(8, "prompt", "And again.")
    made.add(e.RunFinished(outcome="completed", result=RunResult("Done.")))
    made.add(e.RunLost(revision=REVISIONS[2], messages=4, persisted_seq=2))


def _saved(reason: e.Reason, revision: int, messages: int = 0, *, changed: bool = True) -> e.SessionPersisted:
    return e.SessionPersisted(revision=REVISIONS[revision], messages=messages, reason=reason, changed=changed)


def _status(iteration: int) -> e.StatusChanged:
    return e.StatusChanged(
        agent="main",
        mode=None,
        provider="local",
        model="qwen3-8b",
        iteration=iteration,
        tokens_used=1432,
        tokens_max=32768,
    )
