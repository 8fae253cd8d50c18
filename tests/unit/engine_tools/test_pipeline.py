"""The way of one call: events, gates, filters, faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aura import limits
from aura.config.spec import PolicySpec, ToolsSpec
from aura.conversation import Call
from aura.engine.call import CANCELLED, Site, perform
from aura.engine.filters.base import ContextUse, Filter, FilterContext
from aura.engine.gates.base import Allow, Ask, Decision, Gate, GateContext, Refuse, Rewrite, Stop
from aura.engine.lane import Answer, InputRequired, Question
from aura.engine.scope import Cancelled
from aura.engine.tools import schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.errors import StoreUnavailable
from aura.events import Event, Notice, ToolFinished, ToolStarted
from aura.jsontypes import JsonValue
from tests.support.bench import Bench
from tests.support.lane import RecordingLane


@dataclass
class Probe:
    """A tool that does what it is told and remembers its arguments."""

    action: Callable[[], str] = lambda: "done"
    read_only: bool = False
    parallel: bool = True
    name: str = "Probe"
    seen: list[Mapping[str, JsonValue]] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        """A tool with one optional parameter."""
        parameters = schema.declare({"x": {"type": "string"}})
        return ToolSpec(self.name, "A probe.", parameters, self.read_only, self.parallel, "x")

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Do it."""
        self.seen.append(arguments)
        return self.action()


def names(bench: Bench) -> list[str]:
    """The kinds of the events so far."""
    return [event.kind for event in bench.lane.events]


def test_a_start_is_durable_unless_the_tool_only_reads(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    bench = Bench(tmp_path)
    bench.ok("Write", path="b", content="x")
    bench.ok("Read", path="a")
    assert [(event.kind, durable) for event, durable in bench.lane.emitted] == [
        ("tool.started", True),
        ("tool.finished", False),
        ("tool.started", False),
        ("tool.finished", False),
    ]
    started, finished = bench.lane.events[:2]
    assert started == ToolStarted(call_id="call_1", name="Write", args={"path": "b", "content": "x"})
    assert finished == ToolFinished(call_id="call_1", name="Write", status="ok", result="W b (1 bytes)")


def test_nothing_happens_when_the_start_cannot_be_recorded(tmp_path: Path) -> None:
    class BrokenLane(RecordingLane):
        def emit(self, event: Event, *, durable: bool = False) -> None:
            raise StoreUnavailable("the disk is full")

    bench = Bench(tmp_path, lane=BrokenLane())
    with pytest.raises(StoreUnavailable):
        bench.call("Write", path="a", content="x")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("spec", "name", "text"),
    [
        (ToolsSpec(), "Nonsense", "there is no tool named 'Nonsense'; the tools are: Read, Write"),
        (ToolsSpec(), "read", "there is no tool named 'read'"),
        (ToolsSpec(disabled=("R*",)), "Read", "the tool Read is disabled for this agent"),
        (ToolsSpec(enabled=("W*",)), "Read", "the tool Read is disabled"),
    ],
)
def test_unknown_and_disabled_tools_are_told_apart(tmp_path: Path, spec: ToolsSpec, name: str, text: str) -> None:
    bench = Bench(tmp_path, spec=spec)
    assert bench.error(name, path="x").startswith(text)
    assert names(bench) == ["tool.started", "tool.finished"]


def test_definitions_follow_the_globs(tmp_path: Path) -> None:
    def offered(*enabled: str, disabled: tuple[str, ...] = ()) -> list[str]:
        spec = ToolsSpec(enabled=enabled, disabled=disabled)
        return [definition.name for definition in Bench(tmp_path, spec=spec).toolbox.definitions()]

    assert offered("Todo*", disabled=("*List",)) == ["TodoCreate", "TodoProgress"]
    assert offered("todo*") == []
    assert len(offered()) == 11
    assert offered("*", disabled=("*",)) == []
    assert offered("[R]ead", "Rea?") == []


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (ToolError("no such thing"), "no such thing"),
        (ValueError("odd"), "Probe failed unexpectedly (ValueError: odd)"),
        (RecursionError(), "Probe failed unexpectedly (RecursionError: )"),
        (OSError(28, "No space left on device", "/x"), "No space left on device: /x"),
        (StoreUnavailable("the store is busy"), "the store is busy"),
    ],
)
def test_every_fault_of_a_tool_becomes_a_result(tmp_path: Path, fault: Exception, text: str) -> None:
    def fail() -> str:
        raise fault

    bench = Bench(tmp_path, options={"tools": (Probe(fail),)})
    assert bench.error("Probe") == text
    finished = bench.lane.events[-1]
    assert isinstance(finished, ToolFinished)
    assert (finished.status, finished.result, finished.error) == ("error", f"Error: {text}", text)


