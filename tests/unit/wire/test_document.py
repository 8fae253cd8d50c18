"""The session document: parse, encode, hash, compare (interfaces.md sections 4 and 11)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from aura.conversation import Call, Header, Message, Parent
from aura.errors import InvalidId, InvalidSession
from aura.wire import canonical, document

CALL = {"id": "c1", "name": "Bash", "arguments": {"command": "ls"}}
REFERENCE: dict[str, Any] = {
    "id": "ref-1",
    "title": "Fix it",
    "created_at": "2026-05-01T10:00:00.123456789+02:00",
    "updated_at": "2026-05-01T10:05:00+02:00",
    "messages": [
        {"ID": "", "Role": "system", "Content": "You are careful.", "tokens": {"total": 9}},
        {"ID": "", "Role": "user", "Content": "Hi", "images": [{"Data": "aGk="}], "created_at": "2026-05-01T10:00:00Z"},
        {"ID": "", "Role": "assistant", "Content": "", "Thinking": "hm", "thinking_signature": "sig", "calls": [CALL]},
        {"ID": "", "Role": "tool", "Content": "files", "tool_name": "Bash", "tool_call_id": "c1", "own": {"x": [1]}},
        {"ID": "", "Role": "system", "Content": "Context compacted", "type": 4},
        {"ID": "", "Role": "assistant", "Content": "Done é"},
    ],
    "meta": {"agent": "main", "mode": "", "think": "false"},
    "todos": {"items": [{"content": "a", "status": "pending"}]},
    "house": {"unknown": [True, None]},
}


def reference(**changes: Any) -> bytes:
    """A file as the reference program writes it: two spaces of indent."""
    return json.dumps({**REFERENCE, **changes}, indent=2, ensure_ascii=False).encode()


def with_messages(*messages: dict[str, Any]) -> bytes:
    return reference(messages=list(messages))


def test_a_reference_file_becomes_ours_with_everything_in_it() -> None:
    parsed = document.parse_document(reference())
    assert parsed.header.system == "You are careful."
    assert (parsed.header.id, parsed.header.title) == ("ref-1", "Fix it")
    assert parsed.header.created_at == "2026-05-01T10:00:00.123456789+02:00", "kept as written"
    assert parsed.header.extra == {"house": {"unknown": [True, None]}}
    assert [json.loads(body) for body in parsed.messages] == REFERENCE["messages"][1:]
    third = document.decode_message(parsed.messages[2])
    assert third.extra == {"own": {"x": [1]}}
    whole = json.loads(b"".join(document.iterate_document(parsed.messages, parsed.header)))
    assert list(whole) == [
        "messages", "system", "id", "title", "created_at", "updated_at", "meta", "todos", "frozen", "parent", "house",
    ]  # fmt: skip
    assert whole["system"] == "You are careful." and whole["frozen"] is False and whole["parent"] is None


def test_what_we_write_is_read_back_to_the_same_bytes() -> None:
    parsed = document.parse_document(reference())
    data = b"".join(document.iterate_document(parsed.messages, parsed.header))
    again = document.parse_document(data)
    assert again == parsed
    assert b"".join(document.iterate_document(again.messages, again.header)) == data


def test_the_hasher_agrees_with_the_bytes_at_every_length() -> None:
    parsed = document.parse_document(reference())
    hasher = document.Hasher()
    tail = document.encode_tail(parsed.header)
    for count in range(len(parsed.messages) + 1):
        data = b"".join(document.iterate_document(parsed.messages[:count], parsed.header))
        assert hasher.count == count
        assert hasher.revision(parsed.header.system, tail) == hashlib.sha256(data).hexdigest()
        before = hasher.copy()
        hasher.add(parsed.messages[count : count + 1])
        assert before.count == count


def test_a_tail_is_read_back() -> None:
    header = Header(
        "s", 't"', "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", system="é", meta={"a": 1}, todos={"items": []},
        frozen=True, parent=Parent("p", "a" * 64), extra={"x": [1, {"y": None}]},
    )  # fmt: skip
    assert document.decode_tail(document.encode_tail(header), "é") == header


@pytest.mark.parametrize("message", [
    Message("user", "hi"),
    Message("assistant", "", id="msg_1", thinking="t", thinking_signature="s", calls=(Call("c", "n", {"a": [1]}),)),
    Message("tool", "r", tool_name="n", tool_call_id="c", type=2, tokens={"total": 3}, created_at="x", extra={"z": 1}),
    Message("user", "\u0000\u2028", images=({"Data": "aGk="},)),
])  # fmt: skip
def test_a_message_is_read_back(message: Message) -> None:
    assert document.decode_message(document.encode_message(message)) == message


def test_empty_fields_are_left_out_of_a_message() -> None:
    assert document.encode_message(Message("user", "")) == b'{"ID":"","Role":"user","Content":""}'


def test_lower_case_spellings_are_read_as_the_upper_ones() -> None:
    upper = with_messages({"ID": "m", "Role": "assistant", "Content": "c", "Thinking": "t"})
    lower = with_messages({"id": "m", "role": "assistant", "content": "c", "thinking": "t"})
    assert document.parse_document(lower) == document.parse_document(upper)


def test_a_system_message_is_moved_only_where_no_system_prompt_is_stored() -> None:
    stored = reference(system="The real one.", messages=[{"Role": "system", "Content": "a note"}])
    parsed = document.parse_document(stored)
    assert parsed.header.system == "The real one."
    assert [document.decode_message(body).content for body in parsed.messages] == ["a note"]
    notice = document.parse_document(with_messages({"Role": "system", "Content": "note", "type": 3}))
    assert (notice.header.system, len(notice.messages)) == ("", 1)


def test_another_id_may_be_given_and_every_id_is_checked() -> None:
    assert document.parse_document(reference(), id="mine").header.id == "mine"
    assert document.parse_document(reference(id="a/b"), id="mine").header.id == "mine"
    for bad in ({"id": "a/b"}, {"id": ""}, {"id": None}):
        with pytest.raises(InvalidId):
            document.parse_document(reference(**bad))


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([{"Role": "assistant", "Content": "", "calls": [CALL]}], 0),
        ([{"Role": "user", "Content": ""}, {"Role": "tool", "Content": "", "tool_call_id": "c1"}], 1),
        ([{"Role": "assistant", "calls": [CALL]}, {"Role": "user", "Content": "x"}], 0),
        ([{"Role": "assistant", "calls": [CALL, CALL]}], 0),
        ([{"Role": "user", "calls": [CALL]}], 0),
        (
            [
                {"Role": "user"},
                {"Role": "assistant", "calls": [CALL]},
                {"Role": "tool", "tool_call_id": "c1"},
                {"Role": "tool", "tool_call_id": "c1"},
            ],
            3,
        ),
    ],
)
def test_a_broken_pair_is_refused_with_its_index(messages: list[dict[str, Any]], index: int) -> None:
    with pytest.raises(InvalidSession, match=f"message {index}:"):
        document.parse_document(with_messages(*messages))
    system = {"Role": "system", "Content": "s"}
    with pytest.raises(InvalidSession, match=f"message {index + 1}:"):
        document.parse_document(with_messages(system, *messages))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a session document"),
        (b"[]", "not an object"),
        (b"{}", "has no messages"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"messages":' + b"[" * 300 + b"]" * 300 + b"}", "200 levels"),
        (reference(messages={}), "'messages' is not a list"),
        (reference(messages=[1]), "message 0 is not an object"),
        (with_messages({"Content": "x"}), "message 0: the role"),
        (with_messages({"Role": "robot"}), "message 0: the role"),
        (with_messages({"Role": "user", "Content": 5}), "'Content' is not a string"),
        (with_messages({"Role": "user", "type": 6}), "the type"),
        (with_messages({"Role": "user", "type": True}), "the type"),
        (with_messages({"Role": "user", "images": {}}), "'images'"),
        (
            with_messages({"Role": "user", "tokens": [1]}), "'tokens' is not an object"),
        (with_messages({"Role": "assistant", "calls": {}}), "'calls' is not a list"),
        (with_messages({"Role": "assistant", "calls": [{**CALL, "extra": 1}]}), "unknown key 'extra'"),
        (with_messages({"Role": "assistant", "calls": [{**CALL, "arguments": "x"}]}), "'arguments' is not an object"),
        (reference(title=7), "'title' is not a string"),
        (reference(created_at="yesterday"), "'created_at' is not an RFC 3339 time"),
        (reference(updated_at="2026-02-30T00:00:00Z"), "'updated_at'"),
        (reference(meta=[1]), "'meta' is not an object"),
        (reference(todos=[]), "'todos' is not an object"),
        (reference(frozen="yes"), "'frozen'"),
        (reference(parent={"id": "x", "revision": "ABC"}), "'parent.revision'"),
        (reference(system=5), "'system' is not a string"),
    ],
)  # fmt: skip
def test_a_bad_document_is_refused_with_its_reason(data: bytes, why: str) -> None:
    with pytest.raises(InvalidSession, match=why):
        document.parse_document(data)


def test_nulls_stand_for_what_is_not_there() -> None:
    parsed = document.parse_document(
        reference(todos=None, meta=None, frozen=None, parent=None, messages=None, title=None)
    )
    assert (parsed.messages, parsed.header.meta, parsed.header.todos, parsed.header.frozen) == ((), {}, None, False)
    bare = document.parse_document(with_messages({"Role": "user", "ID": None, "Content": None, "calls": None}))
    assert bare.messages == (b'{"ID":"","Role":"user","Content":""}',)


def test_a_message_that_no_document_could_hold_is_refused() -> None:
    arguments: Any = []
    for _ in range(194):
        arguments = [arguments]
    fine = Message("assistant", "", calls=(Call("c", "n", {"a": arguments[0]}),))
    body = document.encode_message(fine)
    whole = b"".join(document.iterate_document([body], Header("s", "", "", "")))
    assert canonical.decode(whole)
    with pytest.raises(canonical.NotCanonical):
        document.encode_message(Message("assistant", "", calls=(Call("c", "n", {"a": [arguments]}),)))


@pytest.mark.requirement("session.import.idempotent")
def test_the_same_conversation_ignores_times_freezing_lineage_and_the_order_of_keys() -> None:
    one = document.parse_document(reference())
    turned = {key: REFERENCE[key] for key in reversed(REFERENCE)}
    turned |= {"meta": dict(reversed(REFERENCE["meta"].items())), "created_at": "2020-01-01T00:00:00Z"}
    turned |= {"frozen": True, "parent": {"id": "p", "revision": "b" * 64}, "updated_at": "2020-01-01T00:00:00Z"}
    assert document.same_conversation(one, document.parse_document(json.dumps(turned).encode()))


@pytest.mark.requirement("session.import.exists")
@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other"},
        {"meta": {}},
        {"todos": None},
        {"house": 1},
        {"messages": REFERENCE["messages"][:-1]},
        {"messages": REFERENCE["messages"][:-1] + [{"Role": "assistant", "Content": "Done"}]},
        {"messages": [{"Role": "system", "Content": "other"}, *REFERENCE["messages"][1:]]},
    ],
)
def test_another_conversation_is_told_apart(change: dict[str, Any]) -> None:
    one = document.parse_document(reference())
    assert not document.same_conversation(one, document.parse_document(reference(**change)))


@pytest.mark.requirement("store.checkpoints.unchanged")
def test_a_save_that_would_only_rewrite_the_date_is_recognised() -> None:
    header = document.parse_document(reference()).header
    from dataclasses import replace

    assert document.same_content(header, replace(header, updated_at="2030-01-01T00:00:00Z"))
    assert not document.same_content(header, replace(header, title="x"))
    assert not document.same_content(header, replace(header, system="x"))
