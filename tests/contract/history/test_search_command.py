"""`aura search` as a process: hits, safe queries, a server that writes meanwhile, a store that cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import apsw
import pytest

from tests.contract.history.conftest import TIMEOUT_S, Program
from tests.support.serving import Site, bash, calls

UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def import_session(program: Program, session_id: str, *texts: str) -> None:
    messages = [{"ID": "", "Role": "user", "Content": text} for text in texts]
    document = {"id": session_id, "title": "", "messages": messages, "updated_at": "2026-01-01T00:00:00Z"}
    program.json("session", "import", "-", input=json.dumps(document).encode())


def places(answer) -> list[tuple[list[str], int]]:
    return [(hit["session_ids"], hit["index"]) for hit in answer["hits"]]


def test_a_search_finds_messages_and_tool_results_with_the_best_first(program):
    import_session(program, "a", "nothing here", "the fox is a fox")
    import_session(program, "b", "a fox " + "among words " * 50)
    answer = program.json("search", "fox")
    assert places(answer) == [(["a"], 1), (["b"], 0)]
    hit = answer["hits"][0]
    assert [hit["snippet"][start:end] for start, end in hit["matches"]] == ["fox", "fox"]
    assert (answer["truncated"], answer["not_indexed"], answer["warnings"]) == (False, 0, [])
    assert program.text("search", "fox").splitlines()[:2] == ["a [1] user", "    the fox is a fox"]
    assert program.text("search", "walrus") == "nothing found\n"


def test_a_new_message_is_found_by_the_next_search(program):
    import_session(program, "a", "the fox")
    assert len(program.json("search", "fox")["hits"]) == 1
    import_session(program, "b", "another fox")
    assert len(program.json("search", "fox")["hits"]) == 2


def test_a_search_is_narrowed_by_session_role_time_and_limit(told):
    hits = told.json("search", "login")["hits"]
    assert {hit["session_ids"][0] for hit in hits} == {"api"} and {hit["role"] for hit in hits} == {"user", "assistant"}
    assert {hit["role"] for hit in told.json("search", "login", "--role", "user")["hits"]} == {"user"}
    assert told.json("search", "login", "--session", "docs")["hits"] == []
    assert len(told.json("search", "login", "--since", "2026-01-05")["hits"]) == len(hits)
    assert told.json("search", "login", "--since", "1h")["hits"] == []
    assert told.json("search", "login", "--limit", "1")["truncated"] is True
    assert told.run("search", "login", "--limit", "1").stderr == "note: only the best 1 hits; --limit N shows more\n"
    told.fails("not_found", "search", "login", "--session", "nope")


def test_a_fork_is_named_beside_the_session_it_shares_a_message_with(program):
    import_session(program, "parent", "the fox")
    program.json("session", "fork", "parent", "--id", "child")
    assert places(program.json("search", "fox")) == [(["parent", "child"], 0)]
    assert places(program.json("search", "fox", "--session", "child")) == [(["parent", "child"], 0)]
    assert program.text("search", "fox").splitlines()[0] == "parent [0] user  (also in child)"


@pytest.mark.parametrize("query", ['"fox', "fox AND", "a:b", "(((", "fox NEAR/", "*", "content:", "' OR 1=1 --"])
def test_whatever_a_person_types_is_no_error_of_syntax(program, query):
    import_session(program, "a", "the fox, and a b")
    done = program.run("search", "--", query)
    assert done.returncode == (1 if query in ("*", "(((") else 0), done
    assert "Traceback" not in done.stderr and "syntax" not in done.stderr


def test_raw_syntax_is_understood_and_its_mistakes_are_explained(program):
    import_session(program, "a", "a red fox", "a red hen")
    assert places(program.json("search", "--fts", "red NOT hen")) == [(["a"], 0)]
    assert len(program.json("search", "--fts", "fox OR hen")["hits"]) == 2
    for query in ('"fox', "fox AND", "nope:fox"):
        error = program.fails("bad_request", "search", "--fts", query)
        assert "full-text query" in error["message"] and "--fts" in error["hint"]


def test_a_query_without_a_word_is_refused(program):
    import_session(program, "a", "the fox")
    program.fails("bad_request", "search", "...")
    program.fails("bad_request", "search")


def test_the_index_is_made_anew_on_demand(program):
    import_session(program, "a", "the fox", "the hen")
    assert len(program.json("search", "fox")["hits"]) == 1
    assert program.json("search", "--rebuild") == {"indexed": 2, "not_indexed": 0}
    assert program.text("search", "--rebuild") == "indexed 2 messages\n"
    assert len(program.json("search", "--rebuild", "hen")["hits"]) == 1


def test_a_terminal_shows_how_much_is_left_to_index_and_nothing_stays_of_it(program):
    import_session(program, "a", *(f"fox {number}" for number in range(2500)))
    ours, theirs = os.openpty()
    try:
        done = program.run("search", "fox", "--limit", "1", "--json", stderr=theirs)
    finally:
        os.close(theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0 and len(json.loads(done.stdout)["hits"]) == 1
    assert "indexing new messages: 1,500 left" in seen and seen.endswith("\r\x1b[K")


@pytest.fixture
def sealed(program):
    """Makes the store read-only, as it is now. Root's program runs without the right to ignore that."""
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv to give that up")
    directory = Path(tempfile.mkdtemp(prefix="aura-test-"))

    def seal() -> Program:
        shutil.copytree(program.home, directory / "home")
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        return Program(directory / "home", UNPRIVILEGED if os.getuid() == 0 else ())

    try:
        yield seal
    finally:
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(directory)


