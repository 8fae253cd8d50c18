"""What changed between two saved states: messages, other fields, and the same in a few words."""

from __future__ import annotations

from dataclasses import replace

from aura.conversation import Call, Header, Message, Parent
from aura.runtime.diff import FieldChange, compare_headers, compare_messages, describe
from aura.store.history import Save, StoredMessage
from aura.wire.document import encode_message

HEADER = Header("s1", "A title", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", system="Be careful.", meta={"mode": 1})


def stored(*messages: Message) -> list[StoredMessage]:
    items, ordinal = [], 0
    for idx, message in enumerate(messages):
        is_system = message.role == "system"
        items.append(StoredMessage(idx, None if is_system else ordinal, encode_message(message)))
        ordinal += not is_system
    return items


def said(text: str, id: str = "") -> Message:
    return Message("user", text, id=id)


def shape(changes) -> list[tuple[str | None, str | None]]:
    return [
        (change.old.message.content if change.old else None, change.new.message.content if change.new else None)
        for change in changes
    ]


def save(messages: int, shared: int = 0, before: int = 0, **header: object) -> Save:
    changed = replace(HEADER, **header)  # type: ignore[arg-type]
    return Save(2, "0" * 64, 0, "run", None, messages, messages, shared, before, changed)


def test_equal_conversations_differ_in_nothing():
    one = stored(said("a", "1"), said("b", "2"), said("c"))
    assert compare_messages(one, one) == [] and compare_headers(HEADER, HEADER) == []


def test_added_and_dropped_messages_come_in_the_order_of_the_conversation():
    old = stored(said("a", "1"), said("b", "2"), said("c", "3"), said("d", "4"))
    new = stored(said("a", "1"), said("x", "9"), said("c", "3"), said("y", "8"))
    assert shape(compare_messages(old, new)) == [("b", None), (None, "x"), ("d", None), (None, "y")]
    assert [change.new.index for change in compare_messages(old, new) if change.new] == [1, 3]


def test_a_message_with_the_same_id_and_other_content_is_rewritten():
    old = Message("assistant", "long", id="1", thinking="hm", calls=(Call("c", "Ls"),))
    (change,) = compare_messages(stored(old), stored(replace(old, content="short", thinking="")))
    assert change.old is not None and change.new is not None
    assert change.keys == ("Content", "Thinking")


def test_messages_without_an_id_are_told_apart_by_their_content():
    assert shape(compare_messages(stored(said("a"), said("b")), stored(said("a"), said("c")))) == [
        ("b", None),
        (None, "c"),
    ]


def test_a_system_message_has_no_index():
    (change,) = compare_messages([], stored(Message("system", "a notice", id="n")))
    assert change.new is not None and change.new.index is None


def test_fields_are_compared_one_by_one_without_the_time_of_the_save():
    new = replace(
        HEADER,
        title="B",
        system="Be bold.",
        updated_at="2027-01-01T00:00:00Z",
        meta={"agent": "main"},
        todos={"items": []},
        extra={"x": None},
    )
    assert compare_headers(HEADER, new) == [
        FieldChange("title", "A title", "B"),
        FieldChange("system", "Be careful.", "Be bold."),
        FieldChange("meta.mode", 1, None),
        FieldChange("todos", None, {"items": []}),
        FieldChange("meta.agent", None, "main"),
        FieldChange("x", None, None),
    ]


def test_a_revision_is_described_in_few_words():
    before = save(3)
    assert describe(save(6, shared=3, before=3), before) == ("+3 messages",)
    assert describe(save(4, shared=3, before=3), before) == ("+1 message",)
    assert describe(save(1, shared=1, before=3), before) == ("-2 messages",)
    assert describe(save(2, shared=1, before=3), before) == ("-2 +1 message",)
    assert describe(save(3, shared=3, before=3), before) == ()
    changed = save(3, 3, 3, system="x", title="t", meta={"mode": 2, "agent": "b"}, todos={}, frozen=True)
    words = describe(changed, before)
    assert words == ("title changed", "prompt changed", "frozen", "todos changed", "meta: mode, agent")


def test_a_first_revision_is_described_by_what_it_holds():
    assert describe(save(0), None) == ("empty",)
    assert describe(save(1), None) == ("1 message",)
    assert describe(save(2, parent=Parent("p", "0" * 64)), None) == ("2 messages", "fork of p")
