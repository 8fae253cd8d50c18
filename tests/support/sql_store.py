"""The small store whose answers docs/sql.md shows: three sessions in January 2026, with everything fixed.

    api      run-1  Mon 05 09:00  three tool calls, one fails; completed
             run-3  Tue 06 09:30  the same prompt again; the model is overloaded, asked again, and then refuses
             run-7  Tue 13 09:15  live: waits for somebody to allow `git push`
    docs     run-2  Mon 05 10:30  reads and writes a file; completed
             run-6  Mon 12 14:00  cancelled after five seconds
    nightly  run-4  Tue 06 02:00  fetches two pages, by a model without a price; completed
             run-5  Wed 07 02:00  its server dies while Bash runs; found a minute later

It asserts nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from aura import events as e
from aura.clock import format_time, parse_time
from aura.conversation import Call, Header, Message
from aura.events import Event, Stamped
from aura.jsontypes import JsonObject
from aura.runs import NewRun, OnInput, Outcome, RunError, RunResult
from aura.store import protocol as p
from aura.store.open import open_store
from aura.store.sqlite.store import SqliteStore
from aura.wire import document
from aura.wire.automation import request_digest

LARGE = e.Usage(provider="openrouter", model="large-1", input_tokens=2000, output_tokens=100, cost_usd=0.0125)
SMALL = e.Usage(provider="openrouter", model="small-1", input_tokens=1000, output_tokens=50, cost_usd=0.001)
LOCAL = e.Usage(provider="local", model="qwen-coder", input_tokens=1500, output_tokens=80)


def make_sql_store(directory: Path) -> None:
    """Make the store in `directory`, which must be empty or missing."""
    store = open_store(directory)
    try:
        api, docs, nightly = (
            Teller(store, name, title)
            for name, title in (("api", "The API"), ("docs", "The manual"), ("nightly", "Every night"))
        )
        _tell_first_week(api, docs, nightly)
        _tell_second_week(api, docs)
        for teller in (api, docs, nightly):
            store.release(teller.lease)
    finally:
        store.close()


def _tell_first_week(api: Teller, docs: Teller, nightly: Teller) -> None:
    api.begin("run-1", "2026-01-05T09:00:00Z", "Fix the login test")
    api.call(1500, LARGE, "Bash", {"command": "pytest tests/test_login.py"}, 2500, error="1 failed")
    api.call(2000, LARGE, "Edit", {"file_path": "src/login.py", "old_string": "a", "new_string": "b"}, 10)
    api.call(1000, LARGE, "Bash", {"command": "pytest tests/test_login.py"}, 1500)
    api.finish(1000, LARGE, "The test passes.")
    docs.begin("run-2", "2026-01-05T10:30:00Z", "Write the changelog")
    docs.call(800, SMALL, "Read", {"file_path": "CHANGELOG.md"}, 4)
    docs.call(1200, SMALL, "Write", {"file_path": "CHANGELOG.md", "content": "- New."}, 6)
    docs.finish(700, SMALL, "It is written.")
    nightly.begin("run-4", "2026-01-06T02:00:00Z", "Check the links")
    nightly.call(600, LOCAL, "WebFetch", {"url": "https://example.org/"}, 4000)
    nightly.call(600, LOCAL, "WebFetch", {"url": "https://example.org/gone"}, 6000, error="404")
    nightly.finish(500, LOCAL, "One link is dead.")
    api.begin("run-3", "2026-01-06T09:30:00Z", "Fix the login test")
    api.notice(500, "asking again: the model is overloaded")
    api.notice(1000, "asking again: the model is overloaded")
    api.fail(2000, RunError("provider_rate_limit", "the model is overloaded", retryable=True))
    nightly.begin("run-5", "2026-01-07T02:00:00Z", "Check the links")
    nightly.call(700, LOCAL, "Bash", {"command": "make links"}, None)
    nightly.lose(60_000)


def _tell_second_week(api: Teller, docs: Teller) -> None:
    docs.begin("run-6", "2026-01-12T14:00:00Z", "Translate the manual")
    docs.call(900, SMALL, "Read", {"file_path": "manual.md"}, 5)
    docs.cancel(4095, 200, "wrong branch")
    api.begin("run-7", "2026-01-13T09:15:00Z", "Release version 2", "wait")
    api.call(1000, LARGE, "Bash", {"command": "git tag v2"}, 300)
    api.ask(1200, "in-1", "git push origin v2")


@dataclass(slots=True)
class Teller:
    """Holds a session and writes what happens in it; times are those of the story."""

    store: SqliteStore
    id: str
    title: str
    lease: p.Lease = field(init=False)
    header: Header = field(init=False)
    hasher: document.Hasher = field(default_factory=document.Hasher)
    unsaved: list[Message] = field(default_factory=list)
    run_id: str = ""
    now_ms: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        at = "2026-01-05T08:00:00.000Z"
        self.now_ms = parse_time(at)
        self.header = Header(self.id, self.title, at, at, system="You are a careful assistant.")
        self.store.create_session(self.header)
        self.lease = self.store.acquire(self.id, p.Holder(os.getpid()))
        self._commit(None, e.ServerStarted(pid=1, version="0.1.0", resumed_revision=None))

    def begin(self, run_id: str, at: str, text: str, on_input: OnInput = "block") -> None:
        """Accept a run, and start it 20 ms later."""
        self.run_id, self.now_ms = run_id, parse_time(at)
        digest = request_digest("prompt", on_input, text)
        new = NewRun(run_id, f"request-of-{run_id}", "prompt", text, on_input, digest, self.now_ms)
        self.store.accept(self.lease, new)
        self.now_ms += 20
        user = Message("user", text, id=self._message_id())
        self.unsaved.append(user)
        self._commit(
            run_id,
            e.MessageUser(message_id=user.id, content=text),
            e.RunStarted(run_id=run_id, message_id=user.id),
        )

    def call(
        self, model_ms: int, usage: e.Usage, name: str, arguments: JsonObject, tool_ms: int | None, error: str = ""
    ) -> None:
        """The model answers after `model_ms` and asks for a tool, which takes `tool_ms`, or never ends."""
        self.now_ms += model_ms
        call = Call(f"call-{self.count}", name, arguments)
        started = e.ToolStarted(call_id=call.id, name=name, args=arguments)
        self._commit(self.run_id, self._answer("Let me see.", usage, call), started)
        if tool_ms is None:
            return
        self.now_ms += tool_ms
        result = f"Error: {error}" if error else "done"
        self.unsaved.append(Message("tool", result, id=self._message_id(), tool_call_id=call.id, tool_name=name))
        self._save(
            "checkpoint",
            e.ToolFinished(
                call_id=call.id, name=name, status="error" if error else "ok", result=result, error=error or None
            ),
        )

    def finish(self, model_ms: int, usage: e.Usage, text: str) -> None:
        """The model's last answer completes the run."""
        self.now_ms += model_ms
        finished = e.RunFinished(outcome="completed", result=RunResult(text))
        self._save("run", self._answer(text, usage), finished, last=e.RunPersisted())

    def fail(self, after_ms: int, error: RunError) -> None:
        """The run fails."""
        self._end(after_ms, "failed", error)

    def cancel(self, after_ms: int, until_ms: int, message: str) -> None:
        """Somebody cancels the run after `after_ms`; it ends `until_ms` later."""
        self.now_ms += after_ms
        self._commit(self.run_id, e.RunCancelRequested(reason="request", message=message))
        self._end(until_ms, "cancelled", None)

    def notice(self, after_ms: int, message: str) -> None:
        """The provider says something."""
        self.now_ms += after_ms
        self._commit(self.run_id, e.Notice(level="warning", origin="provider", message=message))

    def ask(self, after_ms: int, input_id: str, command: str) -> None:
        """The run waits for somebody to allow a command."""
        self.now_ms += after_ms
        question = "Run this command?"
        pattern = f"Bash({command.split()[0]}*)"
        self._commit(
            self.run_id,
            e.InputRequired(
                input_id=input_id, input_kind="confirm", question=question, tool="Bash", detail=command, pattern=pattern
            ),
        )

    def lose(self, after_ms: int) -> None:
        """The next server finds the run without its holder."""
        self.now_ms += after_ms
        self.unsaved.clear()
        summary = self.store.get_session(self.id)
        self._commit(None, e.ServerStarted(pid=2, version="0.1.0", resumed_revision=summary.revision))
        self._commit(
            self.run_id,
            e.RunLost(
                revision=summary.revision,
                messages=summary.messages,
                persisted_seq=self.store.read_persisted_seq(self.id),
            ),
        )

    def _end(self, after_ms: int, outcome: Outcome, error: RunError | None) -> None:
        self.now_ms += after_ms
        self._save("run", e.RunFinished(outcome=outcome, error=error), last=e.RunPersisted())

    def _answer(self, text: str, usage: e.Usage, *calls: Call) -> e.MessageAssistant:
        message = Message("assistant", text, id=self._message_id(), calls=calls)
        self.unsaved.append(message)
        return e.MessageAssistant(message_id=message.id, content=text, tool_calls=calls, usage=usage)

    def _save(self, reason: e.Reason, *events: Event, last: Event | None = None) -> None:
        bodies = [document.encode_message(message) for message in self.unsaved]
        new = tuple(p.NewMessage(body, message.role) for body, message in zip(bodies, self.unsaved, strict=True))
        self.unsaved.clear()
        self.hasher.add(bodies)
        self.header = replace(self.header, updated_at=format_time(self.now_ms))
        tail = document.encode_tail(self.header)
        revision = self.hasher.revision(self.header.system, tail)
        saved = p.Checkpoint(new, self.header, tail, revision, self.hasher.count, reason)
        report = e.SessionPersisted(revision=revision, messages=self.hasher.count, reason=reason, changed=True)
        self._commit(self.run_id, *events, report, *([last] if last else []), saved=saved)

    def _commit(self, run_id: str | None, *events: Event, saved: p.Checkpoint | None = None) -> None:
        self.count += 1
        stamped = tuple(Stamped(self.now_ms, event, run_id) for event in events)
        self.store.commit(self.lease, p.Batch(f"{self.id}-{self.count}", stamped, saved)).result(30)

    def _message_id(self) -> str:
        return f"{self.id}-message-{self.count}-{len(self.unsaved)}"
