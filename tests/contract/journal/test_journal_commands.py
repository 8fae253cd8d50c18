"""Export, import, verify and stats by the command line, and servers on imported journals."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.journal.conftest import Program
from tests.support.serving import Site, bash, calls

FORBIDDEN = ("flask", "gevent", "marshmallow", "asyncio", "aura.engine", "yaml", "jinja2", "openai", "waitress", "rich")
WATCH = f"""
import json, sys
from aura.cli.main import main
code = main(sys.argv[1:])
loaded = [name for name in {FORBIDDEN!r} if name in sys.modules]
print(json.dumps([code, loaded]), file=sys.stderr)
"""


def move(site: Site, program: Program, session_id: str, root: Path) -> Program:
    """Bring a session, without its journal, into a new home with the same configuration."""
    document = program.run("session", "export", session_id, "--output", "-").out
    other = Program(Site(root))
    assert other.run("session", "import", "-", input=document).exit_code == 0
    return other


def test_an_export_has_the_events_as_they_are_served(site: Site, program: Program) -> None:
    server = site.launch()
    server.run("hello")
    out = site.work / "j.jsonl"
    answer = program.json("journal", "export", server.session_id, "--output", "j.jsonl")
    lines = out.read_bytes().splitlines()
    assert answer == {
        "session_id": server.session_id,
        "path": str(out),
        "events": len(lines),
        "last_seq": len(lines),
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
        "written": True,
    }
    assert [json.loads(line)["seq"] for line in lines] == [event.seq for event in server.events()]
    after = program.run("journal", "export", server.session_id, "--output", "-", "--after", "3")
    assert after.out == b"".join(line + b"\n" for line in lines[3:])
    assert b"events up to" in after.err


def test_an_export_is_repeated_grows_and_never_takes_a_strangers_place(
    site: Site, program: Program, session_id: str
) -> None:
    first = program.json("journal", "export", session_id, "--output", "j.jsonl")
    again = program.json("journal", "export", session_id, "--output", "j.jsonl")
    assert again == first | {"written": False}
    server = site.launch(session_id)
    server.run("more", "r2")
    server.stop()
    grown = program.json("journal", "export", session_id, "--output", "j.jsonl")
    assert grown["written"] and grown["events"] > first["events"]
    assert (site.work / "j.jsonl").read_bytes() == program.export(session_id)
    (site.work / "j.jsonl").write_text("something else\n")
    assert "is not an export of this journal" in program.fails(
        "exists", "journal", "export", session_id, "--output", "j.jsonl"
    )
    assert (site.work / "j.jsonl").read_text() == "something else\n"


def test_exports_refuse_what_cannot_be_done(program: Program, session_id: str) -> None:
    program.fails("not_found", "journal", "export", "nobody", "--output", "-")
    program.fails("invalid_id", "journal", "export", "../x", "--output", "-")
    program.fails("cursor_out_of_range", "journal", "export", session_id, "--output", "-", "--after", "999")
    program.fails("bad_request", "journal", "export", session_id, "--output", "no/such/place")
    program.fails("bad_request", "journal", "export", session_id, "--output", "-", "--evidence", "--after", "1")


def test_a_server_goes_on_with_an_imported_journal(
    site: Site, program: Program, session_id: str, tmp_path: Path
) -> None:
    text = program.export(session_id)
    other = move(site, program, session_id, tmp_path / "other")
    count = text.count(b"\n")
    assert other.json("journal", "import", "-", input=text) == {
        "session_id": session_id,
        "events": count,
        "last_seq": count,
        "truncated": False,
        "warnings": [],
    }
    assert other.export(session_id) == text
    assert other.run("journal", "verify", session_id).exit_code == 0
    server = other.site.launch(session_id)
    assert server.event("server.started", after=count).seq == count + 1
    replayed = server.client.submit("r1", prompt="hello")
    assert replayed.state == "persisted"
    assert server.run("more", "r2").state == "persisted"
    server.end()
    assert other.export(session_id).startswith(text)


def test_a_run_that_the_imported_journal_leaves_unsettled_is_lost(site: Site, program: Program, tmp_path: Path) -> None:
    site.script(calls(bash("true")), {"content": "Done.", "repeat": "forever"})
    server = site.launch()
    run = server.run("hello")
    server.stop()
    text = program.export(server.session_id)
    cut = text[: text.index(b"\n", text.index(b'"type":"tool.started"')) + 10]
    other = move(site, program, server.session_id, tmp_path / "other")
    answer = other.json("journal", "import", "-", input=cut)
    assert answer["truncated"] and "is torn" in answer["warnings"][0]
    again = other.site.launch(server.session_id)
    assert again.client.run(run.id).state == "lost"
    assert again.event("run.lost").run_id == run.id
    again.end()
    (status,) = other.site.rows("SELECT status FROM tool_call")
    assert status == ("unknown",)


def test_imports_say_what_is_wrong_and_change_nothing(
    site: Site, program: Program, session_id: str, tmp_path: Path
) -> None:
    text = program.export(session_id)
    other = move(site, program, session_id, tmp_path / "other")
    broken = text.replace(b'"type":"run.accepted"', b'"type":"run.begun"')
    assert "line 3: 'run.begun' is no type of event" in other.fails(
        "invalid_session", "journal", "import", "-", input=broken
    )
    other.fails("bad_request", "journal", "import", "missing.jsonl")
    other.fails("not_found", "journal", "import", "-", "--id", "nobody", input=text)
    torn = other.run("journal", "import", "-", input=text + b'{"seq"')
    assert torn.exit_code == 0 and b"warning: line" in torn.err and b"imported" in torn.out
    other.fails("exists", "journal", "import", "-", input=text)
    server = other.site.launch(session_id)
    other.fails("session_locked", "journal", "import", "-", input=text)
    server.end()


def test_a_journal_verifies_while_its_server_writes_and_its_head_can_be_noted(
    site: Site, program: Program, session_id: str
) -> None:
    (found,) = program.json("journal", "verify", session_id)["sessions"]
    noted = f"{found['head']}@{found['last_seq']}"
    assert noted.encode() in program.run("journal", "verify", session_id).out
    server = site.launch(session_id)
    server.run("more", "r2")
    for expect in (noted, found["head"]):
        answer = program.json("journal", "verify", session_id, "--expect", expect)
        assert answer["ok"] and answer["sessions"][0]["expected_seq"] == found["last_seq"]
    server.end()
    assert program.json("journal", "verify", "--all")["ok"]


def test_tampering_is_told_with_exit_code_1(site: Site, program: Program, session_id: str) -> None:
    with closing(sqlite3.connect(site.sessions / "aura.db")) as connection:
        connection.execute("DROP TRIGGER event_update")
        connection.execute(
            "UPDATE event SET data = replace(data, 'Hello there', 'Farewell') WHERE type = 'message.assistant'"
        )
        connection.commit()
        ((seq,),) = connection.execute("SELECT seq FROM event WHERE type = 'message.assistant'").fetchall()
    answer = program.json("journal", "verify", "--all", exit_code=1)
    assert answer["ok"] is False
    assert [problem["seq"] for problem in answer["sessions"][0]["problems"]] == [seq]
    done = program.run("journal", "verify", session_id)
    assert done.exit_code == 1 and f"NOT as it was written\n  event {seq} ".encode() in done.out
    program.fails("store_unavailable", "evidence", "export", session_id, "--output", "e.tar")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("s1", "--all"),
        ("--all", "--expect", "0" * 64),
        ("s1", "--expect", "0" * 63),
        ("s1", "--expect", "0" * 64 + "@x"),
    ],
    ids=" ".join,
)
def test_a_verification_of_nothing_or_with_no_hash_is_wrong_usage(program: Program, words: tuple[str, ...]) -> None:
    assert program.run("journal", "verify", *words).exit_code == 2
    program.fails("bad_request", "journal", "verify", *words)


def test_stats_count_what_the_export_has(program: Program, session_id: str) -> None:
    text = program.export(session_id)
    stats = program.json("journal", "stats", session_id)
    assert (stats["events"], stats["bytes"]) == (text.count(b"\n"), len(text))
    assert sum(item["bytes"] for item in stats["types"]) == len(text)
    assert [run["state"] for run in stats["runs"]] == [None, "persisted"]
    assert b"run.accepted" in program.run("journal", "stats", session_id).out


def test_evidence_is_checked_where_there_is_no_store(
    site: Site, program: Program, session_id: str, tmp_path: Path
) -> None:
    answer = program.json("evidence", "export", session_id, "--output", "e.tar")
    bundle = site.work / "e.tar"
    assert answer["sha256"] == hashlib.sha256(bundle.read_bytes()).hexdigest()
    same = program.json("journal", "export", session_id, "--evidence", "--output", "e.tar")
    assert same == answer | {"written": False}
    nowhere = Program(Site(tmp_path / "nowhere"))
    expect = f"{answer['head']}@{answer['last_seq']}"
    found = nowhere.json("evidence", "verify", str(bundle), "--expect", expect)
    assert found["ok"] and found["sha256"] == answer["sha256"]
    assert nowhere.run("evidence", "verify", "-", input=bundle.read_bytes()).exit_code == 0
    assert not nowhere.site.sessions.exists()
    bundle.write_bytes(bundle.read_bytes().replace(b"hello", b"hullo"))
    done = nowhere.run("evidence", "verify", str(bundle))
    assert done.exit_code == 1 and b"does NOT hold" in done.out
    nowhere.fails("invalid_session", "evidence", "verify", "-", input=b"no bundle")


@pytest.mark.parametrize(
    "words",
    [
        "journal export ID --output j.jsonl",
        "journal import j.jsonl",
        "journal tail ID",
        "journal verify --all",
        "journal stats ID",
        "evidence export ID --output e.tar",
        "evidence verify e.tar",
    ],
)
def test_an_offline_command_loads_nothing_that_it_does_not_need(
    site: Site, program: Program, session_id: str, words: str
) -> None:
    program.run("journal", "export", session_id, "--output", "j.jsonl")
    program.run("evidence", "export", session_id, "--output", "e.tar")
    flags = ["--home", "", "--config", str(site.home)]
    given = words.replace("ID", session_id).split()
    done = program.run(command=[sys.executable, "-c", WATCH, *flags, *given])
    code, loaded = json.loads(done.err.splitlines()[-1])
    assert (code, loaded) == (1 if "import" in words else 0, [])


def test_a_pruned_journal_is_exported_verified_and_tailed_from_what_is_left(
    site: Site, program: Program, session_id: str
) -> None:
    (before,) = program.json("journal", "verify", session_id)["sessions"]
    pruned = program.run("store", "prune", "--journal", "--older-than", "0m", "--yes", "--json")
    assert pruned.exit_code == 0, pruned
    (found,) = program.json("journal", "verify", session_id, "--expect", before["head"])["sessions"]
    assert found["ok"] and found["covered"] and found["head"] == before["head"]
    assert found["first_seq"] > 1
    text = program.export(session_id)
    assert text.count(b"\n") == found["events"] == before["events"] - found["first_seq"] + 1
    assert program.run("journal", "tail", session_id, "-n", "9999").out == text
    for words in (("tail", session_id), ("export", session_id, "--output", "-")):
        program.fails("cursor_out_of_range", "journal", *words, "--after", "0")
    program.json("evidence", "export", session_id, "--output", "e.tar")
    assert program.json("evidence", "verify", "e.tar", "--expect", before["head"])["ok"]


def test_an_imported_journal_passes_the_check_of_the_store(
    site: Site, program: Program, session_id: str, tmp_path: Path
) -> None:
    text = program.export(session_id)
    other = move(site, program, session_id, tmp_path / "other")
    other.json("journal", "import", "-", input=text)
    assert other.json("store", "check")["clean"]
