"""Nothing of a foreign file is dropped on its way through a document: `aura.wire.formats`."""

from __future__ import annotations

import hashlib
import json

import pytest

from aura.conversation import MessageType, find_broken_pair, is_shown_to_model
from aura.errors import InvalidSession
from aura.wire import canonical, document
from aura.wire.formats import claude_code, claude_code_export, codex, codex_export, openai
from aura.wire.formats.drafts import find_origin
from tests.support import foreign

READERS = {"claude-code": claude_code.read_session, "codex": codex.read_session}
WRITERS = {"claude-code": claude_code_export.write_session, "codex": codex_export.write_session}
LINE_FILES = [(name, path) for name, paths in foreign.LINE_FILES.items() for path in paths]
CHATS = [*map(json.loads, foreign.OPENAI.read_text().splitlines()), json.loads(foreign.OPENAI_LIST.read_text())]


def through_a_document(conversation):
    """Return the header and messages after they were stored, exported and parsed again."""
    data = b"".join(document.iterate_document(conversation.messages, conversation.header))
    again = document.parse_document(data)
    assert again == conversation
    return again.header, document.read_messages(again.messages)


@pytest.mark.parametrize(("name", "path"), LINE_FILES, ids=[path.stem[:20] for _, path in LINE_FILES])
def test_a_file_of_lines_is_written_again_record_by_record(name, path):
    data = path.read_bytes()
    header, messages = through_a_document(READERS[name](data).conversation)
    written = WRITERS[name](header, messages)
    assert foreign.json_lines(b"\n".join(written.lines)) == foreign.json_lines(data)
    assert written.left_out == 0


@pytest.mark.parametrize(("name", "path"), LINE_FILES, ids=[path.stem[:20] for _, path in LINE_FILES])
def test_every_leaf_of_a_file_of_lines_is_in_the_document(name, path):
    data = path.read_bytes()
    _, messages = through_a_document(READERS[name](data).conversation)
    kept = [record for message in messages for _, record in find_origin(message).records]
    assert foreign.leaves(kept) == foreign.leaves(foreign.json_lines(data))


@pytest.mark.parametrize("value", CHATS, ids=["tools", "legacy", "list"])
def test_chat_messages_are_written_again_as_they_were(value):
    read = openai.read_conversation(value, canonical.encode(value))
    written = openai.write_conversation(*through_a_document(read.conversation))
    assert written.fields == (value if isinstance(value, dict) else {"messages": value})
    assert written.left_out == 0


@pytest.mark.parametrize(("name", "path"), LINE_FILES, ids=[path.stem[:20] for _, path in LINE_FILES])
def test_a_repeated_import_gives_the_same_bytes_and_complete_pairs(name, path):
    one, two = (READERS[name](path.read_bytes()).conversation for _ in range(2))
    assert one == two
    assert find_broken_pair(document.read_messages(one.messages)) is None


def test_a_claude_code_session_reads_as_it_was_held():
    read = claude_code.read_session(foreign.CLAUDE_CODE.read_bytes())
    header = read.conversation.header
    shown = [message for message in document.read_messages(read.conversation.messages) if is_shown_to_model(message)]
    assert (header.id, header.title) == ("7d3c1f52-8a44-4be0-9c1d-2f6f0a5b9e11", "Lamp period")
    assert (header.created_at, header.updated_at) == ("2026-03-14T08:00:04.148Z", "2026-03-14T08:03:37.029Z")
    assert [(message.role, len(message.calls), int(message.type)) for message in shown[:6]] == [
        ("user", 0, MessageType.SYNTHETIC),
        ("user", 0, MessageType.NORMAL),
        ("assistant", 2, MessageType.NORMAL),
        ("tool", 0, MessageType.NORMAL),
        ("tool", 0, MessageType.NORMAL),
        ("assistant", 1, MessageType.NORMAL),
    ]
    answer, first, second = shown[2:5]
    assert (answer.content, answer.thinking_signature[:4]) == ("I look at the timer and at its test.", "EqoB")
    assert [call.name for call in answer.calls] == ["Read", "Bash"]
    assert [(first.tool_name, first.tool_call_id), (second.tool_name, second.content)] == [
        ("Bash", "toolu_B"),
        ("Read", "     1\tPERIOD_S = 12.5\n"),
    ]
    assert answer.created_at == "2026-03-14T08:00:21.777Z"
    plate, shot = (message.images[0] for message in shown if message.images)
    assert (plate["media_type"], list(shot)) == ("image/png", ["Data"])
    assert "Find who set 12.5" not in [message.content for message in shown], "a side chain is no part of it"
    assert shown[-2].content.startswith("[imported]") and shown[-2].tool_call_id == "toolu_E"
    assert read.warnings == (
        "calls without a result, each given an error result: 1",
        "lines that are no JSON, kept as text: 1",
        "content parts of an unknown kind, kept in the source record: 3",
    )