def test_a_read_only_store_is_searched_as_far_as_it_is_indexed(program, sealed):
    import_session(program, "a", "the fox")
    program.json("search", "fox")
    import_session(program, "b", "another fox", "a third fox")
    shared = sealed()
    before = {path.name: path.read_bytes() for path in shared.store.iterdir() if path.is_file()}
    answer = shared.json("search", "fox")
    assert places(answer) == [(["a"], 0)] and answer["not_indexed"] == 2
    assert "2 messages are not in the index" in answer["warnings"][0]
    told = shared.run("search", "fox")
    assert told.returncode == 0 and told.stderr.startswith("note: 2 messages are not in the index")
    shared.fails("store_unavailable", "search", "--rebuild")
    assert {path.name: path.read_bytes() for path in shared.store.iterdir() if path.is_file()} == before


def test_a_read_only_store_that_is_wholly_indexed_is_searched_without_a_word(program, sealed):
    import_session(program, "a", "the fox")
    program.json("search", "fox")
    assert places(sealed().json("search", "fox")) == [(["a"], 0)]


def test_a_read_only_store_of_an_older_program_says_that_nothing_is_indexed(program, sealed):
    import_session(program, "a", "the fox")
    connection = apsw.Connection(str(program.store / "aura.db"))
    for kind, name in connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE name IN ('message_unindex', 'message_unmark', 'message_search',"
        " 'message_search_mark', 'message_text') ORDER BY type = 'view'"
    ).fetchall():
        connection.execute(f"DROP {kind} {name}").fetchall()
    connection.execute("PRAGMA user_version = 1").fetchall()
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.close()
    shared = sealed()
    answer = shared.json("search", "fox")
    assert answer["hits"] == [] and answer["not_indexed"] == 1
    assert len(shared.json("session", "messages", "a")["messages"]) == 1


def test_a_server_works_on_while_others_search_and_all_it_saved_is_found(site: Site):
    call = calls(bash("echo a walrus"), when={"last": "^go on"}, repeat="forever")
    site.script(call, {"content": "the end", "repeat": "forever"})
    server = site.launch()
    program = Program(site.home)
    searched: list[int] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            searched.append(len(program.json("search", "walrus", "--role", "tool", "--limit", "1000")["hits"]))

    searchers = [threading.Thread(target=search) for _ in range(2)]
    for thread in searchers:
        thread.start()
    try:
        for number in range(15):
            run = server.run("go on", f"r{number}")
            assert (run.state, run.outcome) == ("persisted", "completed")
            if number == 7:
                assert program.run("search", "--rebuild").returncode == 0
    finally:
        stop.set()
        for thread in searchers:
            thread.join(TIMEOUT_S)
    assert not any(thread.is_alive() for thread in searchers) and searched
    assert len(program.json("search", "walrus", "--role", "tool", "--limit", "1000")["hits"]) == 15
    assert len(program.json("session", "log", server.session_id)["revisions"]) > 15
    assert server.stop() == 0
    connection = apsw.Connection(str(program.store / "aura.db"))
    connection.execute("INSERT INTO message_search (message_search, rank) VALUES ('integrity-check', 1)").fetchall()
    connection.close()


def test_a_dropped_message_is_not_found_any_more(site: Site):
    site.script({"content": "the answer is a walrus"}, {"content": "fine", "repeat": "forever"})
    server = site.launch()
    server.run("question one", "r1")
    program = Program(site.home)
    assert len(program.json("search", "walrus")["hits"]) == 1
    done = server.wait(server.client.submit("r2", command="/drop 1").id)
    assert done.outcome == "completed", done
    assert program.json("search", "walrus")["hits"] == []
    changed = [entry["changed"] for entry in program.json("session", "log", server.session_id)["revisions"]]
    assert any("-" in words[0] for words in changed if words), changed


def test_searches_and_questions_load_nothing_that_they_do_not_need(told):
    forbidden = ("flask", "gevent", "marshmallow", "asyncio", "aura.engine", "yaml", "jinja2", "openai", "rich")
    watch = (
        "import json, sys; from aura.cli.main import main; code = main(sys.argv[1:]);"
        f"print(json.dumps([code, [n for n in {forbidden!r} if n in sys.modules]]), file=sys.stderr)"
    )
    commands = [
        ("search", "login"),
        ("search", "login"),
        ("runs",),
        ("stats",),
        ("session", "log", "api"),
        ("session", "diff", "api"),
        ("session", "messages", "api"),
    ]
    for words in commands:
        command = [sys.executable, "-c", watch, "--home", "", "--config", str(told.home), *words]
        done = subprocess.run(command, env=told.environment, capture_output=True, timeout=TIMEOUT_S, check=False)
        assert json.loads(done.stderr.decode().splitlines()[-1]) == [0, []], words
