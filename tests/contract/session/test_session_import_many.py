"""`aura session import` of many inputs and of foreign formats (docs/cli.md, docs/formats.md)."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

from tests.support import foreign


def lines(done):
    """Return the objects on standard output."""
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture
def files(program, document):
    """Three documents, one of them bad, in files of their own."""
    for name, data in (("a", document(id="a")), ("b", b"{torn"), ("c", document(id="c"))):
        (program.cwd / f"{name}.json").write_bytes(data)
    return program


def test_a_bad_input_stops_no_other_and_fails_the_command_at_its_end(files):
    done = files.run("import", "a.json", "b.json", "missing.json", "c.json", "--json")
    assert done.exit_code == 1
    assert [(item["input"], "session" in item, item.get("error", {}).get("code")) for item in lines(done)] == [
        ("a.json", True, None),
        ("b.json", False, "invalid_session"),
        ("missing.json", False, "bad_request"),
        ("c.json", True, None),
    ]
    error = json.loads(done.err)["error"]
    assert (error["code"], error["message"]) == ("invalid_session", "2 of 4 imports failed (2 imported, 2 failed)")
    assert [session["id"] for session in files.json("list")["sessions"]] == ["c", "a"]


def test_people_read_a_line_per_input_and_a_summary_on_standard_error(files):
    done = files.run("import", "a.json", "c.json", "a.json")
    assert done.exit_code == 0
    first, _, again = done.text.splitlines()
    assert first.startswith("a.json: imported a (3 messages, revision ")
    assert again.startswith("a.json: already there: a (3 messages")
    assert done.error_lines == ["2 imported, 1 already there"]
    failed = files.run("import", "a.json", "b.json")
    assert failed.text.splitlines()[1].startswith("b.json: error: not a session document")
    assert failed.error_lines[0] == "error: 1 of 2 imports failed (1 already there, 1 failed)"


def test_many_that_succeed_say_nothing_on_standard_error_with_json(files):
    done = files.run("import", "a.json", "c.json", "--json")
    assert (done.exit_code, done.err, [item["created"] for item in lines(done)]) == (0, b"", [True, True])
    assert list(lines(done)[0]) == ["input", "session", "created", "frozen_now", "source_sha256"]


def test_documents_line_by_line_come_from_a_pipe(program, document):
    data = b"\n".join([document(id="one"), b"", b"nonsense", document(id="two")])
    done = program.run("import", "-", "--json", input=data)
    assert done.exit_code == 1
    assert [(item["input"], item["line"], "error" in item) for item in lines(done)] == [
        ("-", 1, False),
        ("-", 3, True),
        ("-", 4, False),
    ]


def test_documents_after_a_bad_first_line_are_stored(program, document):
    done = program.run("import", "-", "--json", input=b"nonsense\n" + document(id="one"))
    assert done.exit_code == 1
    assert [(item["line"], item.get("session", {}).get("id")) for item in lines(done)] == [(1, None), (2, "one")]


def test_a_message_per_line_is_one_session(program):
    first = program.json("import", str(foreign.OPENAI_MESSAGES))
    assert (first["format"], first["session"]["messages"]) == ("openai", 5)
    assert program.json("import", str(foreign.OPENAI_MESSAGES))["session"] == first["session"]


def test_a_directory_and_a_pattern_are_read_in_the_order_of_their_names(files):
    (files.cwd / "d" / "e").mkdir(parents=True)
    os.rename(files.cwd / "c.json", files.cwd / "d" / "e" / "c.json")
    os.rename(files.cwd / "a.json", files.cwd / "d" / "a.json")
    from_directory = files.run("import", "d", "--json")
    assert [item["input"] for item in lines(from_directory)] == ["d/a.json", "d/e/c.json"]
    from_pattern = files.run("import", "d/**/*.json", "--json")
    assert [(item["input"], item["created"]) for item in lines(from_pattern)] == [
        ("d/a.json", False),
        ("d/e/c.json", False),
    ]


def test_an_id_is_for_one_session(files):
    files.fails("bad_request", "import", "a.json", "c.json", "--id", "x")
    assert not files.home.exists()


@pytest.mark.parametrize(
    ("choice", "exit_code", "conflict"), [("fail", 1, None), ("skip", 0, "skipped"), ("fork", 0, "forked")]
)
def test_what_happens_to_another_conversation_of_the_same_id_can_be_chosen(
    program, document, imported, choice, exit_code, conflict
):
    done = program.run("import", "-", "--on-conflict", choice, "--json", input=document(title="Other"))
    assert done.exit_code == exit_code
    if exit_code:
        assert json.loads(done.err)["error"]["code"] == "exists"
        return
    answer = json.loads(done.out)
    assert answer["conflict"] == conflict
    assert answer["created"] is (choice == "fork")
    assert answer["session"]["id"].startswith("task-1")
    assert program.json("show", "task-1") == imported


def test_freeze_freezes_each_of_many(files):
    done = files.run("import", "a.json", "c.json", "--freeze", "--json")
    assert [item["session"]["frozen"] for item in lines(done)] == [True, True]


@pytest.mark.parametrize(
    ("path", "format"),
    [(path, name) for name, paths in foreign.LINE_FILES.items() for path in paths] + [(foreign.OPENAI_LIST, "openai")],
    ids=lambda value: getattr(value, "stem", value)[:14],
)
def test_a_foreign_file_answers_with_the_contracts_object_and_more(program, path, format):
    first = program.json("import", str(path))
    assert list(first) == ["session", "created", "frozen_now", "source_sha256", "format", "warnings"]
    assert (first["created"], first["format"]) == (True, format)
    again = program.json("import", str(path), "--format", format)
    assert (again["created"], again["session"]) == (False, first["session"])


def test_a_foreign_files_repairs_are_told_to_people(program):
    text = program.text("import", str(foreign.CLAUDE_CODE))
    assert "warning: calls without a result, each given an error result: 1\n" in text


def test_a_file_of_another_format_than_the_one_named_is_refused(program, document):
    error = program.fails("invalid_session", "import", "-", "--format", "openai", input=b'{"id": "x"}')
    assert "messages" in error["message"]
    program.fails("invalid_session", "import", "-", "--format", "aura", input=foreign.CODEX.read_bytes())


def test_a_terminal_shows_a_bar_and_pipes_do_not(files):
    for n in range(40):
        (files.cwd / f"m{n}.json").write_bytes((files.cwd / "a.json").read_bytes().replace(b'"a"', f'"m{n}"'.encode()))
    leader, follower = pty.openpty()
    done = subprocess.run(
        files.command("import", "m*.json", "--json"),
        cwd=files.cwd,
        env=files.environment(),
        stdout=subprocess.PIPE,
        stderr=follower,
        timeout=60,
        check=True,
    )
    os.close(follower)
    shown = os.read(leader, 65536)
    os.close(leader)
    assert len(done.stdout.splitlines()) == 40
    assert b"%" in shown and shown.endswith(b"\r\x1b[K")
    assert b"%" not in files.run("import", "m*.json").err
