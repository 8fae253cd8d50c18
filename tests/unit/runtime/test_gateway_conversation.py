"""The stored conversation follows the caller's, and keeps what both know (interfaces.md sections 8 and 10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.conversation import Call, Message, MessageType, find_broken_pair
from aura.engine.history import History
from aura.runtime.gateway.conversation import reconcile
from aura.wire.chat_request import ChatMessage

LOOK = Call("c1", "Bash", {"command": "ls"})


def user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def answer(text: str, *calls: Call) -> ChatMessage:
    return ChatMessage("assistant", text, calls)


def result(call_id: str, text: str) -> ChatMessage:
    return ChatMessage("tool", text, tool_call_id=call_id)


def stored(*messages: ChatMessage) -> History:
    return History([_message(number, message) for number, message in enumerate(messages)])


def _message(number: int, message: ChatMessage) -> Message:
    role = message.role
    assert role in ("user", "assistant", "tool")
    return Message(
        role=role,  # type: ignore[arg-type]
        content=message.content,
        id=f"old{number}",
        calls=message.calls,
        tool_call_id=message.tool_call_id,
    )


def after(history: History, *conversation: ChatMessage) -> list[tuple[str, str]]:
    """Reconcile; return (id, content) of what is there then: `new` for what was appended."""
    reconcile(history, conversation, lambda: "new", "2026-12-01T00:00:00.000Z")
    assert find_broken_pair(history.messages) is None
    return [(message.id, message.content) for message in history.messages]


def test_what_is_the_same_is_kept_with_its_tools() -> None:
    history = stored(user("a"), answer("Look.", LOOK), result("c1", "x"), answer("Done."))
    kept = [("old0", "a"), ("old1", "Look."), ("old2", "x"), ("old3", "Done.")]
    assert after(history, user("a"), answer("Look.\n\nDone.")) == kept
    assert list(history.cuts) == []


def test_clients_may_trim_answers() -> None:
    assert after(stored(user("a"), answer(" b \n")), user("a"), answer("b")) == [("old0", "a"), ("old1", " b \n")]


def test_another_conversation_takes_the_place_of_the_stored_one() -> None:
    assert after(stored(user("a"), answer("b")), user("x"), answer("y")) == [("new", "x"), ("new", "y")]


def test_an_answer_that_is_asked_for_again_is_cut_off() -> None:
    assert after(stored(user("a"), answer("b"), user("c"), answer("d")), user("a"), answer("b")) == [
        ("old0", "a"),
        ("old1", "b"),
    ]


def test_a_shorter_beginning_keeps_nothing_of_the_rest() -> None:
    assert after(stored(user("a"), answer("b"))) == []


def test_a_question_that_was_never_answered_may_be_asked_again() -> None:
    assert after(stored(user("a"), answer("b"), user("lost")), user("a"), answer("b")) == [("old0", "a"), ("old1", "b")]


def test_messages_that_nobody_is_shown_stay_with_their_turn() -> None:
    history = stored(user("a"), answer("b"))
    history.append(Message(role="user", content="go on", id="nudge", type=MessageType.SYNTHETIC))
    history.append(Message(role="assistant", content="c", id="last"))
    ids = [message_id for message_id, _ in after(history, user("a"), answer("bc"))]
    assert ids == ["old0", "old1", "nudge", "last"]


def test_results_of_the_callers_tools_replace_the_placeholders() -> None:
    history = stored(user("a"), answer("Wait.", LOOK), result("c1", "Error: cancelled"))
    told = user("a"), answer("Wait.", LOOK), result("c1", "blue")
    assert after(history, *told) == [("old0", "a"), ("new", "Wait."), ("new", "blue")]


def test_results_that_only_the_store_has_are_taken_from_there() -> None:
    own = Call("c2", "ask_page", {})
    history = stored(user("a"), answer("", LOOK, own), result("c1", "files"), result("c2", "Error: cancelled"))
    told = user("a"), answer("", LOOK, own), result("c2", "blue")
    assert after(history, *told) == [("old0", "a"), ("new", ""), ("new", "blue"), ("new", "files")]


def test_calls_and_results_without_their_other_half_are_left_out() -> None:
    assert after(History(), user("a"), answer("b", LOOK), user("c")) == [("new", "a"), ("new", "b"), ("new", "c")]
    assert after(History(), user("a"), result("c9", "x"), answer("b")) == [("new", "a"), ("new", "b")]


_TEXTS = st.sampled_from(("", "a", "b"))
_MESSAGES = st.one_of(
    st.builds(user, st.sampled_from(("a", "b"))),  # empty ones are dropped when the request is read
    st.builds(answer, _TEXTS),
    st.builds(lambda text: answer(text, LOOK), _TEXTS),
    st.builds(lambda text: result("c1", text), _TEXTS),
)


@given(before=st.lists(_MESSAGES, max_size=6), told=st.lists(_MESSAGES, max_size=6))
def test_whatever_is_told_pairs_stay_whole_and_texts_are_the_callers(
    before: Sequence[ChatMessage], told: Sequence[ChatMessage]
) -> None:
    history = History()
    reconcile(history, before, lambda: "id", "")
    after(history, *told)
    assert _texts(history.messages) == [message.content for message in told if message.role == "user"]


def _texts(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "user"]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_long_shared_beginning_is_not_touched(count: int) -> None:
    turns = [turn for number in range(count) for turn in (user(str(number)), answer(f"to {number}"))]
    history = stored(*turns)
    assert len(after(history, *turns)) == 2 * count
    assert list(history.cuts) == []
