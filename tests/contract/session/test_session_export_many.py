"""`aura session export` of many sessions and to other formats (docs/cli.md, docs/formats.md)."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from tests.support import foreign


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def two(program, document):
    """A store with `task-1` and `task-2`; gives their Summaries."""
    summaries = {}
    for name in ("task-1", "task-2"):
        summaries[name] = program.json("import", "-", input=document(id=name))["session"]
    return summaries


def test_all_are_written_as_a_document_per_line_that_imports_again(program, two):
    done = program.run("export", "--all", "--output", "all.ndjson", "--json")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert (done.exit_code, done.err) == (0, b"")
    assert [list(answer) for answer in answers] == [["session", "path", "sha256", "written", "left_out"]] * 2
    data = (program.cwd / "all.ndjson").read_bytes()
    assert [sha256(line) for line in data.splitlines()] == [answer["session"]["revision"] for answer in answers]
    elsewhere = type(program)(program.cwd, program.cwd / "other")
    again = elsewhere.run("import", "all.ndjson", "--json")
    stored = {answer["session"]["id"]: answer["session"] for answer in map(json.loads, again.out.splitlines())}
    assert (again.exit_code, stored) == (0, two)


def test_an_identical_file_is_left_alone_and_a_different_one_exists(program, two):
    program.run("export", "--all", "--output", "all.ndjson")
    again = program.run("export", "--all", "--output", "all.ndjson", "--json")
    assert [json.loads(line)["written"] for line in again.out.splitlines()] == [False, False]
    (program.cwd / "all.ndjson").write_bytes(b"mine")
    program.fails("exists", "export", "--all", "--output", "all.ndjson")
    assert (program.cwd / "all.ndjson").read_bytes() == b"mine"


def test_a_directory_gets_a_file_per_session_and_one_that_differs_stops_no_other(program, two):
    done = program.run("export", "--all", "--output", "out/", "--json")
    assert done.exit_code == 0
    assert sorted(os.listdir(program.cwd / "out")) == ["task-1.json", "task-2.json"]
    for name, summary in two.items():
        assert sha256((program.cwd / "out" / f"{name}.json").read_bytes()) == summary["revision"]
    (program.cwd / "out" / "task-2.json").write_bytes(b"mine")
    again = program.run("export", "--all", "--output", "out/", "--json")
    assert again.exit_code == 1
    found = [json.loads(line) for line in again.out.splitlines()]
    assert sorted(item.get("error", {}).get("code", "written" if "written" in item else "") for item in found) == [
        "exists",
        "written",
    ]
    assert json.loads(again.err)["error"]["message"].startswith("1 of 2 exports failed")


def test_several_named_ones_are_written_and_a_missing_one_fails_at_the_end(program, two):
    done = program.run("export", "task-2", "nope", "task-1", "--output", "-", "--json")
    assert done.exit_code == 1
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["task-2", "task-1"]
    *answers, summary = map(json.loads, done.error_lines)
    assert [answer.get("id") or answer["session"]["id"] for answer in answers] == ["task-2", "nope", "task-1"]
    assert summary["error"]["code"] == "not_found"


def test_an_existing_directory_takes_a_single_session(program, two):
    (program.cwd / "out").mkdir()
    program.json("export", "task-1", "--output", "out/")
    assert os.listdir(program.cwd / "out") == ["task-1.json"]


def test_an_empty_store_exports_nothing(program):
    done = program.run("export", "--all", "--output", "-", "--json")
    assert (done.exit_code, done.out, done.err) == (0, b"", b"")
    assert not program.home.exists()


@pytest.mark.parametrize("words", [(), ("task-1", "--all")])
def test_sessions_are_named_or_all_of_them(program, two, words):
    done = program.run("export", *words, "--output", "-")
    assert (done.exit_code, done.out) == (2, b"")


def test_a_revision_is_one_sessions(program, two):
    program.fails("bad_request", "export", "--all", "--output", "x", "--revision", "ab")


def test_the_openai_format_is_a_line_per_session_that_imports_again(program, two):
    done = program.run("export", "--all", "--format", "openai", "--output", "-")
    chats = [json.loads(line) for line in done.out.splitlines()]
    assert [list(chat) for chat in chats] == [["messages"]] * 2
    assert [message["role"] for message in chats[0]["messages"]] == ["system", "user", "assistant", "tool"]
    call = chats[0]["messages"][2]["tool_calls"][0]
    assert call["function"] == {"name": "Read", "arguments": '{"path":"cli.py"}'}
    again = program.run("import", "-", "--json", input=done.out.splitlines()[0])
    session = json.loads(again.out)["session"]
    program.json("export", session["id"], "--format", "openai", "--output", "chat.json")
    assert json.loads((program.cwd / "chat.json").read_bytes()) == chats[0]


@pytest.mark.parametrize(
    ("path", "format"),
    [(path, name) for name, paths in foreign.LINE_FILES.items() for path in paths],
    ids=lambda value: getattr(value, "stem", value)[:14],
)
def test_a_foreign_file_comes_out_as_it_went_in(program, path, format):
    session = program.json("import", str(path))["session"]
    done = program.json("export", session["id"], "--format", format, "--output", "out.jsonl")
    written = (program.cwd / "out.jsonl").read_bytes()
    assert foreign.json_lines(written) == foreign.json_lines(path.read_bytes())
    assert (done["sha256"], done["left_out"], done["written"]) == (sha256(written), 0, True)
    assert program.json("export", session["id"], "--format", format, "--output", "out.jsonl")["written"] is False


def test_openai_files_come_out_as_they_went_in(program):
    answers = program.run("import", str(foreign.OPENAI), "--json").out.splitlines()
    ids = [json.loads(answer)["session"]["id"] for answer in answers]
    done = program.run("export", *ids, "--format", "openai", "--output", "-")
    assert list(map(json.loads, done.out.splitlines())) == foreign.json_lines(foreign.OPENAI.read_bytes())


def test_a_format_of_one_session_per_file_needs_a_directory_for_many(program, two):
    program.fails("bad_request", "export", "--all", "--format", "codex", "--output", "all.jsonl")
    done = program.run("export", "--all", "--format", "codex", "--output", "out/")
    assert done.exit_code == 0
    assert sorted(os.listdir(program.cwd / "out")) == ["task-1.jsonl", "task-2.jsonl"]


def test_markdown_is_a_readable_transcript(program):
    session = program.json("import", str(foreign.CLAUDE_CODE))["session"]
    done = program.run("export", session["id"], "--format", "markdown", "--output", "-", "--json")
    text = done.out.decode()
    assert text.startswith("# Lamp period\n\nSession `7d3c1f52-")
    assert "## Assistant · 2026-03-14T08:00:21.777Z\n\n> I should look at the timer and its test.\n" in text
    assert '```json\n{"command":"pytest -q test_timer.py","timeout":60000}\n```' in text
    assert "## Tool Bash · " in text and "file-history-snapshot" not in text
    assert json.loads(done.err)["left_out"] > 0 and text.endswith("that are not shown: 17*\n")


def test_a_session_of_ours_in_another_programs_format_says_what_it_leaves_out(program):
    session = program.json("import", str(foreign.CODEX))["session"]
    done = program.json("export", session["id"], "--format", "claude-code", "--output", "out.jsonl")
    assert done["left_out"] > 0
    records = foreign.json_lines((program.cwd / "out.jsonl").read_bytes())
    assert {record["type"] for record in records} == {"user", "assistant"}
    assert [record["parentUuid"] for record in records[1:]] == [record["uuid"] for record in records[:-1]]
