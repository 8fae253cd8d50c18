"""A service, a waiter and a clock in memory, for the api without sockets, threads or waiting."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flask.testing import FlaskClient

from aura.api.app import create_app
from aura.api.streams import Streams
from aura.errors import AuraError, CursorOutOfRange, NotFound
from aura.runs import NewRun, Run, accept
from aura.runtime.feeds import Feed
from aura.runtime.log import Log
from aura.store.journals import JournalPage
from aura.store.protocol import Accepted, EventRow
from aura.wire import canonical
from aura.wire.automation import envelope

TOKEN = "t" * 32
AUTH = {"Authorization": f"Bearer {TOKEN}"}
SESSION = "s-1"
RUN_ID = "run_0190163d-8694-739b-aea5-966c26f8ad90"


@dataclass
class StillClock:
    """A clock that moves only when it is told to."""

    at_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms


class FakeSignal:
    """Waiting runs the next planned step; with none left, or a step of None, the time is over."""

    def __init__(self, clock: StillClock) -> None:
        self._clock = clock
        self.generation = 0
        self.steps: list[Callable[[], object] | None] = []
        self.waits_ms: list[int] = []
        self.closed = False

    def ring(self) -> None:
        self.generation += 1

    def wait(self, seen: int, timeout_ms: int) -> None:
        if self.generation != seen:
            return
        self.waits_ms.append(timeout_ms)
        step = self.steps.pop(0) if self.steps else None
        if step is None:
            self._clock.at_ms += timeout_ms
            return
        step()

    def close(self) -> None:
        self.closed = True


class FakeWaiter:
    """Direct calls, planned waits."""

    kind = "gevent"

    def __init__(self) -> None:
        self.clock = StillClock()
        self.calls_count = 0

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.calls_count += 1
        return function(*args, **kwargs)

    def make_signal(self) -> FakeSignal:
        return FakeSignal(self.clock)

    def monotonic_ms(self) -> int:
        return self.clock.at_ms


def a_run(request_id: str = "req-1", kind: str = "prompt", on_input: str = "block") -> Run:
    """A run that was just accepted."""
    new = NewRun(RUN_ID, request_id, kind, "hello", on_input, "0" * 64, 1_700_000_000_000)  # type: ignore[arg-type]
    return accept(new, SESSION, 1)


def a_row(seq: int, type: str = "notice", data: dict[str, Any] | None = None) -> EventRow:
    """A stored event."""
    body = canonical.encode(data if data is not None else {"level": "info", "source": "test", "message": f"n{seq}"})
    return EventRow(seq, None, type, type, envelope(seq, 1_700_000_000_000 + seq, type, SESSION, None, body))


@dataclass
class FakeService:
    """What the api asks of a service. `calls` notes the requests; `failures` are raised instead of answers."""

    feed: Feed
    rows: list[EventRow] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    failures: dict[str, BaseException] = field(default_factory=dict)
    created: bool = True
    open_feeds: int = 0
    log_text: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.log = Log(StillClock(), self.log_text)

    def read_server(self) -> dict[str, Any]:
        self._enter("read_server")
        return {"api": 1}

    def read_session(self) -> dict[str, Any]:
        self._enter("read_session")
        return {"run": None}

    def read_messages(self, after: int, *, thinking: bool) -> dict[str, Any]:
        self._enter("read_messages", after, thinking)
        return {"messages": [], "total": 0}

    def get_run(self, run_id: str) -> Run:
        self._enter("get_run", run_id)
        if run_id != RUN_ID:
            raise NotFound(f"there is no run {run_id}")
        return a_run()

    def get_run_by_request(self, request_id: str) -> Run:
        self._enter("get_run_by_request", request_id)
        return a_run(request_id)

    def read_journal(self, after: int, limit: int) -> tuple[list[EventRow], int]:
        self._enter("read_journal", after, limit)
        last_seq = self.rows[-1].seq if self.rows else 0
        if not 0 <= after <= last_seq:
            raise CursorOutOfRange("out of range", details={"last_seq": last_seq})
        return [row for row in self.rows if row.seq > after][:limit], last_seq

    def read_journal_page(self, after: int, limit: int) -> tuple[JournalPage, int]:
        rows, last_seq = self.read_journal(after, limit)
        return JournalPage(len(rows), rows[-1].seq if rows else after, b",".join(row.line for row in rows)), last_seq

    def submit(self, request_id: str, kind: str, text: str, on_input: str) -> Accepted:
        self._enter("submit", request_id, kind, text, on_input)
        return Accepted(a_run(request_id, kind, on_input), self.created)

    def cancel_run(self, run_id: str) -> Run:
        self._enter("cancel_run", run_id)
        return self.get_run(run_id)

    def answer_input(self, run_id: str, input_id: str, *, answer: str | None, action: str | None) -> None:
        self._enter("answer_input", run_id, input_id, answer, action)

    def open_feed(self) -> Feed:
        self._enter("open_feed")
        self.open_feeds += 1
        return self.feed

    def release_feed(self, feed: Feed) -> None:
        self.open_feeds -= 1

    def stop(self, reason: str) -> None:
        self._enter("stop", reason)

    def _enter(self, name: str, *args: Any) -> None:
        self.calls.append((name, *args))
        if name in self.failures:
            raise self.failures[name]


class Api:
    """The application with its parts at hand."""

    def __init__(self, *, streams_max_count: int = 4) -> None:
        self.waiter = FakeWaiter()
        self.signal = self.waiter.make_signal()
        self.feed = Feed(SESSION, 0, self.signal)
        self.service = FakeService(self.feed)
        self.streams = Streams(self.service, self.waiter, max_count=streams_max_count)  # type: ignore[arg-type]
        app = create_app(self.service, TOKEN, self.waiter, self.streams)  # type: ignore[arg-type]
        self.client: FlaskClient = app.test_client()

    def store(self, *rows: EventRow) -> None:
        """Commit events that the feed has not read yet."""
        self.service.rows.extend(rows)

    def commit(self, *rows: EventRow) -> None:
        """Commit events and let the feed publish them."""
        self.store(*rows)
        self.feed.publish(list(rows))

    def get(self, path: str, **headers: str) -> Any:
        """Send a GET with the token."""
        return self.client.get(path, headers={**AUTH, **headers})

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        """Send a POST with the token; `body` is JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else canonical.encode(body)
        return self.client.post(path, data=data, headers={**AUTH, **options.pop("headers", {})}, **options)


def fails_with(response: Any, status: int, code: str) -> dict[str, Any]:
    """Assert the error shape and return the error object."""
    assert response.status_code == status, response.get_data(as_text=True)
    assert response.content_type == "application/json"
    body = response.get_json()
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert set(error) == {"code", "message", "retryable", "details"}
    assert error["code"] == code
    return error


__all__ = ["AUTH", "RUN_ID", "SESSION", "TOKEN", "Api", "AuraError", "a_row", "a_run", "fails_with"]
