"""`aura session fork` and `freeze` (contract.md, Idempotency; interfaces.md section 9)."""

from __future__ import annotations

import fcntl
import hashlib
import json
from contextlib import contextmanager

import pytest

OTHER = "0" * 64


@contextmanager
def held(program, session_id):
    """Hold a session as a server does."""
    locks = program.store / ".locks"
    locks.mkdir(exist_ok=True)
    with (locks / f"{session_id}.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def exported(program, session_id):
    data = program.run("export", session_id, "--output", "-").out
    return data, json.loads(data)


# --- fork --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("store.lineage", "session.fork", "session.fork.history")
def test_a_fork_records_its_parents_revision_and_copies_its_history(program, imported):
    done = program.json("fork", "task-1", "--id", "child")
    assert list(done) == ["session", "parent", "created"]
    child = done["session"]
    assert (done["created"], done["parent"]) == (True, imported)
    assert child["parent"] == {"id": "task-1", "revision": imported["revision"]}
    assert (child["title"], child["messages"], child["frozen"]) == (imported["title"], 3, False)
    data, fields = exported(program, "child")
    assert hashlib.sha256(data).hexdigest() == child["revision"]
    assert fields["messages"] == exported(program, "task-1")[1]["messages"]


@pytest.mark.requirement("session.fork.idempotent")
def test_the_same_fork_again_is_returned_as_stored(program, imported):
    first = program.json("fork", "task-1", "--id", "child", "--title", "Mine")
    again = program.json("fork", "task-1", "--id", "child", "--title", "Another")
    assert first["session"]["title"] == "Mine"
    assert again == first | {"created": False}


@pytest.mark.requirement("session.fork.exists", "session.codes")
def test_any_other_child_exists(program, document, imported):
    program.json("import", "-", "--id", "child", input=document())
    program.fails("exists", "fork", "task-1", "--id", "child")
    program.fails("exists", "fork", "task-1", "--id", "task-1")


@pytest.mark.requirement("session.fork.exists")
def test_a_child_of_an_older_revision_of_the_parent_exists(program, imported):
    program.json("fork", "task-1", "--id", "child")
    program.json("freeze", "task-1")
    program.fails("exists", "fork", "task-1", "--id", "child")
    again = program.json("fork", "task-1", "--id", "child", "--revision", imported["revision"][:10])
    assert again["created"] is False


@pytest.mark.requirement("store.frozen.readable")
def test_a_frozen_parent_can_be_forked_and_its_child_is_not_frozen(program, imported):
    program.json("freeze", "task-1")
    assert program.json("fork", "task-1", "--id", "child")["session"]["frozen"] is False


@pytest.mark.requirement("store.lineage.parent-untouched")
def test_a_held_parent_can_be_forked(program, imported):
    with held(program, "task-1"):
        assert program.json("fork", "task-1", "--id", "child")["created"] is True


@pytest.mark.requirement("session.fork.expect-revision", "session.codes")
def test_an_expected_revision_must_be_the_parents(program, imported):
    program.fails("revision_mismatch", "fork", "task-1", "--id", "child", "--expect-revision", OTHER)
    program.fails("not_found", "show", "child")
    done = program.json("fork", "task-1", "--id", "child", "--expect-revision", imported["revision"])
    assert done["created"] is True


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "A" * 64, "a" * 65])
def test_an_expected_revision_that_cannot_be_one_is_a_bad_request(program, imported, text):
    program.fails("bad_request", "fork", "task-1", "--id", "child", "--expect-revision", text)


@pytest.mark.requirement("session.codes")
def test_a_missing_parent_is_not_found(program, imported):
    program.fails("not_found", "fork", "nope", "--id", "child")


@pytest.mark.requirement("session.codes")
@pytest.mark.parametrize("bad", ["", "../x", "-x" * 2, "a..b", "x" * 129, "with space", "ü"])
def test_a_bad_id_is_invalid_id(program, imported, bad):
    program.fails("invalid_id", "fork", "task-1", f"--id={bad}")


def test_a_title_that_is_not_utf_8_is_a_bad_request(program, imported):
    program.fails("bad_request", "fork", "task-1", "--id", "child", "--title", b"\xff")
    program.fails("not_found", "show", "child")


def test_people_read_one_line_about_a_fork(program, imported):
    assert program.text("fork", "task-1", "--id", "child").startswith("forked child (3 messages, revision ")
    assert program.text("fork", "task-1", "--id", "child").startswith("already there: child (")


# --- freeze ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("session.freeze", "session.freeze.idempotent")
def test_freezing_makes_a_new_revision_and_happens_once(program, imported):
    first = program.json("freeze", "task-1")
    assert list(first) == ["session", "changed"]
    assert (first["changed"], first["session"]["frozen"]) == (True, True)
    assert first["session"]["revision"] != imported["revision"]
    assert exported(program, "task-1")[1]["frozen"] is True
    assert program.json("freeze", "task-1") == {"session": first["session"], "changed": False}


@pytest.mark.requirement("session.freeze.expect-revision")
def test_an_expected_revision_must_be_the_sessions(program, imported):
    program.fails("revision_mismatch", "freeze", "task-1", "--expect-revision", OTHER)
    assert program.json("show", "task-1") == imported
    assert program.json("freeze", "task-1", "--expect-revision", imported["revision"])["changed"] is True


@pytest.mark.requirement("session.freeze.expect-revision")
def test_a_repeated_freeze_may_expect_the_revision_before_or_after_it(program, imported):
    frozen = program.json("freeze", "task-1", "--expect-revision", imported["revision"])["session"]
    for revision in (imported["revision"], frozen["revision"]):
        done = program.json("freeze", "task-1", "--expect-revision", revision)
        assert done == {"session": frozen, "changed": False}
    program.fails("revision_mismatch", "freeze", "task-1", "--expect-revision", OTHER)


@pytest.mark.requirement("store.lease.exclusive", "session.codes")
def test_a_held_session_is_locked_for_writers_and_open_for_readers(program, document, imported):
    with held(program, "task-1"):
        program.fails("session_locked", "freeze", "task-1")
        program.fails("session_locked", "import", "-", "--freeze", input=document())
        program.fails("exists", "import", "-", "--freeze", input=document(title="Other"))
        assert program.json("import", "-", input=document())["created"] is False
        assert program.json("show", "task-1") == imported
        assert program.json("list")["sessions"] == [imported]
        assert program.json("export", "task-1", "--output", "out.json")["written"] is True
    assert program.json("freeze", "task-1")["changed"] is True


def test_a_missing_session_cannot_be_frozen(program, imported):
    program.fails("not_found", "freeze", "nope")
    program.fails("invalid_id", "freeze", "no/pe")
    program.fails("bad_request", "freeze", "task-1", "--expect-revision", "abc")


def test_people_read_one_line_about_a_freeze(program, imported):
    assert program.text("freeze", "task-1").startswith("frozen task-1 (3 messages, revision ")
    assert program.text("freeze", "task-1").startswith("already frozen: task-1 (")
