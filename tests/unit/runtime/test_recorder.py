"""The recorder over a store from a script: order, shared commits, refusals, commits in doubt."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from aura import events as e
from aura import limits
from aura.conversation import Message
from aura.errors import CommitInDoubt, LeaseLost, StoreFull, StoreUnavailable
from aura.events import Event
from aura.runtime.recorder import Recorder
from aura.runtime.saver import Saver
from aura.store.protocol import Batch, Checkpoint, Receipt
from tests.support.lane import CountingClock
from tests.support.runtime_kit import FakeLease, FakeStore, ManualAlarm, StuckCommit, make_saver

FULL = StoreFull("there is no room")


@dataclass
class Bench:
    """A recorder and the parts around it."""

    store: FakeStore = field(default_factory=FakeStore)
    saver: Saver = field(default_factory=make_saver)
    alarm: ManualAlarm = field(default_factory=ManualAlarm)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.store, FakeLease(), self.saver, CountingClock(), self.alarm)  # type: ignore[arg-type]

    def record(self, *texts: str) -> None:
        for text in texts:
            self.recorder.record(notice(text), "run_1")

    def commit(self, *texts: str, essential: bool = False) -> None:
        self.recorder.commit(tuple(notice(text) for text in texts), "run_1", essential=essential)

    def say(self, text: str) -> None:
        self.saver.history.append(Message("user", text))

    @property
    def texts(self) -> list[str]:
        return [text_of(event) for event in self.store.events]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        return [batch.checkpoint for batch in self.store.batches if batch.checkpoint is not None]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def notice(text: str) -> e.Notice:
    return e.Notice(level="info", origin="test", message=text)


def text_of(event: Event) -> str:
    return event.message if isinstance(event, e.Notice) else event.kind


def texts_of(batch: Batch) -> list[str]:
    return [text_of(item.event) for item in batch.events]


def contents(checkpoint: Checkpoint) -> list[str]:
    return [part.decode().split('"Content":"')[1].split('"')[0] for part in (m.body for m in checkpoint.new_messages)]


def test_recorded_events_wait_for_a_commit_to_share(bench: Bench) -> None:
    bench.record("a", "b", "c")
    assert bench.store.tried == []
    assert [delay for delay, _ in bench.alarm.waiting] == [limits.RECORD_DELAY_MS]
    bench.alarm.ring()
    assert [texts_of(batch) for batch in bench.store.batches] == [["a", "b", "c"]]
    bench.record("d")
    bench.alarm.ring()
    assert bench.texts == ["a", "b", "c", "d"]


def test_a_commit_takes_along_what_was_recorded_before_it(bench: Bench) -> None:
    bench.record("a", "b")
    bench.commit("c")
    assert [texts_of(batch) for batch in bench.store.batches] == [["a", "b", "c"]]
    bench.alarm.ring()
    assert len(bench.store.tried) == 1
    times = [item.at_ms for item in bench.store.batches[0].events]
    assert times == sorted(times)


def test_a_commit_of_nothing_writes_nothing(bench: Bench) -> None:
    bench.commit()
    assert bench.store.tried == []


def test_a_refused_commit_drops_its_own_events_and_keeps_the_earlier_ones(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [FULL]
    with pytest.raises(StoreFull):
        bench.commit("b")
    bench.record("c")
    bench.commit("d", essential=True)
    assert bench.texts == ["a", "c", "d"]
    assert [batch.essential for batch in bench.store.tried] == [False, True]


def test_a_refused_flush_is_repeated_before_anything_later_and_without_a_commit(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [FULL]
    bench.alarm.ring()
    bench.record("b")
    assert (limits.SETTLE_RETRY_MS in [delay for delay, _ in bench.alarm.waiting], bench.texts) == (True, [])
    while bench.alarm.waiting:
        bench.alarm.ring()
    assert bench.texts == ["a", "b"]


def test_a_flush_that_could_not_be_queued_is_taken_along_by_the_next_commit() -> None:
    class Closed(FakeStore):
        def commit(self, lease: object, batch: Batch) -> Future[Receipt]:
            if not self.batches and not self.tried:
                self.tried.append(batch)
                raise StoreUnavailable("the queue is full")
            return super().commit(lease, batch)  # type: ignore[arg-type]

    bench = Bench(store=Closed())
    bench.record("a")
    bench.alarm.ring()
    bench.commit("b")
    assert bench.texts == ["a", "b"]


def test_a_commit_waits_for_the_flush_that_is_under_way(bench: Bench) -> None:
    under_way: Future[Receipt] = Future()
    bench.store.answers = [under_way]
    bench.record("a")
    bench.alarm.ring()
    thread = threading.Thread(target=bench.commit, args=("b",))
    thread.start()
    bench.store.come_true(bench.store.tried[0])
    assert bench.texts == ["a"]
    under_way.set_result(Receipt(1, 1, None))
    thread.join(10)
    assert bench.texts == ["a", "b"]


def test_a_flush_that_fails_under_a_waiting_commit_is_part_of_that_commit(bench: Bench) -> None:
    under_way: Future[Receipt] = Future()
    bench.store.answers = [under_way]
    bench.record("a")
    bench.alarm.ring()
    thread = threading.Thread(target=bench.commit, args=("b",))
    thread.start()
    under_way.set_exception(FULL)
    thread.join(10)
    assert [texts_of(batch) for batch in bench.store.batches] == [["a", "b"]]


def test_while_a_flush_is_under_way_later_events_wait_for_their_turn(bench: Bench) -> None:
    under_way: Future[Receipt] = Future()
    bench.store.answers = [under_way]
    bench.record("a")
    bench.alarm.ring()
    bench.record("b")
    bench.alarm.ring()
    assert len(bench.store.tried) == 1
    bench.store.come_true(bench.store.tried[0])
    under_way.set_result(Receipt(1, 1, None))
    bench.alarm.ring()
    assert bench.texts == ["a", "b"]


def test_a_commit_in_doubt_is_repeated_first_and_under_its_own_name(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [StuckCommit(begun=True)]
    with pytest.raises(CommitInDoubt):
        bench.commit("b")
    bench.record("c")
    bench.alarm.ring()
    assert len(bench.store.tried) == 1, "nothing may overtake what is in doubt"
    bench.commit("d")
    first, again, last = bench.store.tried
    assert (first.id, texts_of(again), texts_of(last)) == (again.id, ["a", "b"], ["c", "d"])
    assert bench.texts == ["a", "b", "c", "d"]


def test_what_was_in_doubt_and_is_then_refused_loses_only_its_own_events(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [StuckCommit(begun=True), FULL]
    with pytest.raises(CommitInDoubt):
        bench.commit("b")
    bench.commit("c")
    assert bench.texts == ["a", "c"]


def test_what_was_in_doubt_stays_so_when_its_repeat_was_taken_back(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [StuckCommit(begun=True), StuckCommit(begun=False)]
    with pytest.raises(CommitInDoubt):
        bench.commit("b")
    with pytest.raises(StoreUnavailable):
        bench.commit("c")
    bench.commit("d")
    assert bench.texts == ["a", "b", "d"]


def test_a_commit_that_was_taken_back_is_a_refusal(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [StuckCommit(begun=False)]
    with pytest.raises(StoreUnavailable) as caught:
        bench.commit("b")
    assert not isinstance(caught.value, CommitInDoubt)
    bench.commit("c")
    assert bench.texts == ["a", "c"]


def test_settling_finds_out_what_became_of_a_commit_in_doubt(bench: Bench) -> None:
    bench.store.answers = [StuckCommit(begun=True)]
    with pytest.raises(CommitInDoubt):
        bench.commit("a")
    bench.recorder.settle_earlier()
    assert bench.texts == ["a"]


def test_a_save_stores_what_is_new_and_only_then_counts_it_as_saved(bench: Bench) -> None:
    bench.say("one")
    bench.recorder.save("checkpoint", "run_1", before=(notice("before"),), after=(notice("after"),))
    assert bench.texts == ["before", "session.persisted", "after"]
    bench.say("two")
    bench.store.answers = [FULL]
    with pytest.raises(StoreFull):
        bench.recorder.save("checkpoint", "run_1")
    bench.say("three")
    bench.recorder.save("run", "run_1")
    assert [contents(checkpoint) for checkpoint in bench.checkpoints] == [["one"], ["two", "three"]]
    assert bench.saver.revision == bench.checkpoints[-1].revision


def test_a_save_that_was_in_doubt_is_not_saved_a_second_time(bench: Bench) -> None:
    bench.say("one")
    bench.store.answers = [StuckCommit(begun=True)]
    with pytest.raises(CommitInDoubt):
        bench.recorder.save("checkpoint", "run_1")
    bench.say("two")
    bench.recorder.save("run", "run_1")
    assert [contents(checkpoint) for checkpoint in bench.checkpoints] == [["one"], ["two"]]
    assert bench.saver.messages == 2


def test_a_save_that_was_in_doubt_and_refused_is_saved_with_the_next_one(bench: Bench) -> None:
    bench.say("one")
    bench.store.answers = [StuckCommit(begun=True), FULL]
    with pytest.raises(CommitInDoubt):
        bench.recorder.save("checkpoint", "run_1")
    bench.say("two")
    bench.recorder.save("run", "run_1")
    assert [contents(checkpoint) for checkpoint in bench.checkpoints] == [["one", "two"]]


def test_a_lost_lease_is_told_to_whoever_commits(bench: Bench) -> None:
    bench.record("a")
    bench.store.answers = [LeaseLost("somebody else holds it")]
    with pytest.raises(LeaseLost):
        bench.commit("b")


def test_events_of_many_threads_all_come_once_and_in_the_order_of_their_thread(bench: Bench) -> None:
    def work(name: int) -> None:
        for number in range(50):
            if number % 10 == 9:
                bench.commit(f"{name} {number}")
            else:
                bench.record(f"{name} {number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    bench.commit("end")
    for name in range(4):
        mine = [text for text in bench.texts if text.startswith(f"{name} ")]
        assert mine == [f"{name} {number}" for number in range(50)]
