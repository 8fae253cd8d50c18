"""`aura session import` (contract.md, Idempotency; interfaces.md sections 4, 9 and 11)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess

import pytest

SUMMARY_KEYS = ["id", "title", "created_at", "updated_at", "revision", "messages", "frozen", "parent"]


@pytest.mark.requirement(
    "session.json.success", "session.import", "session.import.created", "session.import.source-digest"
)
def test_a_document_is_stored_and_described_by_its_summary(program, document):
    file = program.cwd / "in.json"
    file.write_bytes(document())
    done = program.json("import", "in.json")
    assert list(done) == ["session", "created", "frozen_now", "source_sha256"]
    assert (done["created"], done["frozen_now"]) == (True, False)
    assert done["source_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    session = done["session"]
    assert list(session) == SUMMARY_KEYS
    assert (session["id"], session["title"], session["frozen"]) == ("task-1", "Add a flag", False)
    assert (session["messages"], session["parent"]) == (3, None)
    assert session["created_at"] == "2026-11-30T10:00:00.123Z"
    assert session["updated_at"] == "2026-11-30T10:04:11.500Z"


@pytest.mark.requirement("session.import.idempotent")
def test_the_same_conversation_again_changes_nothing(program, document, imported):
    again = program.json("import", "-", input=document(created_at="2020-01-01T00:00:00Z", frozen=True))
    assert (again["created"], again["frozen_now"], again["session"]) == (False, False, imported)


def test_an_exported_file_imports_as_the_same_conversation(program, imported):
    program.json("export", "task-1", "--output", "out.json")
    assert program.json("import", "out.json")["created"] is False


def test_an_exported_file_imports_into_another_store_with_the_same_revision(program, imported):
    program.json("export", "task-1", "--output", "out.json")
    elsewhere = type(program)(program.cwd, program.cwd / "other")
    done = elsewhere.json("import", "out.json")
    assert (done["created"], done["session"]) == (True, imported)


@pytest.mark.requirement("session.import.exists")
@pytest.mark.parametrize("change", [{"title": "Other"}, {"messages": []}, {"meta": {"agent": "x"}}, {"todos": None}])
def test_a_different_conversation_of_the_same_id_exists(program, document, imported, change):
    program.fails("exists", "import", "-", input=document(**change))
    assert program.json("show", "task-1") == imported


def test_an_id_given_wins_over_the_documents_own(program, document):
    assert program.json("import", "-", "--id", "other", input=document(id="../bad"))["session"]["id"] == "other"


def test_a_document_without_a_usable_id_needs_one(program, document):
    error = program.fails("invalid_id", "import", "-", input=document(id="../bad"))
    assert "--id" in error["hint"]
    assert not program.home.exists()


@pytest.mark.requirement("session.import.freeze")
def test_freeze_freezes_now_and_only_once(program, document, imported):
    first = program.json("import", "-", "--freeze", input=document())
    assert (first["created"], first["frozen_now"], first["session"]["frozen"]) == (False, True, True)
    second = program.json("import", "-", "--freeze", input=document())
    assert (second["created"], second["frozen_now"]) == (False, False)
    assert second["session"] == first["session"]


def test_a_frozen_document_is_stored_frozen_with_its_lineage(program, document):
    lineage = {"id": "base", "revision": "ab" * 32}
    done = program.json("import", "-", input=document(frozen=True, parent=lineage))
    assert (done["frozen_now"], done["session"]["frozen"], done["session"]["parent"]) == (True, True, lineage)


@pytest.mark.requirement("session.codes")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a session document"),
        (b"\x00\x01\xff" * 1000, "UTF-8"),
        (b'{"id": "x", "messages": "\xff"}', "UTF-8"),
        (b"[1, 2]", "not an object"),
        (b'{"id": "x"}', "messages"),
        (b'{"id": "x", "messages": [', "line 1"),
        (b'{"id": "x", "messages": [], "meta": {"n": NaN}}', "NaN"),
        (b'{"id": "x", "messages": [], "meta": ' + b'{"n":' * 5000 + b"1" + b"}" * 5000 + b"}", "nesting"),
    ],
    ids=["empty", "binary", "latin-1", "list", "no-messages", "torn", "nan", "deep"],
)
def test_what_is_no_document_is_invalid_session_and_makes_no_store(program, data, said):
    assert said in program.fails("invalid_session", "import", "-", input=data)["message"]
    assert not program.home.exists()


def test_a_broken_pair_names_its_message(program, document):
    broken = json.loads(document())["messages"][:3]
    error = program.fails("invalid_session", "import", "-", input=document(messages=broken))
    assert error["message"].startswith("message 2:")


@pytest.mark.requirement("session.codes")
def test_a_missing_file_is_a_bad_request(program):
    error = program.fails("bad_request", "import", "missing.json")
    assert "missing.json" in error["message"] and error["hint"]
    assert not program.home.exists()


def test_a_directory_is_a_bad_request(program):
    program.fails("bad_request", "import", ".")


def test_an_empty_name_is_a_bad_request(program):
    program.fails("bad_request", "import", "")


def test_a_file_beyond_the_limit_is_refused_before_it_is_read(program):
    with (program.cwd / "huge.json").open("wb") as file:
        file.truncate(4 * 1024**3)
    assert program.fails("bad_request", "import", "huge.json")["details"] == {"reason": "too_large"}


def test_a_closed_standard_input_is_a_bad_request(program):
    script = " ".join(['exec "$@"', "<&-"])
    done = program.run_command(["sh", "-c", script, "sh", *program.command("import", "-", "--json")])
    assert done.exit_code == 1 and json.loads(done.err)["error"]["code"] == "bad_request"


def test_a_pipe_is_read_like_a_file(program, document):
    os.mkfifo(program.cwd / "pipe")
    process = subprocess.Popen(
        program.command("import", "pipe", "--json"),
        cwd=program.cwd,
        env=program.environment(),
        stdout=subprocess.PIPE,
    )
    (program.cwd / "pipe").write_bytes(document())  # opens once the program reads it
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["created"] is True


def test_people_read_one_line(program, document):
    assert program.text("import", "-", input=document()).startswith("imported task-1 (3 messages, revision ")
    assert program.text("import", "-", input=document()).startswith("already there: task-1 (")
    assert program.text("import", "-", "--freeze", input=document()).endswith(", frozen now\n")


def import_at_once(program, data):
    processes = [
        subprocess.Popen(
            program.command("import", "-", "--json"),
            cwd=program.cwd,
            env=program.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in data
    ]
    for process, each in zip(processes, data, strict=True):
        process.stdin.write(each)
        process.stdin.flush()
    for process in processes:
        process.stdin.close()  # each starts to work only now
        process.stdin = None
    return [(*process.communicate(timeout=60), process.returncode) for process in processes]


def test_four_processes_importing_one_document_make_one_session(program, document):
    ended = import_at_once(program, [document()] * 4)
    assert [code for _, _, code in ended] == [0] * 4, ended
    answers = [json.loads(out) for out, _, _ in ended]
    assert sorted(answer["created"] for answer in answers) == [False, False, False, True]
    assert len({answer["session"]["revision"] for answer in answers}) == 1


def test_of_four_processes_importing_different_documents_one_wins(program, document):
    ended = import_at_once(program, [document(title=f"Title {n}") for n in range(4)])
    assert sorted(code for _, _, code in ended) == [0, 1, 1, 1], ended
    assert {json.loads(err)["error"]["code"] for _, err, code in ended if code} == {"exists"}
    (winner,) = (json.loads(out)["session"] for out, _, code in ended if code == 0)
    assert program.json("show", "task-1") == winner
