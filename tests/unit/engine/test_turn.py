"""A turn over a lane in memory and a model from a list: outcomes, their order, and complete pairs whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aura import events as e
from aura import limits
from aura.config.spec import AgentSpec, ModelSpec, PolicySpec, ProviderSpec, ToolsSpec
from aura.conversation import Call, Message, find_broken_pair
from aura.engine.agent import Agent, Gauge
from aura.engine.history import History
from aura.engine.lane import Answer, PersistFailed, TurnOutcome
from aura.engine.providers.base import OnDelta, ProviderError, Reply, Request
from aura.engine.scope import Cancelled, Reason, Scope
from aura.engine.tools.toolbox import Toolbox
from aura.engine.turn import run_turn
from aura.events import Event, Transient
from aura.runs import RunError
from tests.support.lane import RecordingLane

ASK = Call("ask", "Ask", {"question": "Why?"})
LOOK = Call("look", "Ls", {"path": "."})
CREATE = Call("make", "Write", {"path": "made.txt", "content": "x"})
Step = Reply | ProviderError | Callable[[Request, Scope, OnDelta], Reply]


@dataclass
class Model:
    """A provider that plays `steps` and keeps the requests."""

    steps: list[Step]
    window: int | ProviderError = 1_000
    type: str = "list"
    requests: list[Request] = field(default_factory=list)

    def stream(self, request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        scope.check()
        self.requests.append(request)
        step = self.steps.pop(0)
        if isinstance(step, ProviderError):
            raise step
        if not isinstance(step, Reply):
            return step(request, scope, on_delta)
        for text, thinking in ((step.thinking, True), (step.content, False)):
            for start in range(0, len(text), 4):
                scope.check()
                on_delta(text[start : start + 4], thinking)
        scope.check()
        return step

    def context_tokens(self, model: str, scope: Scope) -> int:
        scope.check()
        if isinstance(self.window, ProviderError):
            raise self.window
        return self.window


@dataclass
class Turn:
    """One turn and everything around it."""

    workdir: Path
    steps: list[Step]
    spec: ToolsSpec = field(default_factory=ToolsSpec)
    lane: RecordingLane = field(default_factory=RecordingLane)
    history: History = field(default_factory=History)
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        self.model = Model(self.steps)

    def run(self, text: str = "please") -> TurnOutcome:
        provider = ProviderSpec("local", "script", Path("p.yaml"))
        spec = AgentSpec("main", "", ModelSpec(provider, "m"), Path("a"), Path("a"), Path("h"), tools=self.spec)
        toolbox = Toolbox(spec=self.spec, workdir=self.workdir, environment={}, spill_dir=self.workdir)
        agent = Agent(spec, self.model, toolbox, "Be careful.", Gauge())
        outcome = run_turn(self.lane, agent, self.history, text)
        assert find_broken_pair(self.history.messages) is None
        return outcome

    def kinds(self) -> list[str]:
        return [event.kind for event in self.lane.events if event.kind != "status" and not event.full]

    def roles(self) -> list[str]:
        return [message.role for message in self.history.messages]


@pytest.fixture
def turn(tmp_path: Path) -> Callable[..., Turn]:
    def make(*steps: Step, **options: Any) -> Turn:
        return Turn(tmp_path, list(steps), **options)

    return make


def code(outcome: TurnOutcome) -> tuple[str, str]:
    assert outcome.error is not None
    return outcome.outcome, outcome.error.code


@pytest.mark.requirement("runs.outcome.completed")
def test_an_answer_without_calls_completes_the_turn(turn: Callable[..., Turn]) -> None:
    one = turn(Reply("Hello.", thinking="hm", input_tokens=7, output_tokens=3))
    outcome = one.run()
    assert (outcome.outcome, outcome.error, outcome.content) == ("completed", None, "Hello.")
    assert one.kinds() == ["message.user", "run.started", "message.assistant"]
    assert one.lane.saved == []  # the runtime saves at the end
    user, answer = one.history.messages
    assert (user.role, user.content) == ("user", "please")
    assert (answer.content, answer.thinking) == ("Hello.", "hm")
    ids = {event.message_id for event in one.lane.events if isinstance(event, e.MessageUser | e.MessageAssistant)}
    assert ids == {user.id, answer.id}
    assert one.history.meta["cumulative_usage"] == {"input": 7, "output": 3}
    deltas = [item for item in one.lane.shown if isinstance(item, e.Delta)]
    assert {delta.message_id for delta in deltas} == {answer.id}
    for thinking, text in ((True, "hm"), (False, "Hello.")):
        mine = [delta for delta in deltas if delta.thinking is thinking]
        assert "".join(delta.text for delta in mine) == text
        assert [delta.offset for delta in mine] == list(range(0, len(text), 4))


def test_calls_run_are_saved_and_the_model_is_asked_again(turn: Callable[..., Turn]) -> None:
    one = turn(Reply("Let me see.", calls=(LOOK, CREATE)), Reply("Done."))
    assert one.run().content == "Done."
    assert one.kinds() == [
        "message.user",
        "run.started",
        "message.assistant",
        *("tool.started", "tool.finished") * 2,
        "message.assistant",
    ]
    assert one.roles() == ["user", "assistant", "tool", "tool", "assistant"]
    assert one.lane.saved == [4]
    seen = one.model.requests[1]
    assert (seen.system, [message.role for message in seen.messages]) == (
        "Be careful.",
        ["user", "assistant", "tool", "tool"],
    )
    durable = [event for event, durable in one.lane.emitted if durable]
    assert [getattr(event, "name", None) for event in durable] == ["Write"]  # nothing else changes anything


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_prompt_of_white_space_is_rejected_and_adds_nothing(turn: Callable[..., Turn], text: str) -> None:
    one = turn()
    assert code(one.run(text)) == ("rejected", "input_rejected")
    assert (one.roles(), one.lane.events, one.lane.saved) == ([], [], [])


def test_a_prompt_that_does_not_fit_is_rejected_together_with_what_is_there(turn: Callable[..., Turn]) -> None:
    fits = 1_000 * limits.INPUT_MAX_PERCENTAGE // 100 * limits.CHARS_PER_TOKEN
    one = turn(Reply("ok"), Reply("ok"))
    assert one.run("x" * fits).outcome == "completed"
    assert code(one.run("x" * 20)) == ("rejected", "input_rejected")
    assert one.roles() == ["user", "assistant"]
    one.model.window = 0  # unknown: nothing is refused
    assert one.run("x" * fits).outcome == "completed"


def test_a_window_that_cannot_be_asked_for_is_a_notice(turn: Callable[..., Turn]) -> None:
    one = turn(Reply("ok"))
    one.model.window = ProviderError("network", "nobody there", provider="list")
    assert one.run().outcome == "completed"
    assert one.kinds()[0] == "notice"


FAILURES = [
    ("network", "provider_network"),
    ("server", "provider_server"),
    ("rate_limit", "provider_rate_limit"),
    ("auth", "provider_auth"),
    ("credit", "provider_credit"),
    ("model_unavailable", "provider_model_unavailable"),
    ("content_filter", "content_filter"),
    ("context_exhausted", "context_exhausted"),
    ("unclassified", "internal"),
]


@pytest.mark.parametrize(("kind", "expected"), FAILURES)
@pytest.mark.parametrize("rounds", [0, 1])
def test_a_failure_of_the_model_is_the_runs(turn: Callable[..., Turn], kind: Any, expected: str, rounds: int) -> None:
    error = ProviderError(kind, "no", provider="list", streamed=True)
    one = turn(*[Reply("", calls=(LOOK,))] * rounds, error)
    assert code(one.run()) == ("failed", expected)
    assert one.roles() == ["user"] + ["assistant", "tool"] * rounds
    assert one.kinds().count("message.assistant") == rounds


def test_broken_calls_are_asked_for_again_with_a_notice_each(turn: Callable[..., Turn]) -> None:
    broken = [ProviderError("malformed", "not JSON", provider="list") for _ in range(limits.PARSE_ATTEMPTS_COUNT)]
    assert code(turn(*broken).run()) == ("failed", "internal")
    one = turn(*broken[:-1], Reply("parsed"))
    assert one.run().outcome == "completed"
    assert one.kinds().count("notice") == len(broken) - 1


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_max_steps_is_exactly_the_number_of_model_calls(turn: Callable[..., Turn], steps: int) -> None:
    one = turn(*[Reply("", calls=(LOOK,))] * 9, spec=ToolsSpec(max_steps=steps))
    assert code(one.run()) == ("failed", "max_steps")
    assert len(one.model.requests) == steps
    assert one.kinds().count("tool.finished") == len(one.lane.saved) == steps
    last = turn(*[Reply("", calls=(LOOK,))] * (steps - 1), Reply("done"), spec=ToolsSpec(max_steps=steps))
    assert last.run().outcome == "completed"


def test_a_spent_budget_stops_before_the_next_model_call(turn: Callable[..., Turn]) -> None:
    spec = ToolsSpec(token_budget=100)
    one = turn(*[Reply("", calls=(LOOK,), input_tokens=40, output_tokens=10)] * 9, spec=spec)
    assert code(one.run()) == ("failed", "token_budget")
    assert len(one.model.requests) == 2
    exact = turn(Reply("", calls=(LOOK,), input_tokens=99), Reply("done"), spec=spec)
    assert exact.run().outcome == "completed"


def test_a_question_that_nobody_answers_blocks_the_run(turn: Callable[..., Turn]) -> None:
    one = turn(Reply("", calls=(LOOK, ASK, CREATE)))
    assert code(one.run()) == ("blocked", "input_required")
    assert one.roles() == ["user", "assistant", "tool", "tool", "tool"]
    assert one.lane.saved == [5]
    assert not (one.workdir / "made.txt").exists()


def test_an_answer_lets_the_turn_go_on(turn: Callable[..., Turn]) -> None:
    one = turn(Reply("", calls=(ASK,)), Reply("I see."), lane=RecordingLane(answers=[Answer("because")]))
    assert one.run().outcome == "completed"
    assert "because" in one.history.messages[2].content


def test_an_approval_that_nobody_gives_blocks_the_run_and_nothing_happens(turn: Callable[..., Turn]) -> None:
    one = turn(Reply("", calls=(CREATE,)), spec=ToolsSpec(policy=PolicySpec(confirm=("Write",))))
    assert code(one.run()) == ("blocked", "input_required")
    assert not (one.workdir / "made.txt").exists()


@pytest.mark.requirement("runs.outcome.cancelled")
@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("request", ("cancelled", "cancelled")),
        ("shutdown", ("cancelled", "cancelled")),
        ("deadline", ("cancelled", "cancelled")),
        ("policy_stop", ("blocked", "policy_stop")),
        ("input_required", ("blocked", "input_required")),
    ],
)
def test_the_reason_of_a_cancellation_decides_the_outcome(
    turn: Callable[..., Turn], reason: Reason, expected: tuple[str, str]
) -> None:
    one = turn(Reply("never"))
    one.lane.scope.cancel(reason)
    outcome = one.run()
    assert code(outcome) == expected
    assert one.roles() == []
    if outcome.outcome == "cancelled":
        assert outcome.error is not None
        assert outcome.error.details == {"reason": reason}


class Interrupted(RecordingLane):
    """A lane that is cancelled at its n-th sign of life; `breaks` makes its saves or durable events fail instead."""

    def __init__(self, point: int, answers: Sequence[Answer] = ()) -> None:
        super().__init__(answers=list(answers))
        self.point = point
        self.passed = 0

    def _step(self) -> None:
        self.passed += 1
        if self.passed == self.point:
            self.scope.cancel("request")

    def emit(self, event: Event, *, durable: bool = False) -> None:
        super().emit(event, durable=durable)
        self._step()

    def transient(self, item: Transient) -> None:
        super().transient(item)
        self._step()

    def checkpoint(self, history: History) -> None:
        assert find_broken_pair(history.messages) is None, "what is saved has complete pairs"
        super().checkpoint(history)
        self._step()


@pytest.mark.requirement("store.checkpoints.pairs")
def test_a_cancel_at_any_point_leaves_complete_pairs_and_matching_events(turn: Callable[..., Turn]) -> None:
    point, outcomes = 0, []
    while not outcomes or outcomes[-1] != "completed":
        point += 1
        lane = Interrupted(point, [Answer("because")])
        steps = (Reply("Let me see.", calls=(LOOK, ASK, CREATE)), Reply("Then.", calls=(LOOK,)), Reply("Done."))
        one = turn(*steps, lane=lane)
        outcomes.append(one.run().outcome)
        assert one.kinds().count("tool.started") == one.kinds().count("tool.finished")
        results = [event.result for event in lane.events if isinstance(event, e.ToolFinished)]
        assert [message.content for message in one.history.messages if message.role == "tool"] == results
        answers = [message.content for message in one.history.messages if message.role == "assistant"]
        assert answers == [event.content for event in lane.events if isinstance(event, e.MessageAssistant)]
    assert set(outcomes[:-2]) == {"cancelled"}  # the last point before the end: the answer is complete by then
    assert point > 15


class Broken(RecordingLane):
    """A lane whose n-th commit, of an event or of a save, is refused by the store."""

    def __init__(self, point: int) -> None:
        super().__init__()
        self.point = point
        self.commits = 0

    def _commit(self) -> None:
        self.commits += 1
        if self.commits == self.point:
            raise PersistFailed(RunError("persist_failed", "the disk is full"))

    def emit(self, event: Event, *, durable: bool = False) -> None:
        if durable:
            self._commit()
        super().emit(event, durable=durable)

    def checkpoint(self, history: History) -> None:
        self._commit()
        super().checkpoint(history)


@pytest.mark.parametrize("point", [1, 2, 3, 4])
def test_a_commit_that_fails_ends_the_turn_and_leaves_complete_pairs(turn: Callable[..., Turn], point: int) -> None:
    other = Call("other", "Write", {"path": "other.txt", "content": "x"})
    one = turn(Reply("", calls=(CREATE, LOOK, other)), Reply("", calls=(other,)), Reply("Done."), lane=Broken(point))
    assert code(one.run()) == ("failed", "persist_failed")
    assert (one.workdir / "made.txt").exists() is (point > 1)
    assert (one.workdir / "other.txt").exists() is (point > 2)
    assert one.kinds().count("tool.started") == one.kinds().count("tool.finished")
    results = [event.result for event in one.lane.events if isinstance(event, e.ToolFinished)]
    assert [message.content for message in one.history.messages if message.role == "tool"] == results


def test_a_lane_that_lost_its_session_ends_the_turn_at_once(turn: Callable[..., Turn]) -> None:
    class Lost(RecordingLane):
        def checkpoint(self, history: History) -> None:
            self.scope.cancel("lease_lost")
            raise Cancelled("lease_lost")

    one = turn(Reply("", calls=(LOOK,)), Reply("never"), lane=Lost())
    assert one.run().outcome == "cancelled"
    assert len(one.model.requests) == 1


def test_a_turn_goes_on_from_a_history_and_sees_all_of_it(turn: Callable[..., Turn]) -> None:
    before = History([Message("user", "first"), Message("assistant", "one")], meta={"cumulative_usage": {"input": 5}})
    one = turn(Reply("two", output_tokens=2), history=before)
    assert one.run("second").outcome == "completed"
    assert [message.content for message in one.model.requests[0].messages] == ["first", "one", "second"]
    assert before.meta["cumulative_usage"] == {"input": 5, "output": 2}
