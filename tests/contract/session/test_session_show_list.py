"""`aura session show` and `list` (contract.md; interfaces.md section 3)."""

from __future__ import annotations

import fcntl

import pytest


def test_an_empty_store_lists_nothing_and_reading_makes_no_file(program):
    assert program.json("list") == {"sessions": [], "warnings": []}
    assert program.text("list") == "no sessions\n"
    for words in (("show", "x"), ("export", "x", "--output", "o"), ("fork", "x", "--id", "y"), ("freeze", "x")):
        program.fails("not_found", *words)
    assert list(program.cwd.iterdir()) == []


@pytest.mark.requirement("session.list")
def test_sessions_are_listed_newest_first(program, document):
    for n, hour in (("a", 10), ("b", 12), ("c", 11)):
        program.json("import", "-", "--id", n, input=document(updated_at=f"2026-11-30T{hour}:00:00Z"))
    listed = program.json("list")
    assert [session["id"] for session in listed["sessions"]] == ["b", "c", "a"]
    assert listed["warnings"] == []
    assert listed["sessions"][0] == program.json("show", "b")


def test_people_read_an_aligned_table_without_control_characters(program, document, imported):
    program.json("import", "-", "--id", "wide", input=document(title="日本語\x1b[31m\nred"))
    program.json("fork", "task-1", "--id", "child")
    program.json("freeze", "task-1")
    text = program.text("list")
    assert text.isprintable() is False and text.replace("\n", "").isprintable()
    head, *rows = text.splitlines()
    assert head.split() == ["ID", "TITLE", "MESSAGES", "UPDATED", "REVISION", "STATE"]
    by_id = {row.split()[0]: row for row in rows}
    assert set(by_id) == {"task-1", "wide", "child"}
    assert by_id["task-1"].endswith("  frozen") and by_id["child"].endswith("  fork of task-1")
    assert "日本語 [31m red" in by_id["wide"]
    assert by_id["child"].index("3  2") == head.index("MESSAGES") + len("MESSAGES") - 1


@pytest.mark.requirement("session.json.success", "session.summary", "session.show")
def test_show_gives_the_summary_alone_as_json(program, imported):
    assert program.json("show", "task-1") == imported


def test_show_gives_people_what_the_store_knows(program, document, imported):
    program.json("freeze", "task-1")
    program.json("fork", "task-1", "--id", "child")
    lines = dict(line.split(None, 1) for line in program.text("show", "task-1").splitlines())
    assert (lines["title"], lines["messages"], lines["frozen"]) == ("Add a flag", "3", "yes")
    assert (lines["revisions"], lines["events"]) == ("2", "0")
    assert lines["revision"] == program.json("show", "task-1")["revision"]
    assert lines["held"] == "by    nobody"
    child = program.text("show", "child")
    assert f"parent     task-1 at {lines['revision']}" in child and "revisions  1" in child


def test_show_names_a_holder(program, imported):
    locks = program.store / ".locks"
    locks.mkdir(exist_ok=True)
    with (locks / "task-1.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "held by    another process" in program.text("show", "task-1")


def test_show_knows_older_revisions_by_a_prefix(program, imported):
    program.json("freeze", "task-1")
    assert program.json("show", "task-1", "--revision", imported["revision"][:8]) == imported
    assert program.json("show", "task-1", "--revision", imported["revision"]) == imported
    assert "frozen     no" in program.text("show", "task-1", "--revision", imported["revision"][:8])
    program.fails("not_found", "show", "task-1", "--revision", "0" * 64)


@pytest.mark.parametrize("prefix", ["", "xyz", "ABC", "a" * 65])
def test_a_revision_that_is_no_hex_prefix_is_a_bad_request(program, imported, prefix):
    program.fails("bad_request", "show", "task-1", f"--revision={prefix}")


def test_an_id_is_matched_exactly(program, imported):
    program.fails("not_found", "show", "task")
    program.fails("not_found", "show", "TASK-1")


@pytest.mark.parametrize("bad", ["../task-1", "a/b", "", ".hidden", "x" * 129, b"\xff\xfe"])
def test_what_cannot_be_an_id_is_invalid_id(program, imported, bad):
    program.fails("invalid_id", "show", bad)
