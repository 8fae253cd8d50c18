"""`aura store` as a person and a script meet it: objects, exit codes, and what it refuses."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.session.conftest import CHECKOUT, Done, Program

DOCUMENT = {"id": "one", "title": "One", "messages": [{"ID": "m", "Role": "user", "Content": "hello"}]}


def store(program: Program, *words: str) -> Done:
    return program.run_command([*program.plain("--home", "", "--config", str(program.home)), "store", *words])


def answer(program: Program, *words: str) -> dict[str, Any]:
    done = store(program, *words, "--json")
    assert (done.exit_code, done.err) == (0, b"")
    value: dict[str, Any] = json.loads(done.text)
    return value


@pytest.fixture
def filled(program: Program, tmp_path: Path) -> Program:
    for name in ("one", "two"):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(DOCUMENT | {"id": name}))
        program.json("import", str(file))
    return program


@pytest.mark.parametrize(
    "verb", [["check"], ["stats"], ["vacuum"], ["backup", "b.db"], ["prune", "--keep", "1", "--yes"]]
)
def test_where_there_is_no_store_nothing_is_made(program: Program, verb: list[str]) -> None:
    done = store(program, *verb, "--json")
    assert (done.exit_code, done.out) == (1, b"")
    assert json.loads(done.err)["error"]["code"] == "not_found"
    assert not program.store.exists()


def test_the_path_is_known_before_there_is_a_store(program: Program) -> None:
    assert answer(program, "path") == {"path": str(program.store / "aura.db"), "exists": False}
    assert store(program, "path").text == f"{program.store / 'aura.db'}\n"


def test_a_sound_store(filled: Program) -> None:
    found = answer(filled, "check")
    assert (found["clean"], found["findings"], found["finding_count"], found["repaired"]) == (True, [], 0, [])
    assert found["checked"]["sessions"] == 2
    assert set(found["facts"]) == {"database_bytes", "wal_bytes", "free_bytes", "ballast_bytes", "schema"}
    assert store(filled, "check", "--quick").text.endswith("clean\n")


def test_findings_are_said_on_standard_output_with_exit_code_1(filled: Program) -> None:
    with closing(sqlite3.connect(filled.store / "aura.db")) as connection:
        connection.execute("INSERT INTO prompt (sha256, text) VALUES ('x', 'y')")
        connection.commit()
    done = store(filled, "check", "--json")
    assert (done.exit_code, done.err) == (1, b"")
    codes = [(item["code"], item["table"], item["repairable"]) for item in json.loads(done.text)["findings"]]
    assert codes == [("orphan", "prompt", True), ("prompt_hash", "prompt", False)]
    done = store(filled, "check", "--repair")
    assert done.exit_code == 0
    assert done.text.startswith("repaired: removed 1 rows of prompt")


def test_a_backup_is_restored_by_putting_it_where_the_store_is(filled: Program, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    made = answer(filled, "backup", str(copy))
    assert (made["path"], made["written"], made["sessions"]) == (str(copy), True, 2)
    assert answer(filled, "backup", str(copy)) == made | {"written": False}
    other = Program(filled.cwd, tmp_path / "other")
    other.store.mkdir(parents=True)
    copy.rename(other.store / "aura.db")
    assert other.json("list") == filled.json("list")
    assert answer(other, "check")["clean"]


def test_a_file_in_the_way_is_left_alone(filled: Program, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("mine")
    done = store(filled, "backup", str(copy), "--json")
    assert (done.exit_code, json.loads(done.err)["error"]["code"]) == (1, "exists")
    assert copy.read_text() == "mine"


def test_a_prune_without_a_person_wants_yes(filled: Program) -> None:
    done = store(filled, "prune", "--keep", "1", "--json")
    assert json.loads(done.err)["error"]["code"] == "bad_request"
    planned = answer(filled, "prune", "--keep", "1", "--dry-run")
    assert planned["dry_run"] and len(planned["pruned"]) == 1
    assert len(filled.json("list")["sessions"]) == 2
    done_now = answer(filled, "prune", "--keep", "1", "--yes")
    assert done_now["pruned"] == planned["pruned"]
    assert len(filled.json("list")["sessions"]) == 1
    assert answer(filled, "check")["clean"]
    assert answer(filled, "vacuum")["after_bytes"] > 0


@pytest.mark.parametrize("words", [[], ["--keep-revisions", "2", "--keep", "1"], ["--revisions-only", "--journal"]])
def test_flags_that_make_no_sense_are_refused(filled: Program, words: list[str]) -> None:
    done = store(filled, "prune", *words, "--yes", "--json")
    assert (done.exit_code, json.loads(done.err)["error"]["code"]) == (1, "bad_request")


@pytest.mark.parametrize("age", ["3", "d", "-1d", "1y", "1.5d", "9999999d", "٣d"])
def test_an_age_is_a_number_and_a_unit(filled: Program, age: str) -> None:
    assert store(filled, "prune", "--older-than", age, "--yes").exit_code == 2


@pytest.mark.parametrize(("reply", "left"), [("n\n", 2), ("y\n", 1)])
def test_a_person_is_asked(filled: Program, reply: str, left: int) -> None:
    ours, theirs = pty.openpty()
    command = [*filled.plain("--home", "", "--config", str(filled.home)), "store", "prune", "--keep", "1"]
    environment = filled.environment(PYTHONPATH=str(CHECKOUT))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=filled.cwd)
    os.close(theirs)
    os.write(ours, reply.encode())
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # how a terminal ends
        pass
    finally:
        os.close(ours)
    assert process.wait(60) == (0 if reply == "y\n" else 130)
    assert b"would remove" in shown
    assert len(filled.json("list")["sessions"]) == left


def test_stats_are_for_people_and_programs(filled: Program) -> None:
    found = answer(filled, "stats", "--days", "2")
    assert (found["exact"], found["sessions"], found["large_texts"], len(found["days"])) == (True, 2, 0, 2)
    assert {"name", "rows", "table_bytes", "index_bytes", "used_bytes"} == set(found["tables"][0])
    assert "TABLE" in store(filled, "stats").text


def test_an_import_over_the_limit_is_said(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_text(json.dumps(DOCUMENT | {"messages": [{"ID": "m", "Role": "user", "Content": "x" * 9_000_000}]}))
    done = program.run("import", str(file), "--json")
    assert (done.exit_code, set(json.loads(done.text))) == (0, {"session", "created", "frozen_now", "source_sha256"})
    assert done.error_lines == ["warning: 1 of its messages have over 8388608 bytes: they are stored whole"]
    assert answer(program, "stats")["large_texts"] == 1
