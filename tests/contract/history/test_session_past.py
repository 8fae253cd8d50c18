"""`aura session log`, `diff` and `messages`, and `--revision` of the commands that have it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.contract.history.conftest import TIMEOUT_S, Program

DOCUMENT = {
    "id": "s1",
    "title": "The task",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
    "system": "Be careful.",
    "messages": [
        {"ID": "m1", "Role": "user", "Content": "# Please\n\nread **it**\x1b[2J", "created_at": "2026-01-01T00:00:00Z"},
        {
            "ID": "m2",
            "Role": "assistant",
            "Content": "Reading.",
            "Thinking": "a hidden thought",
            "calls": [{"id": "c1", "name": "Read", "arguments": {"path": "a.py"}}],
        },
        {"ID": "m3", "Role": "tool", "Content": "1: import sys", "tool_name": "Read", "tool_call_id": "c1"},
        {"ID": "m4", "Role": "system", "Content": "a notice"},
        {"ID": "m5", "Role": "assistant", "Content": "Done."},
    ],
}


@pytest.fixture
def imported(program: Program) -> Program:
    program.json("session", "import", "-", input=json.dumps(DOCUMENT).encode())
    return program


def test_the_log_tells_what_each_revision_changed(told):
    answer = told.json("session", "log", "api")
    assert answer["session_id"] == "api"
    entries = answer["revisions"]
    assert [entry["n"] for entry in entries] == list(range(len(entries), 0, -1))
    assert entries[0]["revision"] == told.json("session", "show", "api")["revision"]
    assert entries[0]["messages"] == 12 == sum(entry["added"] for entry in entries)
    assert list(entries[0]) == ["n", "revision", "at", "reason", "run_id", "messages", "dropped", "added", "changed"]
    assert entries[-1]["reason"] == "create" and entries[-1]["changed"] == ["empty"]
    assert told.json("session", "log", "api", "--limit", "2")["revisions"] == entries[:2]


def test_people_read_the_log_as_a_table(told):
    head, first, *rest = told.text("session", "log", "api").splitlines()
    assert head.split() == ["REVISION", "TIME", "REASON", "MESSAGES", "RUN", "CHANGED"]
    assert "run-7" in first and first.endswith("+3 messages")
    assert rest[-1].split()[-4:] == ["create", "0", "-", "empty"]


def test_every_revision_of_the_log_can_be_shown_exported_and_forked_by_its_beginning(told):
    entries = told.json("session", "log", "docs")["revisions"]
    for number, entry in enumerate((entries[1], entries[-1])):
        prefix = entry["revision"][:12]
        shown = told.json("session", "show", "docs", "--revision", prefix)
        assert (shown["revision"], shown["messages"]) == (entry["revision"], entry["messages"])
        assert told.run("session", "export", "docs", "--output", "-", "--revision", prefix).returncode == 0
        forked = told.json("session", "fork", "docs", "--id", f"f{number}", "--revision", prefix)
        assert forked["session"]["messages"] == entry["messages"]
        assert told.json("session", "log", f"f{number}")["revisions"][0]["changed"][-1] == "fork of docs"


def test_the_diff_is_between_the_last_two_revisions_unless_others_are_named(told):
    newest, before, *_, oldest = (entry["revision"] for entry in told.json("session", "log", "docs")["revisions"])
    diff = told.json("session", "diff", "docs")
    assert (diff["from"]["revision"], diff["to"]["revision"]) == (before, newest)
    assert (
        told.json("session", "diff", "docs", before[:9]) == diff == told.json("session", "diff", "docs", before, newest)
    )
    whole = told.json("session", "diff", "docs", oldest[:9])
    assert [item["change"] for item in whole["messages"]] == ["added"] * 9
    assert [item["to"]["index"] for item in whole["messages"]] == list(range(9))
    back = told.json("session", "diff", "docs", newest, oldest)
    assert [item["change"] for item in back["messages"]] == ["dropped"] * 9
    assert told.json("session", "diff", "docs", newest, newest)["messages"] == []


def test_a_first_revision_is_compared_with_nothing(imported):
    diff = imported.json("session", "diff", "s1")
    assert diff["from"] is None and len(diff["messages"]) == 5
    assert {"path": "system", "from": "", "to": "Be careful."} in diff["fields"]
    lines = imported.text("session", "diff", "s1").splitlines()
    assert lines[0] == "--- nothing" and "+# Please" in lines and '+call: Read {"path":"a.py"}' in lines
    assert "\x1b" not in "".join(lines) and "hidden thought" not in "".join(lines)


def test_a_conversation_is_plain_in_a_pipe(imported):
    text = imported.text("session", "messages", "s1")
    assert text.splitlines()[:4] == ["[0] user 2026-01-01 00:00:00Z", "", "# Please", ""]
    assert "read **it** [2J" in text and "\x1b" not in text
    assert "hidden thought" not in text and "a notice" not in text and "Be careful." not in text
    assert '[1] assistant\n\nReading.\n\ncall: Read {"path":"a.py"}\n' in text
    assert "> a hidden thought" in imported.text("session", "messages", "s1", "--thinking")


def test_messages_are_chosen_by_role_place_and_from_the_end(imported):
    def indexes(*words: str) -> list[int | None]:
        return [item["index"] for item in imported.json("session", "messages", "s1", *words)["messages"]]

    assert indexes() == [0, 1, 2, 3]
    assert indexes("--role", "assistant") == [1, 3]
    assert indexes("--role", "user", "--role", "tool") == [0, 2]
    assert (
        indexes("--after", "1") == [2, 3] and indexes("--after", "-1") == [0, 1, 2, 3] and indexes("--after", "9") == []
    )
    assert indexes("--tail", "1") == [3] and indexes("--role", "assistant", "--tail", "1", "--after", "1") == [3]
    assert indexes("--role", "system") == [None, None]
    items = imported.json("session", "messages", "s1", "--role", "system")["messages"]
    assert [item["content"] for item in items] == ["Be careful.", "a notice"]


def test_messages_have_the_shape_of_the_api_and_thinking_only_when_asked_for(imported):
    answer = imported.json("session", "messages", "s1", "--tail", "1")
    assert answer["session"] == imported.json("session", "show", "s1")
    keys = ["index", "message_id", "role", "content", "calls", "tool_call_id", "tool_name", "type", "created_at"]
    assert list(answer["messages"][0]) == keys
    thought = imported.json("session", "messages", "s1", "--role", "assistant", "--thinking")["messages"]
    assert [item["thinking"] for item in thought] == ["a hidden thought", None]


def test_older_messages_are_read_by_revision(told):
    entries = told.json("session", "log", "docs")["revisions"]
    for entry in entries[::3]:
        items = told.json("session", "messages", "docs", "--revision", entry["revision"][:12])["messages"]
        assert len(items) == entry["messages"]


def test_a_terminal_gets_rendered_markdown_and_colors(imported):
    ours, theirs = os.openpty()
    try:
        for words in (("messages", "s1"), ("diff", "s1")):
            environment = imported.environment | {"TERM": "xterm", "COLUMNS": "70"}
            environment.pop("NO_COLOR", None)
            done = subprocess.run(
                [*imported.command, "session", *words],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=subprocess.PIPE,
                env=environment,
                timeout=TIMEOUT_S,
                check=False,
            )
            seen = os.read(ours, 1 << 20).decode()
            assert (done.returncode, done.stderr) == (0, b"")
            assert "\x1b[" in seen and "\x1b[2J" not in seen, words
            assert ("**it**" in seen) is (words[0] == "diff")
    finally:
        os.close(theirs)
        os.close(ours)


@pytest.mark.parametrize("command", ["log", "diff", "messages"])
def test_what_is_not_there_is_said_plainly(imported, command):
    imported.fails("not_found", "session", command, "nope")
    imported.fails("invalid_id", "session", command, "../s1")
    Program(imported.home.parent / "empty").fails("not_found", "session", command, "s1")
    assert not (imported.home.parent / "empty").exists()


def test_a_revision_that_is_none_is_said_plainly(imported):
    for words in (("diff", "s1", "xyz"), ("diff", "s1", "abc", "XYZ"), ("messages", "s1", "--revision", "xyz")):
        imported.fails("bad_request", "session", *words)
    imported.fails("not_found", "session", "diff", "s1", "0" * 64)