def test_an_agents_own_file_is_a_conversation_with_an_id_of_its_own():
    read = claude_code.read_session(foreign.CLAUDE_CODE_AGENT.read_bytes())
    assert read.conversation.header.id == "7d3c1f52-8a44-4be0-9c1d-2f6f0a5b9e11.agent-f00d42"
    assert [message.content for message in document.read_messages(read.conversation.messages)] == [
        "Count the buoys",
        "Nine.",
    ]


def test_a_codex_session_reads_as_it_was_held():
    read = codex.read_session(foreign.CODEX.read_bytes())
    header = read.conversation.header
    shown = [message for message in document.read_messages(read.conversation.messages) if is_shown_to_model(message)]
    assert header.id == "019c5e2a-77aa-7b31-8f00-5d1f9a3b2c44"
    assert header.title == "Why does cone 6 run hot? 🏺 — größer als 1222 °C"
    assert header.system == "You are a careful potter's helper."
    assert shown[0].type == MessageType.SYNTHETIC, "what Codex inserts is nothing that a person said"
    answer = shown[2]
    assert answer.thinking == "**Reading the curve**\nThe table and the log tell."
    assert answer.content == "I read the table and the log."
    assert [(call.id, call.arguments["cmd"]) for call in answer.calls] == [
        ("call_1", "cat cone6.csv"),
        ("call_2", "tail -n 3 kiln.log"),
    ]
    assert [(message.tool_name, message.tool_call_id) for message in shown if message.role == "tool"] == [
        ("exec_command", "call_2"),
        ("exec_command", "call_1"),
        ("apply_patch", "call_3"),
        ("local_shell", "call_4"),
        ("exec_command", "call_5"),
    ]
    assert "exit 3: no such kiln" in [message.content for message in shown]
    unreadable = [call.arguments for message in shown for call in message.calls if call.id == "call_5"]
    assert unreadable == [{"input": "not json"}]


def test_chat_messages_are_read_with_calls_results_images_and_thinking():
    read = openai.read_conversation(CHATS[0], b"x")
    messages = document.read_messages(read.conversation.messages)
    assert read.conversation.header.system == "You keep the log of a small harbour. Be brief."
    assert read.conversation.header.id == f"openai-{hashlib.sha256(b'x').hexdigest()[:32]}"
    assert [call.arguments for call in messages[1].calls] == [
        {"path": "log/03.txt"},
        {"command": "wc -l log/03.txt"},
    ]
    assert [(message.tool_name, message.content) for message in messages[2:4]] == [
        ("run", "2 log/03.txt"),
        ("read_file", "06:10 Möwe\n09:45 Ingrid\n"),
    ]
    assert messages[5].content == "Is this one of them?\nIt has a red hull." and "Data" in messages[5].images[0]
    assert messages[6].thinking == "The red hull is hers."
    assert messages[7].content == "[input_audio]"
    assert messages[7].images == ({"url": "https://harbour.example/buoy.png"},)
    assert (messages[9].role, messages[9].type) == ("system", MessageType.METADATA)


def test_a_file_with_a_message_per_line_is_one_conversation_with_a_torn_line_as_text():
    data = foreign.OPENAI_MESSAGES.read_bytes()
    read = openai.read_lines(data)
    written = openai.write_conversation(*through_a_document(read.conversation))
    source = [line.decode() if isinstance(line, bytes) else line for line in foreign.json_lines(data)]
    assert written.fields == {"messages": source}
    assert read.conversation.header.system == "Answer as a beekeeper."
    assert read.warnings == ("lines that are no JSON, kept as text: 1",)
    assert read == openai.read_lines(data)


@pytest.mark.parametrize("data", [b"", b"null", b'{"id":1}\n{"id":2}'])
def test_lines_without_a_message_are_no_conversation(data):
    with pytest.raises(InvalidSession):
        openai.read_lines(data)


def test_a_message_that_can_be_written_again_keeps_no_second_copy():
    value = {"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]}
    read = openai.read_conversation(value, b"x")
    assert [find_origin(message) for message in document.read_messages(read.conversation.messages)] == [None, None]


def test_messages_that_came_later_are_written_as_records_of_the_same_shape():
    later = openai.read_conversation(CHATS[0], b"x").conversation
    fresh = [message for message in document.read_messages(later.messages) if is_shown_to_model(message)]
    for name, path in LINE_FILES:
        source = path.read_bytes()
        old = READERS[name](source).conversation
        written = WRITERS[name](old.header, [*document.read_messages(old.messages), *fresh])
        records = foreign.json_lines(b"\n".join(written.lines))
        assert records[: len(foreign.json_lines(source))] == foreign.json_lines(source)
        again = READERS[name](b"\n".join(line for line in written.lines if line[-1:] == b"}")).conversation
        read = [message for message in document.read_messages(again.messages) if is_shown_to_model(message)]
        tail = read[-len(fresh) :]
        assert [message.calls for message in tail] == [message.calls for message in fresh]
        assert [message.content for message in tail if message.role == "tool"] == [
            message.content for message in fresh if message.role == "tool"
        ]
