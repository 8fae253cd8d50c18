"""sqlite3, sqlite-utils and datasette, the real programs, open the file while a server writes, and read the views."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from aura.cli.sql_view import table_text
from tests.contract.sql.conftest import TIMEOUT_S, Busy, Program
from tests.support.serving import until
from tests.support.sql_page import DATASETTE, read_questions, read_views

SETTLED = "SELECT count(*) AS n FROM v_run WHERE NOT live"
VIEWS = [view.name for view in read_views()]


def find_tool(name: str) -> str:
    """Return the program's path, which is beside the interpreter or on the path; skip where it is not installed."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: pip install 'aura[people]', or apt-get install sqlite3")
    return found


def say(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def ask_sqlite3(path: Path, sql: str) -> list[dict[str, object]]:
    out = say(find_tool("sqlite3"), "-readonly", "-json", str(path), sql)
    return list(json.loads(out)) if out.strip() else []


def ask_sqlite_utils(path: Path, sql: str) -> list[dict[str, object]]:
    return list(json.loads(say(find_tool("sqlite-utils"), "query", str(path), sql)))


ASKERS = pytest.mark.parametrize("ask", [ask_sqlite3, ask_sqlite_utils])


@ASKERS
def test_a_program_sees_runs_settle_while_the_server_writes(busy: Busy, ask) -> None:
    first = until(lambda: ask(busy.path, SETTLED)[0]["n"], "a first run")
    until(lambda: ask(busy.path, SETTLED)[0]["n"] > first, "a further run")
    for view in VIEWS:
        assert isinstance(ask(busy.path, f"SELECT * FROM {view} LIMIT 3"), list)
    assert ask(busy.path, "SELECT DISTINCT name, status FROM v_tool_call WHERE status = 'ok'") == [
        {"name": "Bash", "status": "ok"}
    ]
    before = busy.completed
    until(lambda: busy.completed > before, "the server goes on")


@ASKERS
@pytest.mark.parametrize(
    "question", [item for item in read_questions() if not item.parameters], ids=lambda question: question.title
)
def test_a_program_answers_the_questions_as_aura_does(program: Program, ask, question) -> None:
    rows = ask(program.home / "sessions" / "aura.db", question.sql)
    assert table_text(tuple(rows[0]), [tuple(row.values()) for row in rows], None) == question.answer


@pytest.mark.parametrize("name", ["sqlite3", "sqlite-utils"])
def test_history_cannot_be_changed_at_another_program_s_prompt(program: Program, name: str) -> None:
    path = str(program.home / "sessions" / "aura.db")
    query = ("query",) if name == "sqlite-utils" else ()
    command = [find_tool(name), *query, path, "UPDATE event SET data = '{}' WHERE seq = 1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode != 0 and "events never change" in done.stdout + done.stderr


def test_sqlite_utils_leaves_the_store_as_it_was(program: Program) -> None:
    before = program.answer("SELECT count(*) FROM v_event; PRAGMA integrity_check")
    say(find_tool("sqlite-utils"), "tables", str(program.home / "sessions" / "aura.db"), "--counts")
    assert program.answer("SELECT count(*) FROM v_event; PRAGMA integrity_check") == before


def test_datasette_shows_the_questions_of_the_page(program: Program, tmp_path: Path) -> None:
    with datasette(program.home / "sessions" / "aura.db", tmp_path) as client:
        for question in read_questions():
            query = urlencode({"_shape": "array", **question.parameters})
            rows = client.get(f"/aura/q{question.number:02}.json?{query}")
            assert table_text(tuple(rows[0]), [tuple(row.values()) for row in rows], None) == question.answer


def test_datasette_describes_views_and_hides_tables(program: Program, tmp_path: Path) -> None:
    with datasette(program.home / "sessions" / "aura.db", tmp_path) as client:
        database = client.get("/aura.json")
        assert [table["name"] for table in database["tables"] if not table["hidden"]] == []
        views = [view["name"] for view in database["views"] if view["name"] != "message_text"]  # what the index reads
        assert sorted(views) == sorted(VIEWS)
        assert len(database["queries"]) == len(read_questions())
        page = client.text("/aura/v_run")
        assert "tool calls that began" in page, "columns are described"


def test_datasette_sees_runs_settle_while_the_server_writes(busy: Busy, tmp_path: Path) -> None:
    with datasette(busy.path, tmp_path) as client:
        url = f"/aura.json?sql={quote(SETTLED)}&_shape=array"
        first = until(lambda: client.get(url)[0]["n"], "a first run")
        until(lambda: client.get(url)[0]["n"] > first, "a further run")
        before = busy.completed
        until(lambda: busy.completed > before, "the server goes on")


class Client:
    """Asks a datasette behind a socket in the file system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, url: str):
        return json.loads(self.text(url))

    def text(self, url: str) -> str:
        connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(TIMEOUT_S)
        connection.sock.connect(str(self._path))
        try:
            connection.request("GET", url)
            response = connection.getresponse()
            body = response.read().decode()
            assert response.status == 200, (url, body)
            return body
        finally:
            connection.close()

    def is_up(self) -> bool:
        try:
            return bool(self.text("/-/versions.json"))
        except OSError:
            return False


@contextmanager
def datasette(path: Path, folder: Path) -> Iterator[Client]:
    """Run datasette over the file."""
    where = folder / "datasette.socket"
    log = (folder / "datasette.log").open("wb")
    command = [find_tool("datasette"), "serve", str(path), "--metadata", str(DATASETTE), "--uds", str(where)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        client = Client(where)
        until(lambda: process.poll() is not None or client.is_up(), "datasette")
        assert process.poll() is None, (folder / "datasette.log").read_text()
        yield client
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
        log.close()