def test_text_that_no_store_can_take_is_replaced(tmp_path: Path) -> None:
    bench = Bench(tmp_path, options={"tools": (Probe(lambda: "a\0b\ud800c"),)})
    assert bench.ok("Probe") == "a\ufffdb\ufffdc"


def test_a_cancelled_call_is_not_run(tmp_path: Path) -> None:
    probe = Probe()
    bench = Bench(tmp_path, options={"tools": (probe,)})
    bench.lane.scope.cancel("shutdown")
    result = bench.call("Probe")
    assert result.error == CANCELLED
    assert isinstance(result.interruption, Cancelled)
    assert result.interruption.reason == "shutdown"
    assert probe.seen == []
    assert names(bench) == ["tool.started", "tool.finished"]


def gated(tmp_path: Path, *gates: Callable[[Call, GateContext], Decision], answers: tuple[Answer, ...] = ()) -> Bench:
    """A bench with a probe behind these gates."""
    chain = tuple(Gate(f"gate{position}", gate) for position, gate in enumerate(gates))
    return Bench(tmp_path, lane=RecordingLane(answers=list(answers)), options={"tools": (Probe(),), "gates": chain})


def ran(bench: Bench) -> list[Mapping[str, JsonValue]]:
    """The arguments that the probe got."""
    probe = bench.toolbox.tools[0]
    assert isinstance(probe, Probe)
    return probe.seen


def test_the_first_refusal_ends_the_chain(tmp_path: Path) -> None:
    asked: list[str] = []

    def later(call: Call, context: GateContext) -> Decision:
        asked.append(call.name)
        return Allow()

    bench = gated(tmp_path, lambda call, context: Refuse("blocked", "not today"), later)
    assert bench.error("Probe") == "not today"
    assert (asked, ran(bench)) == ([], [])
    assert names(bench) == ["tool.started", "tool.finished"]


def test_a_gate_that_raises_refuses(tmp_path: Path) -> None:
    def broken(call: Call, context: GateContext) -> Decision:
        raise KeyError("secret detail")

    bench = gated(tmp_path, broken)
    assert bench.error("Probe") == "the gate0 check failed (KeyError), so Probe was not run"
    assert ran(bench) == []


def test_all_questions_are_asked_as_one(tmp_path: Path) -> None:
    bench = gated(
        tmp_path,
        lambda call, context: Ask("one reason", "Probe:a*"),
        lambda call, context: Ask("another reason", "Probe:*"),
        answers=(Answer("allow_session"),),
    )
    bench.ok("Probe", x="ab")
    assert [question.question for question in bench.lane.questions] == ["Run Probe? one reason; another reason."]
    assert bench.history.meta == {"session_approvals": {"Probe:a*": True, "Probe:*": True}}


def test_a_refusal_after_a_question_asks_nobody(tmp_path: Path) -> None:
    bench = gated(tmp_path, lambda call, context: Ask("why", None), lambda call, context: Refuse("denied", "no"))
    assert bench.error("Probe") == "no"
    assert bench.lane.questions == []


def test_a_rewritten_call_is_validated_and_passes_all_gates_again(tmp_path: Path) -> None:
    looked: list[JsonValue] = []

    def look(call: Call, context: GateContext) -> Decision:
        looked.append(call.arguments.get("x"))
        return Allow()

    def rewrite(call: Call, context: GateContext) -> Decision:
        return Allow() if context.rewritten else Rewrite({"x": "safe"})

    bench = gated(tmp_path, look, rewrite)
    bench.ok("Probe", x="raw")
    assert (looked, ran(bench)) == (["raw", "safe"], [{"x": "safe"}])
    started = bench.lane.events[0]
    assert isinstance(started, ToolStarted)
    assert started.args == {"x": "safe"}


def test_a_bad_or_repeated_rewrite_refuses(tmp_path: Path) -> None:
    assert "unknown parameter" in gated(tmp_path, lambda call, context: Rewrite({"y": "z"})).error("Probe")
    assert "a second time" in gated(tmp_path, lambda call, context: Rewrite({"x": "z"})).error("Probe")


def test_a_stop_ends_the_run_by_policy(tmp_path: Path) -> None:
    bench = gated(tmp_path, lambda call, context: Stop("this goes too far"))
    result = bench.call("Probe")
    assert result.error == "this goes too far"
    assert isinstance(result.interruption, Cancelled)
    assert result.interruption.reason == bench.lane.scope.reason == "policy_stop"


