"""Calls and results of foreign conversations become complete pairs: `aura.wire.formats.pairs`."""

from __future__ import annotations

from aura.conversation import Call, Message, MessageType, find_broken_pair
from aura.wire.formats.drafts import Draft
from aura.wire.formats.pairs import NO_RESULT, complete_pairs
from aura.wire.formats.records import Repairs


def completed(*messages):
    """Return the messages with complete pairs, and the warnings."""
    repairs = Repairs()
    result = [draft.message for draft in complete_pairs([Draft(message) for message in messages], repairs)]
    assert find_broken_pair(result) is None
    return result, repairs.warnings()


def ask(*ids):
    return Message("assistant", "", calls=tuple(Call(id, f"tool_{id}") for id in ids))


def answer(id, content="done"):
    return Message("tool", content, tool_call_id=id)


USER = Message("user", "go on")


def test_complete_pairs_stay_as_they_are_but_for_the_tools_name():
    result, warnings = completed(USER, ask("a", "b"), answer("b"), answer("a"), USER)
    assert [message.tool_name for message in result if message.role == "tool"] == ["tool_b", "tool_a"]
    assert warnings == ()


def test_a_result_that_comes_late_moves_up_to_its_call():
    result, warnings = completed(ask("a", "b"), answer("a"), USER, answer("b"))
    assert [message.role for message in result] == ["assistant", "tool", "tool", "user"]
    assert warnings == ()


def test_a_call_without_a_result_gets_an_error_result():
    result, warnings = completed(ask("a", "b"), answer("b"), USER, ask("c"))
    assert [message.content for message in result if message.role == "tool"] == ["done", NO_RESULT, NO_RESULT]
    assert warnings == ("calls without a result, each given an error result: 2",)


def test_a_result_without_a_call_becomes_metadata():
    result, warnings = completed(answer("x", "early"), ask("x"), answer("x", "right"), answer("x", "again"))
    assert [(message.role, int(message.type)) for message in result] == [
        ("system", MessageType.METADATA),
        ("assistant", MessageType.NORMAL),
        ("tool", MessageType.NORMAL),
        ("system", MessageType.METADATA),
    ]
    assert "early" in result[0].content and "again" in result[3].content
    assert warnings == ("results without a call, kept as metadata: 2",)


def test_an_id_that_is_used_again_later_takes_its_own_result():
    result, _ = completed(ask("x"), USER, ask("x"), answer("x", "second"))
    assert [message.content for message in result if message.role == "tool"] == [NO_RESULT, "second"]


def test_two_calls_of_one_message_with_the_same_id_are_told_apart():
    result, warnings = completed(ask("x", "x", "x#2"), answer("x", "1"), answer("x", "2"), answer("x#2", "3"))
    calls = [call.id for call in result[0].calls]
    assert calls == ["x", "x#2", "x#2#2"]
    assert [(message.tool_call_id, message.content) for message in result[1:]] == list(zip(calls, "123", strict=True))
    assert warnings == ("calls with an id that was taken, renamed: 2",)


def test_metadata_may_stand_between_a_call_and_its_result():
    note = Message("system", "progress", type=MessageType.METADATA)
    result, warnings = completed(ask("a"), note, answer("a"))
    assert [message.role for message in result] == ["assistant", "system", "tool"]
    assert warnings == ()
