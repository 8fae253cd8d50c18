"""`aura session export` (contract.md; interfaces.md sections 3 and 4)."""

from __future__ import annotations

import hashlib
import json
import os
import stat

import pytest


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.requirement("store.revision", "session.export", "session.export.verbatim")
def test_the_files_hash_is_the_revision(program, imported):
    done = program.json("export", "task-1", "--output", "out.json")
    path = program.cwd / "out.json"
    assert list(done) == ["session", "path", "sha256", "written"]
    assert (done["session"], done["path"], done["written"]) == (imported, str(path), True)
    assert sha256(path.read_bytes()) == done["sha256"] == imported["revision"]
    fields = json.loads(path.read_bytes())
    assert (next(iter(fields)), fields["system"]) == ("messages", "You are careful.")
    assert [message["Role"] for message in fields["messages"]] == ["user", "assistant", "tool"]


@pytest.mark.requirement("session.export.identical")
def test_an_identical_file_is_left_alone(program, imported):
    program.json("export", "task-1", "--output", "out.json")
    before = os.stat(program.cwd / "out.json")
    assert program.json("export", "task-1", "--output", "out.json")["written"] is False
    after = os.stat(program.cwd / "out.json")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.requirement("session.export.exists")
def test_a_different_file_exists_and_is_kept(program, imported):
    (program.cwd / "out.json").write_bytes(b"mine")
    program.fails("exists", "export", "task-1", "--output", "out.json")
    assert (program.cwd / "out.json").read_bytes() == b"mine"


def test_a_dangling_link_is_not_replaced(program, imported):
    (program.cwd / "out.json").symlink_to("nowhere")
    program.fails("exists", "export", "task-1", "--output", "out.json")
    assert (program.cwd / "out.json").is_symlink()


def test_nothing_but_the_file_is_left_in_its_directory(program, imported):
    target = program.cwd / "target"
    target.mkdir()
    program.json("export", "task-1", "--output", "target/out.json")
    assert os.listdir(target) == ["out.json"]
    assert (target / "out.json").stat().st_nlink == 1


def test_a_directory_is_a_bad_request(program, imported):
    (program.cwd / "out").mkdir()
    program.fails("bad_request", "export", "task-1", "--output", "out")
    program.fails("bad_request", "export", "task-1", "--output", "new/")
    program.fails("bad_request", "export", "task-1", "--output", "")


def test_a_device_is_a_bad_request_and_stays_one(program, imported):
    program.fails("bad_request", "export", "task-1", "--output", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_missing_directory_is_a_bad_request(program, imported):
    error = program.fails("bad_request", "export", "task-1", "--output", "none/out.json")
    assert error["hint"].startswith("Make it first")


def test_a_name_that_is_too_long_is_a_bad_request(program, imported):
    program.fails("bad_request", "export", "task-1", "--output", "x" * 300)


def test_a_missing_session_writes_nothing(program, imported):
    program.fails("not_found", "export", "nope", "--output", "out.json")
    assert not (program.cwd / "out.json").exists()


@pytest.mark.requirement("session.export.verbatim")
def test_a_dash_writes_the_bytes_to_standard_output_and_the_result_to_standard_error(program, imported):
    done = program.run("export", "task-1", "--output", "-", "--json")
    assert (done.exit_code, sha256(done.out)) == (0, imported["revision"])
    assert json.loads(done.err) == {
        "session": imported,
        "path": "-",
        "sha256": imported["revision"],
        "written": True,
    }
    plain = program.run("export", "task-1", "--output", "-")
    assert plain.out == done.out
    assert plain.error_lines[0].startswith("wrote standard output, task-1 (3 messages")


def test_a_dash_that_fails_leaves_standard_output_empty(program, imported):
    done = program.run("export", "nope", "--output", "-", "--json")
    assert (done.exit_code, done.out) == (1, b"")
    assert json.loads(done.err)["error"]["code"] == "not_found"


def test_an_older_revision_is_exported_as_it_was(program, imported):
    frozen = program.json("freeze", "task-1")["session"]
    assert frozen["revision"] != imported["revision"]
    done = program.json("export", "task-1", "--output", "old.json", "--revision", imported["revision"][:12])
    assert done["session"] == imported
    assert sha256((program.cwd / "old.json").read_bytes()) == imported["revision"]
    assert program.json("export", "task-1", "--output", "new.json")["sha256"] == frozen["revision"]


def test_people_read_the_name_and_the_hash(program, imported):
    first, second = program.text("export", "task-1", "--output", "out.json").splitlines()
    assert first.startswith(f"wrote {program.cwd}/out.json, task-1 (3 messages, revision ")
    assert second == f"sha256 {imported['revision']}"
    assert program.text("export", "task-1", "--output", "out.json").startswith("unchanged: ")


def test_a_name_that_is_not_utf_8_is_written_as_given(program, imported):
    done = program.json("export", "task-1", "--output", b"na\xffme.json")
    assert done["path"].endswith("/na\ufffdme.json")
    assert os.path.exists(os.path.join(os.fsencode(program.cwd), b"na\xffme.json"))
