"""The host over a real store: acceptance in doubt, replays on the way down, runs one after another, a bad opening."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import NoReturn

import pytest

from aura.clock import SystemClock, format_time
from aura.config.spec import AgentSpec, ModelSpec, ProviderSpec, ToolsSpec
from aura.conversation import Call, Header
from aura.engine.agent import Agent, Gauge
from aura.engine.providers.base import OnDelta, Reply, Request
from aura.engine.scope import Scope
from aura.engine.tools.toolbox import Toolbox
from aura.errors import Busy, CommitInDoubt, ConfigInvalid, LeaseLost, RequestConflict, ShuttingDown
from aura.ids import new_run_id
from aura.jsontypes import JsonObject
from aura.runs import NewRun, Run
from aura.runtime.alarm import AlarmThread
from aura.runtime.current import CurrentAgent
from aura.runtime.feeds import Feeds
from aura.runtime.host import Host, HostParts, open_host
from aura.runtime.inbox import Inbox
from aura.runtime.signals import ThreadSignal
from aura.store import protocol as p
from aura.store.sqlite.store import SqliteStore
from aura.wire.automation import request_digest
from tests.support.command_kit import current_of
from tests.support.runtime_kit import NOW_MS, make_log

WAIT_S = 20
SESSION = "s1"


class Doubting(SqliteStore):
    """A store whose next acceptance comes true although its caller is told that it is in doubt."""

    doubt = False

    def accept(self, lease: p.Lease, new: NewRun) -> p.Accepted:
        accepted = super().accept(lease, new)
        if self.doubt and accepted.created:
            self.doubt = False
            raise CommitInDoubt("the disk did not answer in time")
        return accepted


class Model:
    """A provider that answers when it is let."""

    type = "list"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.prompts: list[str] = []

    def stream(self, request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        self.prompts.append(request.messages[-1].content)
        with scope.poke(self.go.set):
            assert self.go.wait(WAIT_S)
        scope.check()
        if request.messages[-1].role == "user":
            return Reply("", calls=(Call("call_1", "Ls", {"path": "."}),))
        return Reply(f"answer {len(self.prompts)}")

    def context_tokens(self, model: str, scope: Scope) -> int:
        return 100_000


class Bench:
    """A host on a store of its own, and what it was made of."""

    def __init__(self, folder: Path, settle_ms: int = WAIT_S * 1000) -> None:
        self.store = Doubting(folder / "aura.db", ballast_bytes=4096)
        at = format_time(NOW_MS)
        self.store.create_session(Header(SESSION, "", at, at))
        self.log, self.stream = make_log()
        self.alarm = AlarmThread(SystemClock())
        self.inbox = Inbox(self.store, self.log)
        self.feeds = Feeds(self.store, ThreadSignal, self.log)
        self.parts = HostParts(self.store, self.feeds, self.inbox, SystemClock(), self.alarm, self.log)
        self.model = Model()
        self.folder = folder
        self.settle_ms = settle_ms
        self.host = self.open()

    def open(self) -> Host:
        return open_host(self.parts, SESSION, self.agent, url=None, resumed=False, settle_ms=self.settle_ms)

    def agent(self, _meta: JsonObject, _scope: Scope) -> tuple[CurrentAgent, tuple[str, ...]]:
        provider = ProviderSpec("local", "script", Path("p.yaml"))
        spec = AgentSpec("main", "", ModelSpec(provider, "m"), Path("a"), Path("a"), Path("h"), tools=ToolsSpec())
        toolbox = Toolbox(spec=spec.tools, workdir=self.folder, environment={}, spill_dir=self.folder)
        return current_of(Agent(spec, self.model, toolbox, "Be careful.", Gauge()), self.folder), ()

    def accept(self, request_id: str, text: str = "go") -> p.Accepted:
        digest = request_digest("prompt", "block", text)
        return self.host.accept(NewRun(new_run_id(NOW_MS), request_id, "prompt", text, "block", digest, NOW_MS))

    def finish(self, request_id: str) -> Run:
        assert self.host.wait_idle(WAIT_S * 1000)
        run = self.store.find_request(SESSION, request_id)
        assert run is not None
        return run

    def end(self) -> None:
        self.model.go.set()
        self.feeds.close()
        self.inbox.close()
        self.alarm.close()
        self.store.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.end()


def test_a_run_whose_acceptance_was_in_doubt_is_worked_on_when_its_request_comes_again(bench: Bench) -> None:
    bench.store.doubt = True
    with pytest.raises(CommitInDoubt):
        bench.accept("r1")
    again = bench.accept("r1")
    assert again.created is False
    assert (bench.finish("r1").state, bench.model.prompts[0]) == ("persisted", "go")
    assert bench.accept("r1").run.state == "persisted"
    assert bench.model.prompts.count("go") == 1


def test_a_run_in_doubt_does_not_block_the_session_for_others(bench: Bench) -> None:
    bench.model.go.clear()  # the first run must not end before the second one is refused
    bench.store.doubt = True
    with pytest.raises(CommitInDoubt):
        bench.accept("r1")
    with pytest.raises(Busy):
        bench.accept("r2")
    bench.model.go.set()
    assert bench.finish("r1").state == "persisted"
    assert bench.accept("r2").created is True
    assert bench.finish("r2").state == "persisted"


def test_runs_in_quick_succession_never_save_a_message_twice(bench: Bench) -> None:
    for number in range(30):
        while True:
            try:
                bench.accept(f"r{number}", f"prompt {number}")
                break
            except Busy:
                continue
    assert bench.finish("r29").state == "persisted"
    bodies, total = bench.store.read_messages(SESSION, -1, None)
    assert (total, len(bodies)) == (120, 120)
    assert bench.host.close("request") is True
    stored = bench.store.load_conversation(SESSION)
    digests = {revision.sha256 for revision in bench.store.list_revisions(SESSION)}
    assert stored.revision in digests
    assert bench.stream.getvalue() == ""


@pytest.mark.requirement("serve.stop.refuses-runs")
def test_on_the_way_down_new_runs_are_refused_and_old_requests_answered(bench: Bench) -> None:
    bench.model.go.clear()
    run = bench.accept("r1").run
    bench.host.stop_accepting()
    assert bench.accept("r1").run.id == run.id
    assert bench.accept("r1").created is False
    with pytest.raises(ShuttingDown):
        bench.accept("r2")
    with pytest.raises((ShuttingDown, RequestConflict)):
        bench.accept("r1", "another text")
    assert bench.host.close("sigterm") is True
    settled = bench.finish("r1")
    assert settled.error is not None
    assert (settled.state, settled.outcome, settled.error.details) == (
        "persisted",
        "cancelled",
        {"reason": "shutdown"},
    )


def test_a_run_that_does_not_settle_keeps_its_session_from_being_let_go(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settle_ms=50)
    stuck, released = threading.Event(), threading.Event()

    def stream(request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        stuck.set()
        released.wait(WAIT_S)
        return Reply("too late")

    bench.model.stream = stream  # type: ignore[method-assign]
    bench.accept("r1")
    assert stuck.wait(WAIT_S)
    assert bench.host.close("request") is False
    assert bench.store.find_holder(SESSION) is not None
    released.set()
    bench.end()


@pytest.mark.requirement("runs.outcome.internal")
def test_a_fault_of_a_provider_is_internal_with_an_id_that_is_in_the_log(bench: Bench) -> None:
    def stream(request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        raise ZeroDivisionError("secret text")

    bench.model.stream = stream  # type: ignore[method-assign]
    bench.accept("r1")
    run = bench.finish("r1")
    assert run.error is not None
    assert (run.state, run.outcome, run.error.code) == ("persisted", "failed", "internal")
    assert "secret" not in run.error.message
    fault_id = run.error.message.split("fault ")[1].split(";")[0]
    assert fault_id in bench.stream.getvalue()
    assert "secret" not in bench.stream.getvalue()


def test_a_host_that_cannot_open_lets_the_session_go(bench: Bench) -> None:
    assert bench.host.close("request") is True

    def no_agent(_meta: JsonObject, _scope: Scope) -> NoReturn:
        raise ConfigInvalid("there is no agent")

    with pytest.raises(ConfigInvalid):
        open_host(bench.parts, SESSION, no_agent, url=None, resumed=True)
    assert bench.store.find_holder(SESSION) is None
    bench.host = bench.open()
    assert bench.accept("r1").created is True
    bench.finish("r1")


def test_a_host_whose_session_was_taken_over_ends_its_run_without_writing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.model.go.clear()

    def lost(lease: p.Lease, batch: p.Batch) -> Future[p.Receipt]:
        raise LeaseLost("another process holds it")

    commits: Callable[[p.Lease, p.Batch], Future[p.Receipt]] = lost
    monkeypatch.setattr(bench.store, "commit", commits)
    bench.accept("r1")
    before = bench.store.read_last_seq(SESSION)
    bench.model.go.set()
    assert bench.finish("r1").terminal is False
    assert bench.store.read_last_seq(SESSION) == before
