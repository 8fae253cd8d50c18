"""Makes a store with a long history, for measurements: sessions, runs, tool calls, usage, questions, revisions.

Everything is appended by the store's own functions, so rows, triggers, hash chain, projections and revisions are what a
server would have left; only the waiting for the disk is left out (one connection, many runs per transaction,
synchronous = OFF). The same `Shape` gives the same rows: all randomness and all times come from its
seed. It measures nothing. By itself: `python scripts/bench/history.py DIRECTORY [--events N] [--sessions N]`, which
makes DIRECTORY/aura.db.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import apsw

from aura import events as e
from aura.clock import format_time
from aura.conversation import Call, Header, Message
from aura.events import Event, Stamped
from aura.jsontypes import JsonObject
from aura.runs import NewRun, OnInput, Outcome, RunError, RunKind, RunResult
from aura.store import protocol as p
from aura.store.open import open_store
from aura.store.sqlite import chains, journal, runs, sessions
from aura.store.sqlite.database import DATABASE_NAME, fetch_one
from aura.store.sqlite.rows import SessionRow, update_session_row
from aura.wire import document
from aura.wire.automation import request_digest

DAY_MS = 24 * 3600 * 1000
START_MS = 1_767_225_600_000  # 2026-01-01
RUNS_PER_TRANSACTION_COUNT = 200
EVENTS_PER_RUN_COUNT = 62  # on average; about five of them for each tool call
BUSY_HOURS = (9, 10, 10, 11, 11, 13, 14, 14, 15, 15, 16, 17, 20, 2)  # most work is done in the day, a job runs at 2
TEXT = (
    "the build failed because a test expected another order of rows so the query now sorts by id and the cache is "
    "cleared before each case while the report shows what changed in every module since the last release"
)
WORDS = tuple(TEXT.split())


@dataclass(frozen=True, slots=True)
class Tool:
    """How one tool behaves: how often it is called, how long it takes, how often it fails."""

    name: str
    weight: int
    median_ms: int
    error_percentage: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model and what it costs per million tokens; None where nobody says."""

    provider: str
    name: str
    weight: int
    cost_usd: float | None


