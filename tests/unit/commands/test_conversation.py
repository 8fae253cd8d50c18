"""drop, save and export."""

from __future__ import annotations

import json

import pytest

from aura.conversation import Message, MessageType
from aura.engine.history import History
from tests.support.command_kit import Desk, answer, result, user


def pair(desk: Desk) -> None:
    """Put a question, two calls with their results, and the answer into the conversation."""
    desk.say(user("go"), answer("", "Ls", "Read", thinking="hm"), result("Ls"), result("Read"), answer("fine"))


def contents(history: History) -> list[str]:
    return [message.content for message in history.messages]


@pytest.mark.parametrize(("count", "left"), [(1, 4), (2, 1), (3, 1), (4, 1), (5, 0)])
def test_a_call_goes_with_its_results(desk: Desk, count: int, left: int) -> None:
    pair(desk)
    text = desk.ok(f"/drop {count}")
    assert len(desk.history.messages) == left
    assert text.endswith(f"left: {left}")
    assert ("parted" in text) == (count + left < 5)
    assert desk.history.cuts == [left]


def test_one_message_or_all_are_dropped(desk: Desk) -> None:
    assert desk.ok("/drop") == "there are no messages"
    pair(desk)
    desk.ok("/drop")
    assert len(desk.history.messages) == 4
    desk.ok("/remove ALL")
    assert contents(desk.history) == []


def test_dropping_makes_the_context_uncounted(desk: Desk) -> None:
    desk.open()
    pair(desk)
    desk.current.agent.gauge.used = 500
    desk.ok("/drop all")
    assert desk.current.status().tokens_used == 0


def test_more_than_there_is_and_no_number_fail(desk: Desk) -> None:
    desk.open()
    desk.say(user("a"))
    for word in ("0", "-1", "2", "many", "1.5", "9" * 30, "¹"):
        desk.fails(f"/drop {word}")


def test_a_history_refuses_a_count_that_cannot_be() -> None:
    for count in (0, 2):
        with pytest.raises(ValueError, match="cannot drop"):
            History([user("a")]).drop(count)


def test_saving_sets_the_title_as_it_was_typed(desk: Desk) -> None:
    assert desk.ok("/save") == "saved"
    desk.ok("/save It's Bob's  title")
    assert desk.history.title == "It's Bob's title"
    desk.ok('/save "Quoted one"')
    assert desk.history.title == "Quoted one"
    assert desk.ok("/save") == "saved as 'Quoted one'"
    desk.fails("/save " + "x" * 1001)


def test_an_export_without_a_file_is_the_result_and_has_no_thinking(desk: Desk) -> None:
    pair(desk)
    desk.history.title = "T"
    assert desk.ok("/export").startswith("# T\n\n## User\n\ngo\n\n## Assistant")
    assert desk.ok("/export TEXT").startswith("[User]\ngo\n\n[Assistant]\n(call of Ls: {})")
    for name in ("json", "jsonl", "md", "txt"):
        assert "hm" not in desk.ok(f"/export {name}")


def test_json_holds_every_field_and_a_file_the_thinking_too(desk: Desk) -> None:
    desk.open()
    pair(desk)
    desk.ok("/export chat.json")
    document = json.loads((desk.work / "chat.json").read_text())
    system, asked, called, *_ = document["messages"]
    assert system == {"role": "system", "content": "You are main on scripted."}
    assert asked == {"role": "user", "content": "go"}
    assert called["thinking"] == "hm"
    assert [call["name"] for call in called["tool_calls"]] == ["Ls", "Read"]
    desk.ok("/export jsonl chat.data")
    lines = [json.loads(line) for line in (desk.work / "chat.data").read_text().splitlines()]
    assert lines == document["messages"]


def test_messages_are_exported_by_their_kind(desk: Desk) -> None:
    desk.open()
    for kind in MessageType:
        desk.say(Message("user", kind.name, type=kind))
    shown = {"NORMAL", "DISPLAY_ONLY", "BOOKMARK"}
    expected = {"text": shown, "markdown": shown, "json": shown | {"METADATA"}, "jsonl": {"NORMAL", "METADATA"}}
    for name, kinds in expected.items():
        text = desk.ok(f"/export {name}")
        assert {kind.name for kind in MessageType if kind.name in text} == kinds


def test_a_fence_is_longer_than_what_it_holds(desk: Desk) -> None:
    desk.say(user("a"), answer("", "Ls"), result("Ls", "```\nx\n```"))
    assert "````\n```\nx\n```\n````" in desk.ok("/export")


def test_a_file_is_new_and_inside_the_workspace(desk: Desk) -> None:
    desk.open()
    desk.say(user("a"))
    (desk.work / "sub").mkdir()
    (desk.work / "out").symlink_to(desk.root)
    (desk.work / "dangling.md").symlink_to(desk.root / "nothing.md")
    desk.ok("/export sub/a.md")
    assert (desk.work / "sub/a.md").read_text() == "## User\n\na\n"
    absolute = desk.work / "b.txt"
    desk.ok(f"/export {absolute}")
    assert absolute.exists()
    refused = {
        "sub/a.md": "exists",
        "dangling.md": "exists",
        "../a.md": "outside",
        "out/a.md": "outside",
        f"{desk.root}/a.md": "outside",
        "no/a.md": "no such folder",
        "a.pdf": "no format",
        "clipboard": "no format",
        "yaml a.md": "no format",
        "json ..": "not the name",
    }
    for words, problem in refused.items():
        assert problem in desk.fails(f"/export {words}")
    assert not (desk.root / "a.md").exists()
    assert not (desk.root / "nothing.md").exists()


def test_a_conversation_that_is_too_long_for_an_event_needs_a_file(desk: Desk) -> None:
    desk.open()
    desk.say(user("x" * 1_100_000))
    assert "name a file" in desk.fails("/export")
    desk.ok("/export long.md")
