"""The main lane and the end of a run, over a store from a script."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import pytest

from aura import events as e
from aura import limits
from aura.conversation import Message
from aura.engine.lane import Answer, InputRequired, PersistFailed, Question, TurnOutcome
from aura.engine.scope import Cancelled, Scope
from aura.errors import LeaseLost, NotPending, StoreFull
from aura.runs import Run, RunError
from aura.runtime import settle as settling
from aura.runtime.feeds import Feed
from aura.runtime.inbox import Inbox
from aura.runtime.lane import LiveState, MainLane, Session
from aura.runtime.recorder import Recorder
from aura.runtime.saver import Saver
from aura.runtime.settle import settle
from aura.runtime.signals import ThreadSignal
from aura.store.protocol import Input
from tests.support.lane import CountingClock
from tests.support.runtime_kit import (
    SESSION,
    FakeLease,
    FakeStore,
    ManualAlarm,
    StuckCommit,
    make_log,
    make_run,
    make_saver,
)

FULL = StoreFull("there is no room")
STATUS = e.StatusChanged(agent="main", mode=None, provider="p", model="m", iteration=1, tokens_used=0, tokens_max=100)
QUESTION = Question("ask", "Why?")
DONE = TurnOutcome("completed", content="done")


@dataclass
class OneFeed:
    """The feed of the one session."""

    feed: Feed = field(default_factory=lambda: Feed(SESSION, 0, ThreadSignal()))

    def find(self, session_id: str) -> Feed:
        assert session_id == SESSION
        return self.feed


@dataclass
class Answering(FakeStore):
    """Keeps what was answered; with `late` somebody else was faster."""

    late: bool = False
    answered: list[tuple[str, object, str]] = field(default_factory=list)

    def answer(self, input_id: str, answer: object, *, answered_by: str, at_ms: int) -> None:
        if self.late:
            raise NotPending("resolved already")
        self.answered.append((input_id, answer, answered_by))


class Bench:
    """A lane of one run with everything under it."""

    def __init__(self, on_input: str = "wait") -> None:
        self.store = Answering()
        self.saver: Saver = make_saver()
        self.alarm = ManualAlarm()
        self.clock = CountingClock()
        self.log, self.stream = make_log()
        self.inbox = Inbox(self.store, self.log)  # type: ignore[arg-type]
        recorder = Recorder(self.store, FakeLease(), self.saver, self.clock, self.alarm)  # type: ignore[arg-type]
        self.feeds = OneFeed()
        parts = (self.store, FakeLease(), self.saver, recorder, self.feeds, self.inbox, self.clock, self.alarm)
        self.session = Session(SESSION, *parts, LiveState(STATUS, {}))  # type: ignore[arg-type]
        self.run: Run = make_run(on_input=on_input)
        self.store.runs[self.run.id] = self.run
        self.scope = Scope(self.alarm)
        self.lane = MainLane(self.session, self.run, self.scope)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.store.events]

    def settle(self, outcome: TurnOutcome = DONE, stop: threading.Event | None = None) -> bool:
        return settle(self.session, self.run.id, outcome, "run", stop or threading.Event(), self.log)


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- emitting --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("journal.durable")
def test_a_durable_event_is_committed_with_all_before_it(bench: Bench) -> None:
    bench.lane.emit(e.Notice(level="info", origin="a", message="a"))
    assert bench.kinds == []
    bench.lane.emit(e.ToolStarted(call_id="c", name="Bash", args={}), durable=True)
    assert bench.kinds == ["notice", "tool.started"]
    assert {item.run_id for batch in bench.store.batches for item in batch.events} == {bench.run.id}


def test_a_durable_event_that_is_refused_ends_the_run(bench: Bench) -> None:
    bench.store.answers = [FULL]
    with pytest.raises(PersistFailed) as caught:
        bench.lane.emit(e.ToolStarted(call_id="c", name="Bash", args={}), durable=True)
    assert (caught.value.error.code, caught.value.error.details) == ("persist_failed", {"reason": "store_unavailable"})


@pytest.mark.requirement("events.status")
def test_the_status_is_an_event_only_when_it_changes(bench: Bench) -> None:
    bench.session.saver.history.meta["agent"] = "main"
    for iteration in (1, 1, 2, 2, 2, 1):
        bench.lane.emit(replace(STATUS, iteration=iteration))
    bench.lane.emit(e.ToolStarted(call_id="c", name="Bash", args={}), durable=True)
    assert [event.iteration for event in bench.store.events if isinstance(event, e.StatusChanged)] == [2, 1]
    assert bench.session.live.meta == {"agent": "main"}
    assert bench.session.live.status.iteration == 1


def test_the_first_delta_is_shown_at_once_and_those_that_follow_are_joined_until_the_interval_is_over(
    bench: Bench,
) -> None:
    with bench.feeds.feed.transients() as shown:
        bench.lane.transient(e.Delta("m", 0, "H"))
        assert list(shown) == [e.Delta("m", 0, "H")]
        assert not bench.alarm.waiting
        bench.lane.transient(e.Delta("m", 1, "el"))
        bench.lane.transient(e.Delta("m", 3, "lo"))
        assert len(shown) == 1
        (delay_ms,) = [delay for delay, _ in bench.alarm.waiting]
        assert 0 < delay_ms < limits.DELTA_INTERVAL_MS
        bench.alarm.ring()
        assert list(shown)[1:] == [e.Delta("m", 1, "ello")]
        bench.lane.transient(e.Delta("m", 5, "!", thinking=False))
        bench.lane.transient(e.Delta("m", 0, "hm", thinking=True))
        assert list(shown)[2:] == [e.Delta("m", 5, "!")]
        bench.lane.transient(e.ToolOutput("Bash", "line"))
        assert list(shown)[3:] == [e.Delta("m", 0, "hm", True), e.ToolOutput("Bash", "line")]


def test_a_delta_after_a_silence_is_shown_at_once_again(bench: Bench) -> None:
    with bench.feeds.feed.transients() as shown:
        for offset in range(3):
            bench.lane.transient(e.Delta("m", offset, "x"))
            bench.clock.at_ms += limits.DELTA_INTERVAL_MS
        assert [item.offset for item in shown if isinstance(item, e.Delta)] == [0, 1, 2]
        assert not bench.alarm.waiting


def test_deltas_come_before_the_event_that_supersedes_them(bench: Bench) -> None:
    with bench.feeds.feed.transients() as shown:
        bench.lane.transient(e.Delta("m", 0, "Hello"))
        bench.lane.emit(e.MessageAssistant(message_id="m", content="Hello"))
        assert list(shown) == [e.Delta("m", 0, "Hello")]


# --- saving ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("runs.outcome.persist-failed")
def test_a_refused_checkpoint_ends_the_run_and_is_told(bench: Bench) -> None:
    bench.saver.history.append(Message("user", "hello"))
    bench.store.answers = [FULL]
    with pytest.raises(PersistFailed):
        bench.lane.checkpoint(bench.saver.history)
    assert bench.settle(TurnOutcome("failed", RunError("persist_failed", "no room"))) is True
    assert bench.kinds == ["session.persist_failed", "run.finished", "session.persisted", "run.persisted"]
    (checkpoint,) = [batch.checkpoint for batch in bench.store.batches if batch.checkpoint]
    assert checkpoint.messages == 1


def test_a_session_that_was_taken_over_cancels_the_run(bench: Bench) -> None:
    for act in (
        lambda: bench.lane.checkpoint(bench.saver.history),
        lambda: bench.lane.emit(e.ToolStarted(call_id="c", name="Bash", args={}), durable=True),
    ):
        bench.store.answers = [LeaseLost("somebody else")]
        with pytest.raises(Cancelled) as caught:
            act()
        assert caught.value.reason == bench.scope.reason == "lease_lost"


# --- asking ----------------------------------------------------------------------------------------------------------


def test_under_block_nothing_is_asked() -> None:
    bench = Bench(on_input="block")
    with bench.inbox.live(bench.run.id, bench.scope), pytest.raises(InputRequired):
        bench.lane.ask(QUESTION)
    assert bench.kinds == []


@pytest.mark.parametrize(("kind", "answer"), [("ask", None), ("confirm", "deny")])
@pytest.mark.parametrize("late", [False, True])
def test_a_cancelled_question_is_dismissed_and_the_cancel_wins(
    bench: Bench, kind: str, answer: str | None, late: bool
) -> None:
    bench.store.late = late
    question = Question("confirm" if kind == "confirm" else "ask", "Why?")
    raised: list[Exception] = []

    def ask() -> None:
        try:
            bench.lane.ask(question)
        except Cancelled as error:
            raised.append(error)

    with bench.inbox.live(bench.run.id, bench.scope):
        thread = threading.Thread(target=ask)
        thread.start()
        bench.scope.cancel("request")
        thread.join(10)
    assert [str(error) for error in raised] == ["request"]
    assert bench.kinds == ["input.required"]
    assert [(given, by) for _, given, by in bench.store.answered] == ([] if late else [(answer, "cancel")])


def test_an_answer_is_what_was_committed(bench: Bench) -> None:
    answers: list[Answer] = []
    with bench.inbox.live(bench.run.id, bench.scope):
        thread = threading.Thread(target=lambda: answers.append(bench.lane.ask(QUESTION)))
        thread.start()
        asked = _wait_for_question(bench)
        bench.store.inputs[asked] = Input(asked, SESSION, bench.run.id, "ask", "answered", {}, "because", None)
        bench.store.ring()
        thread.join(10)
    assert answers == [Answer("because")]


def _wait_for_question(bench: Bench) -> str:
    done = threading.Event()
    while not (found := [event for event in bench.store.events if isinstance(event, e.InputRequired)]):
        assert not done.wait(0.001)
    return found[0].input_id


# --- settling --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("runs.persisted.after-save")
def test_a_run_ends_in_one_commit_with_its_save(bench: Bench) -> None:
    bench.saver.history.append(Message("user", "hello"))
    assert bench.settle() is True
    (batch,) = bench.store.batches
    assert [item.event.kind for item in batch.events] == ["run.finished", "session.persisted", "run.persisted"]
    finished = batch.events[0].event
    assert isinstance(finished, e.RunFinished)
    assert (finished.outcome, finished.result and finished.result.content) == ("completed", "done")
    assert batch.checkpoint is not None


@pytest.mark.requirement("runs.cancel.too-late")
def test_a_cancel_after_the_work_leaves_the_outcome_as_it_is(bench: Bench) -> None:
    bench.scope.cancel("request")
    assert bench.settle() is True
    finished = bench.store.events[0]
    assert isinstance(finished, e.RunFinished)
    assert (finished.outcome, finished.error) == ("completed", None)
    assert bench.kinds[-1] == "run.persisted"


@pytest.mark.requirement("runs.persist-failed")
def test_a_refused_save_ends_the_run_persist_failed_with_the_ballasts_room(bench: Bench) -> None:
    bench.store.answers = [FULL]
    assert bench.settle() is True
    assert bench.kinds == ["run.finished", "session.persist_failed", "run.persist_failed"]
    assert [batch.essential for batch in bench.store.tried] == [False, True]
    assert bench.store.batches[-1].checkpoint is None


def test_a_refused_terminal_record_is_tried_again_until_it_is_stored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling.limits, "SETTLE_RETRY_MS", 1)
    bench.store.answers = [FULL, FULL, FULL, FULL]
    assert bench.settle() is True
    assert bench.kinds == ["run.finished", "session.persist_failed", "run.persist_failed"]
    assert len(bench.store.tried) == 5


def test_a_server_that_stops_gives_the_terminal_record_up(bench: Bench) -> None:
    stop = threading.Event()
    stop.set()
    bench.store.answers = [FULL, FULL]
    assert bench.settle(stop=stop) is False
    assert bench.kinds == []
    assert "refused" in bench.stream.getvalue()


def test_a_last_commit_in_doubt_that_comes_true_is_the_terminal_record(bench: Bench) -> None:
    bench.saver.history.append(Message("user", "hello"))
    bench.store.answers = [StuckCommit(begun=True)]

    def get_run(run_id: str) -> Run:
        ended = "run.persisted" in bench.kinds
        return replace(bench.run, state="persisted" if ended else "running")

    bench.store.get_run = get_run  # type: ignore[method-assign]
    assert bench.settle() is True
    assert bench.kinds == ["run.finished", "session.persisted", "run.persisted"]
    assert bench.saver.messages == 1, "the next run goes on from what is really saved"


def test_a_lost_session_is_left_to_its_new_holder(bench: Bench) -> None:
    bench.store.answers = [LeaseLost("somebody else")]
    assert bench.settle() is False
    assert len(bench.store.tried) == 1


def test_a_fault_of_ours_still_ends_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bench.saver, "prepare", broken)
    assert bench.settle() is True
    assert bench.kinds == ["run.finished", "session.persist_failed", "run.persist_failed"]
    assert "fault" in bench.stream.getvalue()
    error = next(event.error for event in bench.store.events if isinstance(event, e.RunPersistFailed))
    assert "ZeroDivisionError" not in error.message