TOOLS = (
    Tool("Bash", 40, 900, 12),
    Tool("Read", 25, 4, 3),
    Tool("Edit", 12, 8, 9),
    Tool("Grep", 10, 60, 2),
    Tool("Write", 6, 7, 1),
    Tool("WebFetch", 4, 2400, 18),
    Tool("mcp__tickets__search", 3, 450, 6),
)
MODELS = (
    Model("openrouter", "large-1", 5, 6.0),
    Model("openrouter", "small-1", 3, 0.4),
    Model("local", "qwen-coder", 2, None),
)
ERRORS = (
    RunError("provider_unreachable", "the connection was refused", retryable=True),
    RunError("max_steps", "the run used all its model calls"),
    RunError("context_exhausted", "the conversation does not fit the model's context"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How much history: at least `events` events, over `days`. About five events belong to each tool call."""

    events: int = 1_010_000
    sessions: int = 500
    days: int = 90
    seed: int = 1
    result_chars: int = 420  # average length of a tool's result


DEFAULT = Shape()


@dataclass(frozen=True, slots=True)
class Made:
    """What was made."""

    path: Path
    sessions: int
    runs: int
    events: int
    tool_calls: int
    messages: int


@dataclass(slots=True)
class _Session:
    id: str
    row: SessionRow
    header: Header
    model: Model
    hasher: document.Hasher = field(default_factory=document.Hasher)
    now_ms: int = 0
    unsaved: list[Message] = field(default_factory=list)


def make_history(directory: Path, shape: Shape, progress: Callable[[int], None] = lambda events: None) -> Made:
    """Make `directory`/aura.db, which must not exist, and return what is in it. `progress` hears the events so far."""
    path = directory / DATABASE_NAME
    if path.exists():
        raise FileExistsError(path)
    store = open_store(directory)  # files, schema, WAL mode
    store.close()
    connection = apsw.Connection(str(path))
    try:
        for pragma in ("synchronous = OFF", "foreign_keys = ON", "recursive_triggers = ON", "cache_size = -262144"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        maker = _Maker(connection, shape)
        maker.work(progress)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()
    return Made(path, shape.sessions, maker.runs, maker.events, maker.tool_calls, maker.messages)


class _Maker:
    """Writes the runs in the order of time, each into one of the sessions."""

    def __init__(self, connection: apsw.Connection, shape: Shape) -> None:
        self._connection = connection
        self._shape = shape
        self._random = random.Random(shape.seed)
        self._words = [" ".join(self._random.choices(WORDS, k=400)) for _ in range(64)]
        self._ids = itertools.count(1)
        self.runs = self.events = self.tool_calls = self.messages = 0

    def work(self, progress: Callable[[int], None]) -> None:
        with _transaction(self._connection):
            held = [self._new_session(number) for number in range(self._shape.sessions)]
        weights = [1 / (1 + number / 20) for number in range(len(held))]  # some sessions are far longer than others
        starts = self._starts()
        while self.events < self._shape.events:
            with _transaction(self._connection):
                for _ in range(RUNS_PER_TRANSACTION_COUNT):
                    if self.events >= self._shape.events:
                        break
                    (session,) = self._random.choices(held, weights)
                    session.now_ms = max(session.now_ms + 1000, next(starts))
                    self._run(session)
            progress(self.events)
        with _transaction(self._connection):
            for session in held[:: max(1, len(held) // 5)]:
                self._waiting_run(session)

    def _starts(self) -> Iterator[int]:
        """Yield when runs start, without an end: as many a day as fill the days with the wanted events."""
        a_day = max(1, self._shape.events // (EVENTS_PER_RUN_COUNT * self._shape.days))
        for day in itertools.count():
            times = [
                self._random.choice(BUSY_HOURS) * 3_600_000 + self._random.randrange(3_600_000) for _ in range(a_day)
            ]
            yield from (START_MS + day * DAY_MS + at for at in sorted(times))

    def _new_session(self, number: int) -> _Session:
        at = format_time(START_MS)
        header = Header(f"project-{number:04}", f"Project {number}", at, at, system="You are a careful assistant.")
        hasher = document.Hasher()
        revision = hasher.revision(header.system, document.encode_tail(header))
        sessions.insert(
            self._connection,
            header,
            (),
            revision=revision,
            reason="create",
            profile="automation",
            at_ms=START_MS,
        )
        (model,) = self._random.choices(MODELS, [model.weight for model in MODELS])
        row = sessions.get_row(self._connection, header.id)
        session = _Session(header.id, row, header, model, hasher, START_MS)
        started = e.ServerStarted(pid=4242, version="0.1.0", resumed_revision=None)
        self._commit(session, None, [started])
        return session

    def _accept(self, session: _Session, kind: RunKind, on_input: OnInput) -> str:
        number = next(self._ids)
        run_id = f"run_{hashlib.md5(str(number).encode()).hexdigest()}"  # a name, not a secret
        text = "/compact" if kind == "command" else self._text(120)
        digest = request_digest(kind, on_input, text)
        new = NewRun(run_id, f"request-{number}", kind, text, on_input, digest, session.now_ms)
        row, _ = runs.accept_run(self._connection, session.row, new)
        self._write_row(session, row)
        self.runs += 1
        return run_id

    def _run(self, session: _Session) -> None:
        """Write one settled run."""
        fate = self._random.choices(
            ("completed", "failed", "cancelled", "blocked", "rejected", "command", "lost", "persist_failed"),
            (840, 55, 30, 20, 5, 30, 14, 6),
        )[0]
        run_id = self._accept(session, "command" if fate == "command" else "prompt", "block")
        if fate == "command":
            self._advance(session, 300)
            done = e.CommandResult(command="/compact", message="Nothing to compact.")
            finished = e.RunFinished(outcome="completed", result=RunResult("Nothing to compact."))
            self._settle(session, run_id, [done, finished], [], "command")
            return
        if fate == "rejected":
            error = RunError("invalid_directive", "the prompt has an unknown directive")
            self._settle(session, run_id, [e.RunFinished(outcome="rejected", error=error)], [])
            return
        self._begin(session, run_id)
        calls = 1 + min(60, int(self._random.expovariate(1 / 12)))
        for _ in range(calls):
            self._iteration(session, run_id)
        if fate == "lost":
            self._lose(session, run_id)
            return
        if fate == "blocked":
            self._question(session, run_id, "confirm", resolved=True)
        self._finish(session, run_id, fate)

    def _begin(self, session: _Session, run_id: str) -> None:
        self._advance(session, 20)
        message_id = f"msg_{next(self._ids):08d}"
        user = e.MessageUser(message_id=message_id, content=self._text(120))
        status = self._status(session)
        self._commit(session, run_id, [user, e.RunStarted(run_id=run_id, message_id=message_id), status])
        session.unsaved = [Message("user", user.content, id=message_id)]

    def _iteration(self, session: _Session, run_id: str) -> None:
        """One model call which asks for a tool, the tool, and the save after it."""
        if self._random.random() < 0.02:
            notice = e.Notice(level="warning", origin="provider", message="asking again: the model is overloaded")
            self._commit(session, run_id, [notice])
        self._advance(session, self._random.lognormvariate(7.6, 0.6))
        (tool,) = self._random.choices(TOOLS, [tool.weight for tool in TOOLS])
        call = Call(f"call_{next(self._ids)}", tool.name, self._arguments(tool.name))
        answer = self._answer(session, (call,))
        started = e.ToolStarted(call_id=call.id, name=call.name, args=call.arguments)
        status = [self._status(session)] if self._random.random() < 0.33 else []
        self._commit(session, run_id, [answer, *status, started])
        self._advance(session, tool.median_ms * self._random.lognormvariate(0, 1))
        failed = self._random.randrange(100) < tool.error_percentage
        result = self._text(int(self._random.expovariate(1 / self._shape.result_chars)))
        result = f"Error: {result}" if failed else result
        finished = e.ToolFinished(
            call_id=call.id,
            name=call.name,
            status="error" if failed else "ok",
            result=result,
            error=result[7:] if failed else None,
        )
        session.unsaved.append(
            Message("tool", result, id=f"msg_{next(self._ids):08d}", tool_call_id=call.id, tool_name=call.name)
        )
        self._save(session, run_id, [finished], [], "checkpoint")
        self.tool_calls += 1

    def _finish(self, session: _Session, run_id: str, fate: str) -> None:
        self._advance(session, self._random.lognormvariate(7.2, 0.6))
        answer = self._answer(session, ())
        if fate == "persist_failed":
            error = RunError("persist_failed", "there is no room left for the database", retryable=False)
            finished = e.RunFinished(outcome="completed", result=RunResult(answer.content))
            failed = [e.SessionPersistFailed(error=error, reason="run"), e.RunPersistFailed(error=error)]
            session.unsaved = []
            self._commit(session, run_id, [answer, finished, *failed])
            return
        before: list[Event] = []
        if fate == "cancelled":
            before.append(e.RunCancelRequested(reason="request", message="the job was taken back"))
        outcome: Outcome = fate  # type: ignore[assignment]
        error_of_run = self._random.choice(ERRORS) if fate == "failed" else None
        result = RunResult(answer.content) if fate == "completed" else None
        self._settle(
            session, run_id, [*before, answer], [e.RunFinished(outcome=outcome, error=error_of_run, result=result)]
        )

    def _settle(
        self,
        session: _Session,
        run_id: str,
        before: list[Event],
        after: list[Event],
        reason: e.Reason = "run",
    ) -> None:
        self._save(session, run_id, [*before, *after], [e.RunPersisted()], reason)

    def _lose(self, session: _Session, run_id: str) -> None:
        """The server dies in a tool call; the next one says so."""
        call = Call(f"call_{next(self._ids)}", "Bash", self._arguments("Bash"))
        answer = self._answer(session, (call,))
        started = e.ToolStarted(call_id=call.id, name=call.name, args=call.arguments)
        self._commit(session, run_id, [answer, started])
        self.tool_calls += 1
        session.unsaved = []
        self._advance(session, 60_000)
        self._commit(session, None, [e.ServerStarted(pid=4243, version="0.1.0", resumed_revision=None)])
        row = session.row
        head = chains.get_revision(self._connection, row)
        lost = e.RunLost(revision=head.sha256, messages=row.messages, persisted_seq=row.persisted_seq)
        self._commit(session, run_id, [lost])

    def _waiting_run(self, session: _Session) -> None:
        """A live run that waits for somebody's approval."""
        run_id = self._accept(session, "prompt", "wait")
        self._begin(session, run_id)
        self._iteration(session, run_id)
        self._question(session, run_id, "confirm", resolved=False)

    def _question(self, session: _Session, run_id: str, kind: str, *, resolved: bool) -> None:
        input_id = f"in_{next(self._ids):08d}"
        question = e.InputRequired(
            input_id=input_id,
            input_kind="confirm" if kind == "confirm" else "ask",
            question="Run this command?",
            tool="Bash",
            detail="git push origin main",
            pattern="Bash(git push*)",
        )
        self._commit(session, run_id, [question])
        if resolved:
            self._advance(session, 40)
            self._commit(session, run_id, [e.InputResolved(input_id=input_id, answer=None, answered_by="policy")])

    def _answer(self, session: _Session, calls: tuple[Call, ...]) -> e.MessageAssistant:
        model = session.model
        tokens = 2_000 + 12 * min(session.hasher.count, 8_000)
        cost = None if model.cost_usd is None else round(tokens * model.cost_usd / 1e6, 6)
        usage = e.Usage(
            provider=model.provider,
            model=model.name,
            input_tokens=tokens,
            output_tokens=self._random.randrange(20, 900),
            cost_usd=cost,
        )
        message_id = f"msg_{next(self._ids):08d}"
        content = self._text(140)
        session.unsaved.append(Message("assistant", content, id=message_id, calls=calls))
        return e.MessageAssistant(message_id=message_id, content=content, tool_calls=calls, usage=usage)

    def _status(self, session: _Session) -> e.StatusChanged:
        model = session.model
        tokens = 2_000 + 12 * min(session.hasher.count, 8_000)
        return e.StatusChanged(
            agent="main",
            mode=None,
            provider=model.provider,
            model=model.name,
            iteration=1,
            tokens_used=tokens,
            tokens_max=131_072,
        )

    def _arguments(self, tool: str) -> JsonObject:
        path = f"src/module_{self._random.randrange(200)}/part_{self._random.randrange(20)}.py"
        match tool:
            case "Bash":
                return {"command": f"pytest -q {path}", "description": "Run the tests"}
            case "Read":
                return {"file_path": path}
            case "Edit":
                return {"file_path": path, "old_string": self._text(60), "new_string": self._text(60)}
            case "Write":
                return {"file_path": path, "content": self._text(300)}
            case "Grep":
                return {"pattern": self._random.choice(WORDS), "path": "src"}
            case "WebFetch":
                return {"url": f"https://example.org/page/{self._random.randrange(500)}"}
            case _:
                return {"query": self._text(30)}

    def _save(self, session: _Session, run_id: str, before: list[Event], after: list[Event], reason: e.Reason) -> None:
        """Commit events together with a revision that appends what the conversation has grown by."""
        added, session.unsaved = session.unsaved, []
        bodies = [document.encode_message(message) for message in added]
        session.hasher.add(bodies)
        session.header = replace(session.header, updated_at=format_time(session.now_ms))
        tail = document.encode_tail(session.header)
        revision = session.hasher.revision(session.header.system, tail)
        new = tuple(p.NewMessage(body, message.role) for body, message in zip(bodies, added, strict=True))
        saved = p.Checkpoint(new, session.header, tail, revision, session.hasher.count, reason)
        self.messages += len(new)
        report = e.SessionPersisted(revision=revision, messages=session.hasher.count, reason=reason, changed=True)
        self._commit(session, run_id, [*before, report, *after], saved)

    def _commit(
        self, session: _Session, run_id: str | None, events: list[Event], saved: p.Checkpoint | None = None
    ) -> None:
        stamped = [Stamped(session.now_ms, event, run_id) for event in events]
        row, _ = journal.append(self._connection, session.row, stamped)
        if saved is not None:
            row = chains.apply_checkpoint(self._connection, row, saved, self._rowid(run_id), session.now_ms)
        self._write_row(session, row)

    def _write_row(self, session: _Session, row: SessionRow) -> None:
        self.events += row.last_seq - session.row.last_seq
        update_session_row(self._connection, session.row, row)
        session.row = row

    def _rowid(self, run_id: str | None) -> int | None:
        row = fetch_one(self._connection, "SELECT id FROM run WHERE run_id = ?", run_id)
        return row[0] if row and isinstance(row[0], int) else None

    def _advance(self, session: _Session, ms: float) -> None:
        session.now_ms += int(ms) + 1

    def _text(self, chars: int) -> str:
        start = self._random.randrange(400)
        return self._random.choice(self._words)[start : start + chars]


class _transaction:
    """BEGIN and COMMIT around a block."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE").fetchall()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("ROLLBACK" if kind else "COMMIT").fetchall()


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes a store with a long history.")
    parser.add_argument("directory", type=Path, help="where aura.db is made")
    parser.add_argument("--events", type=int, default=DEFAULT.events, help="events at least")
    parser.add_argument("--sessions", type=int, default=DEFAULT.sessions, help="sessions")
    options = parser.parse_args()
    began = time.monotonic()
    made = make_history(options.directory, Shape(events=options.events, sessions=options.sessions))
    print(f"{made} in {time.monotonic() - began:.0f} s, {made.path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