def test_a_cancel_beats_an_approval_of_the_same_instant(tmp_path: Path) -> None:
    class LateLane(RecordingLane):
        def ask(self, question: Question) -> Answer:
            self.scope.cancel("request")
            return Answer("allow")

    bench = Bench(tmp_path, lane=LateLane(), spec=ToolsSpec(policy=PolicySpec(confirm=("Write",))))
    assert bench.error("Write", path="a", content="x") == CANCELLED
    assert not (tmp_path / "a").exists()


def test_nobody_to_ask_is_an_interruption_and_runs_nothing(tmp_path: Path) -> None:
    bench = gated(tmp_path, lambda call, context: Ask("why", None))
    result = bench.call("Probe")
    assert isinstance(result.interruption, InputRequired)
    assert result.error is not None
    assert "needs an answer" in result.error
    assert ran(bench) == []


def test_a_huge_approval_detail_is_cut(tmp_path: Path) -> None:
    bench = gated(tmp_path, lambda call, context: Ask("why", None), answers=(Answer("allow"),))
    bench.ok("Probe", x="é" * 100_000)
    detail = bench.lane.questions[0].detail
    assert detail is not None
    assert len(detail.encode()) < 17_000
    assert detail.endswith("[… 200000 bytes in all …]")


@pytest.mark.parametrize(
    ("use", "size_bytes", "kept"),
    [
        (ContextUse(0, 0), 400, True),
        (ContextUse(0, 0), 401, False),
        (ContextUse(900, 1000), 200, True),
        (ContextUse(901, 1000), 200, False),
        (ContextUse(2000, 1000), 4, False),
    ],
)
def test_a_result_that_would_overfill_the_context_is_replaced(
    tmp_path: Path, use: ContextUse, size_bytes: int, kept: bool
) -> None:
    options = {"tools": (Probe(lambda: "x" * size_bytes),), "context_use": lambda: use}
    bench = Bench(tmp_path, spec=ToolsSpec(result_max_tokens=100, result_max_percentage=95), options=options)
    text = bench.ok("Probe")
    assert (text == "x" * size_bytes) is kept
    assert kept or text.startswith("The result of Probe was left out")


@pytest.mark.parametrize("unit", ["x", "ü", "\U0001f600", "\n"])
def test_a_result_over_the_limit_is_cut_with_a_marker_whatever_the_filters_let_through(
    tmp_path: Path, unit: str
) -> None:
    text = unit * (2 * limits.RESULT_MAX_BYTES // len(unit.encode()))
    bench = Bench(tmp_path, options={"tools": (Probe(lambda: text),), "filters": ()})
    kept = bench.ok("Probe")
    assert limits.RESULT_MAX_BYTES - 8 <= len(kept.encode()) <= limits.RESULT_MAX_BYTES + 64
    left_out = len(text.encode()) - limits.RESULT_MAX_BYTES
    head, tail = kept.split(f"\n[… {left_out} bytes left out …]\n")
    assert text.startswith(head) and text.endswith(tail)
    finished = bench.lane.events[-1]
    assert isinstance(finished, ToolFinished) and finished.result == kept


def test_a_result_at_the_limit_and_an_error_over_it(tmp_path: Path) -> None:
    exact = "x" * limits.RESULT_MAX_BYTES
    assert Bench(tmp_path, options={"tools": (Probe(lambda: exact),), "filters": ()}).ok("Probe") == exact

    def fail() -> str:
        raise ToolError("e" * (limits.RESULT_MAX_BYTES + 1))

    bench = Bench(tmp_path, options={"tools": (Probe(fail),), "filters": ()})
    bench.call("Probe")
    finished = bench.lane.events[-1]
    assert isinstance(finished, ToolFinished) and finished.error is not None
    assert len(finished.result) <= limits.RESULT_MAX_BYTES + 64
    assert len(finished.error) <= limits.RESULT_ERROR_MAX_BYTES + 64


def test_a_filter_that_raises_leaves_the_result_and_a_notice(tmp_path: Path) -> None:
    def broken(call: Call, text: str, context: FilterContext) -> str:
        raise KeyError("x")

    filters = (Filter("broken", broken), Filter("shout", lambda call, text, context: text.upper()))
    bench = Bench(tmp_path, options={"tools": (Probe(),), "filters": filters})
    assert bench.ok("Probe") == "DONE"
    assert names(bench) == ["tool.started", "notice", "tool.finished"]
    notice = bench.lane.events[1]
    assert isinstance(notice, Notice)
    assert (notice.level, notice.origin) == ("warning", "broken")


def test_perform_may_run_under_a_scope_of_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, options={"tools": (Probe(),)})
    scope = bench.lane.scope.child()
    scope.cancel("deadline")
    result = perform(Call("c", "Probe", {}), Site(bench.lane, bench.toolbox, bench.history), scope)
    assert result.error == CANCELLED
    assert bench.lane.scope.reason is None
