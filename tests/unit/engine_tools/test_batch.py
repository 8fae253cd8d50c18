"""All calls of one message: order, concurrency, interruptions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from aura.config.spec import PolicySpec, ToolsSpec
from aura.engine.call import CANCELLED, NOBODY_TO_ASK, NOT_RUN
from aura.engine.filters.base import ContextUse
from aura.engine.lane import Answer, InputRequired
from aura.engine.scope import Cancelled
from aura.events import ToolFinished, ToolStarted
from tests.support.bench import Bench
from tests.support.lane import RecordingLane
from tests.unit.engine_tools.test_pipeline import Probe


def order(bench: Bench) -> list[str]:
    """The events as `+id` for a start and `-id` for a finish."""
    signs = {ToolStarted: "+", ToolFinished: "-"}
    return [signs[type(event)] + event.call_id for event in bench.lane.events if isinstance(event, tuple(signs))]


def bench_of(tmp_path: Path, *tools: Probe, spec: ToolsSpec | None = None) -> Bench:
    """A bench with these tools."""
    return Bench(tmp_path, spec=spec or ToolsSpec(), options={"tools": tools})


def meeting(parties: int) -> Callable[[], str]:
    """An action that ends only when so many calls are in it at once."""
    barrier = threading.Barrier(parties)

    def meet() -> str:
        barrier.wait(20)
        return "met"

    return meet


def test_an_empty_batch_has_no_result(tmp_path: Path) -> None:
    outcome = Bench(tmp_path).batch()
    assert (outcome.results, outcome.messages, outcome.interruption) == ((), (), None)


def test_read_only_calls_run_at_the_same_time_and_end_in_call_order(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, Probe(meeting(3), read_only=True))
    outcome = bench.batch(("Probe", {}), ("Probe", {}), ("Probe", {}))
    assert [result.text for result in outcome.results] == ["met"] * 3
    assert order(bench) == ["+c0", "+c1", "+c2", "-c0", "-c1", "-c2"]


def test_results_keep_the_call_order_when_the_last_call_ends_first(tmp_path: Path) -> None:
    last_done = threading.Event()

    def first() -> str:
        assert last_done.wait(20)
        return "first"

    def last() -> str:
        last_done.set()
        return "last"

    bench = bench_of(tmp_path, Probe(first, read_only=True, name="First"), Probe(last, read_only=True, name="Last"))
    outcome = bench.batch(("First", {}), ("Last", {}))
    assert [message.content for message in outcome.messages] == ["first", "last"]
    assert order(bench) == ["+c0", "+c1", "-c0", "-c1"]


def test_parallel_false_runs_everything_in_order(tmp_path: Path) -> None:
    inside = threading.Lock()

    def alone() -> str:
        assert inside.acquire(blocking=False), "two calls at once"
        inside.release()
        return "done"

    bench = bench_of(tmp_path, Probe(alone, read_only=True), spec=ToolsSpec(parallel=False))
    bench.batch(("Probe", {}), ("Probe", {}))
    assert order(bench) == ["+c0", "-c0", "+c1", "-c1"]


def test_a_call_that_changes_something_separates_the_groups(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    write = ("Write", {"path": "a", "content": "x"})
    outcome = bench.batch(("Ls", {}), write, ("Read", {"path": "a"}), ("Ls", {}))
    assert [result.text for result in outcome.results] == ["Empty directory", "W a (1 bytes)", "1: x", "a"]
    assert order(bench) == ["+c0", "-c0", "+c1", "-c1", "+c2", "+c3", "-c2", "-c3"]


def test_a_read_earlier_in_the_batch_counts_for_an_edit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    edit = ("Edit", {"file_path": "a", "old_string": "old", "new_string": "new"})
    outcome = Bench(tmp_path).batch(("Read", {"path": "a"}), edit)
    assert [result.status for result in outcome.results] == ["ok", "ok"]


def test_messages_pair_with_their_calls(tmp_path: Path) -> None:
    outcome = Bench(tmp_path).batch(("TodoList", {}), ("Nonsense", {}), ("Ls", {"x": 1}))
    assert [(m.role, m.tool_call_id, m.tool_name) for m in outcome.messages] == [
        ("tool", "c0", "TodoList"),
        ("tool", "c1", "Nonsense"),
        ("tool", "c2", "Ls"),
    ]
    assert len({message.id for message in outcome.messages}) == 3
    assert all(message.id.startswith("msg_") and message.created_at.endswith("Z") for message in outcome.messages)
    assert outcome.messages[1].content.startswith("Error: ")


def test_one_failure_leaves_the_neighbours_alone(tmp_path: Path) -> None:
    def fail() -> str:
        raise ZeroDivisionError

    bench = bench_of(tmp_path, Probe(read_only=True), Probe(fail, read_only=True, name="Bad"))
    outcome = bench.batch(("Probe", {}), ("Bad", {}), ("Probe", {}))
    assert [result.status for result in outcome.results] == ["ok", "error", "ok"]
    assert outcome.interruption is None


def test_a_cancel_in_the_middle_gives_every_call_a_result(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, Probe(name="Stop"), Probe(), Probe(read_only=True, name="Look"))
    stop, probe, look = bench.toolbox.tools
    assert isinstance(stop, Probe)
    stop.action = lambda: str(bench.lane.scope.cancel("request"))
    outcome = bench.batch(("Probe", {}), ("Stop", {}), ("Probe", {}), ("Look", {}), ("Look", {}))
    assert [result.error for result in outcome.results] == [None, None, CANCELLED, CANCELLED, CANCELLED]
    assert isinstance(outcome.interruption, Cancelled)
    assert outcome.interruption.reason == "request"
    assert isinstance(probe, Probe)
    assert isinstance(look, Probe)
    assert (len(probe.seen), len(look.seen)) == (1, 0)
    assert order(bench) == [sign + f"c{n}" for n in range(5) for sign in "+-"]


def test_an_ask_that_blocks_ends_the_rest_but_not_what_came_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    write = ("Write", {"path": "a", "content": "x"})
    outcome = bench.batch(write, ("Ask", {"question": "which?"}), ("Write", {"path": "b", "content": "x"}), ("Ls", {}))
    assert [result.error for result in outcome.results] == [None, NOBODY_TO_ASK, NOT_RUN, NOT_RUN]
    assert isinstance(outcome.interruption, InputRequired)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert order(bench) == [sign + f"c{n}" for n in range(4) for sign in "+-"]


def test_a_confirm_that_blocks_within_a_group_lets_its_predecessors_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path, spec=ToolsSpec(policy=PolicySpec(confirm=("Glob",))))
    outcome = bench.batch(("Ls", {}), ("Glob", {"pattern": "*"}), ("Ls", {}))
    assert [result.error for result in outcome.results] == [None, NOBODY_TO_ASK, NOT_RUN]
    assert len(bench.lane.questions) == 1
    assert isinstance(outcome.interruption, InputRequired)


def test_a_denied_call_does_not_stop_the_batch(tmp_path: Path) -> None:
    lane = RecordingLane(answers=[Answer("deny")])
    bench = Bench(tmp_path, lane=lane, spec=ToolsSpec(policy=PolicySpec(confirm=("Write:a",))))
    outcome = bench.batch(("Write", {"path": "a", "content": ""}), ("Write", {"path": "b", "content": ""}))
    assert [result.status for result in outcome.results] == ["error", "ok"]
    assert outcome.interruption is None


def test_results_of_one_batch_share_the_room_that_is_left(tmp_path: Path) -> None:
    use = {"context_use": lambda: ContextUse(0, 1000), "tools": (Probe(lambda: "x" * 2400, read_only=True),)}
    bench = Bench(tmp_path, options=use)
    outcome = bench.batch(("Probe", {}), ("Probe", {}))
    assert outcome.results[0].text == "x" * 2400
    assert outcome.results[1].text.startswith("The result of Probe was left out")
