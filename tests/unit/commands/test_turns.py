"""What commands make of a turn: a custom command is one, auto goes on with todos and asks nobody, Done ends it."""

from __future__ import annotations

import pytest

from aura import events as e
from aura.conversation import MessageType, find_broken_pair
from aura.engine.lane import TurnOutcome
from aura.engine.turn import run_turn
from aura.runtime.commands.dispatch import run_command
from tests.support.command_kit import Desk

TODO = {"name": "TodoCreate", "arguments": {"items": [{"content": "one"}, {"content": "two"}]}}
PROGRESS = {
    "name": "TodoProgress",
    "arguments": {"updates": [{"index": 1, "status": "completed"}, {"index": 2, "status": "completed"}]},
}


def prompt(desk: Desk, text: str = "go") -> TurnOutcome:
    return run_turn(desk.lane, desk.current.agent, desk.history, text)


def kinds(desk: Desk) -> list[str]:
    return [event.kind for event in desk.lane.events]


def test_a_custom_command_is_a_turn_with_its_text(desk: Desk) -> None:
    desk.command("Review", "Review $1 $ARGUMENTS")
    desk.provider("script", ["scripted"], [{"calls": [{"name": "Ls"}]}, {"content": "fine"}])
    outcome = desk.type("/REVIEW a b")
    assert (outcome.outcome, outcome.content) == ("completed", "fine")
    assert desk.history.messages[0].content == "Review a a b"
    assert desk.lane.events[0] == e.CommandResult(command="/REVIEW a b", message="")
    assert kinds(desk)[1:3] == ["message.user", "run.started"]
    assert kinds(desk).count("command.result") == 1


def test_a_custom_command_without_a_text_is_rejected(desk: Desk) -> None:
    desk.command("empty", "")
    outcome = desk.type("/empty")
    assert (outcome.outcome, outcome.error and outcome.error.code) == ("rejected", "input_rejected")
    assert not desk.history.messages


def test_a_built_in_command_wins_over_a_custom_one(desk: Desk) -> None:
    desk.command("stats", "never sent")
    assert desk.ok("/stats").startswith("messages: 0")


def test_a_custom_command_that_is_gone_fails(desk: Desk) -> None:
    desk.command("review", "x")
    desk.open()
    (desk.root / "home/config/commands/review.md").unlink()
    desk.ok("/reload")
    outcome = run_command(desk.lane, desk.current, desk.history, "/review")
    assert outcome.error is not None
    assert outcome.error.code == "command_failed"


def test_auto_goes_on_while_todos_are_left(desk: Desk) -> None:
    turns = [{"calls": [TODO]}, {"content": "I stop"}, {"when": {"last": "todo list"}, "calls": [PROGRESS]}]
    desk.provider("script", ["scripted"], [*turns, {"content": "done"}])
    desk.open()
    desk.ok("/auto on")
    outcome = prompt(desk)
    assert (outcome.outcome, outcome.content) == ("completed", "done")
    nudges = [message for message in desk.history.messages if message.type == MessageType.SYNTHETIC]
    assert [message.role for message in nudges] == ["user"]
    assert kinds(desk).count("message.user") == 1
    assert kinds(desk).count("notice") == 1


def test_auto_is_bounded_by_max_steps(desk: Desk) -> None:
    desk.provider("script", ["scripted"], [{"calls": [TODO]}, {"content": "I stop", "repeat": "forever"}])
    desk.open(max_steps=5)
    desk.ok("/auto on")
    outcome = prompt(desk)
    assert outcome.error is not None
    assert outcome.error.code == "max_steps"
    assert kinds(desk).count("message.assistant") == 5


def test_without_auto_a_turn_ends_with_its_answer(desk: Desk) -> None:
    desk.provider("script", ["scripted"], [{"calls": [TODO]}, {"content": "I stop"}])
    desk.open()
    assert prompt(desk).content == "I stop"


def test_auto_allows_what_asks_but_not_what_is_denied(desk: Desk) -> None:
    desk.agent("main", default=True, tools={"policy": {"confirm": ["Ls"], "deny": ["Glob"]}})
    calls = [{"name": "Ls"}, {"name": "Glob", "arguments": {"pattern": "*"}}]
    desk.provider("script", ["scripted"], [{"calls": calls}, {"content": "done"}])
    desk.open()
    desk.ok("/auto on")
    assert prompt(desk).outcome == "completed"
    finished = [event for event in desk.lane.events if isinstance(event, e.ToolFinished)]
    assert [(event.name, event.status) for event in finished] == [("Ls", "ok"), ("Glob", "error")]
    assert desk.lane.questions == []
    assert "session_approvals" not in desk.history.meta


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({}, "proceed"),
        ({"options": [{"label": "red"}, {"label": "blue"}]}, "red"),
        ({"options": [{"label": "red"}, {"label": "blue"}], "multi_select": True}, '["red"]'),
        ({"options": [{"label": "2"}, {"label": "1"}]}, "2"),
    ],
)
def test_under_auto_a_question_answers_itself(desk: Desk, arguments: dict[str, object], answer: str) -> None:
    call = {"name": "Ask", "arguments": {"question": "Which?"} | arguments}
    desk.provider("script", ["scripted"], [{"calls": [call]}, {"content": "done"}])
    desk.open()
    desk.ok("/auto on")
    assert prompt(desk).outcome == "completed"
    assert desk.history.messages[2].content == answer


def done(summary: str) -> dict[str, object]:
    return {"name": "Done", "arguments": {"summary": summary}}


def test_done_ends_the_turn_after_its_batch(desk: Desk) -> None:
    desk.provider("script", ["scripted"], [{"calls": [done("all is well"), {"name": "Ls"}]}, {"content": "never"}])
    desk.open()
    desk.ok("/done on")
    outcome = prompt(desk)
    assert (outcome.outcome, outcome.content) == ("completed", "all is well")
    assert [message.tool_name for message in desk.history.messages[2:]] == ["Done", "Ls"]
    assert find_broken_pair(desk.history.messages) is None
    assert desk.lane.saved == [4]


def test_the_last_text_wins_over_the_summary(desk: Desk) -> None:
    desk.provider("script", ["scripted"], [{"content": "my words", "calls": [done("all is well")]}])
    desk.open()
    desk.ok("/done on")
    assert prompt(desk).content == "my words"


def test_done_that_failed_ends_nothing(desk: Desk) -> None:
    desk.provider("script", ["scripted"], [{"calls": [done(" ")]}, {"content": "went on"}])
    desk.open()
    desk.ok("/done on")
    assert prompt(desk).content == "went on"


def test_done_is_an_unknown_tool_while_it_is_off(desk: Desk) -> None:
    desk.provider("script", ["scripted"], [{"calls": [done("x")]}, {"content": "went on"}])
    desk.open()
    assert prompt(desk).content == "went on"
    assert "no tool named 'Done'" in desk.history.messages[2].content
