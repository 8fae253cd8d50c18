"""`aura sql` as a person and a script use it: streams, shapes, limits, exit codes, and beside a server."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.session.test_session_modules import FORBIDDEN
from tests.contract.sql.conftest import TIMEOUT_S, Busy, Program
from tests.support.serving import until

ENDLESS = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
RUNS = "SELECT run_id FROM v_run WHERE session_id = 'api' ORDER BY 1"


def test_a_query_comes_as_an_argument_from_a_file_or_from_standard_input(program: Program) -> None:
    table = "run_id\n------\nrun-1\nrun-3\nrun-7\n"
    (program.home / "query.sql").write_text(f"-- what ran\n{RUNS};\n")
    assert program.answer(RUNS) == table
    assert program.answer("-f", "query.sql") == table
    assert program.answer("-", input=RUNS) == table
    assert program.answer("-f", "-", input=RUNS) == table
    assert program.answer(input=RUNS) == table


def test_the_shapes(program: Program) -> None:
    assert json.loads(program.answer("--json", RUNS))["rows"][0] == {"run_id": "run-1"}
    assert [json.loads(line) for line in program.answer("--ndjson", RUNS).splitlines()][2] == {"run_id": "run-7"}
    assert list(csv.reader(io.StringIO(program.answer("--csv", RUNS)))) == [["run_id"], ["run-1"], ["run-3"], ["run-7"]]


def test_statements_of_one_text_are_answered_in_order(program: Program) -> None:
    assert program.answer("SELECT 1; SELECT 2;") == "1\n-\n1\n\n2\n-\n2\n"
    done = program.run("--csv", "SELECT 1; SELECT 2")
    assert (done.returncode, done.stdout) == (1, "") and "2 statements cannot be one answer in csv" in done.stderr
    done = program.run("SELECT 1; SELECT nope; SELECT 2")
    assert (done.returncode, done.stdout) == (1, "1\n-\n1\n\n")


def test_parameters_are_given_by_name(program: Program) -> None:
    sql = "SELECT :n + 1 AS n, :text AS text"
    assert program.answer("--csv", "-p", "n=41", "--param", "text=a b", sql) == "n,text\n42,a b\n"


def test_a_note_says_that_rows_were_left_out(program: Program) -> None:
    done = program.run("--csv", "--limit", "2", RUNS)
    assert (done.returncode, done.stdout) == (0, "run_id\nrun-1\nrun-3\n")
    assert done.stderr == "note: only the first 2 rows; --limit N shows more, 0 all\n"
    assert program.answer("--csv", "--limit", "0", RUNS).count("\n") == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("SELECT nope FROM v_run",), "error: no such column: nope\nhint: v_run has run_id, "),
        (("SELECT 1", "-f", "x"), "error: there is a query and a file"),
        (("-f", "missing.sql"), "error: missing.sql"),
        (("--",), "error: there is no statement"),
        (("-- nothing",), "error: there is no statement"),
        (("-p", "x", "SELECT 1"), "error: 'x' is not NAME=VALUE"),
        (("DELETE FROM run",), "error: only reading is allowed here"),
        (("--timeout", "0.1", f"SELECT count(*) FROM ({ENDLESS})"), "error: the query took longer than 0.1 s"),
    ],
)
def test_a_failure_exits_with_1_and_leaves_standard_output_alone(
    program: Program, words: tuple[str, ...], said: str
) -> None:
    words = ("--", *words) if words == ("-- nothing",) else words
    done = program.run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(said)


def test_a_failure_with_json_is_an_object(program: Program) -> None:
    done = program.run("--json", "SELECT * FROM v_runs")
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, done.stdout, error["code"]) == (1, "", "bad_request")
    assert error["hint"].startswith("Did you mean v_run?")


def test_without_a_store_nothing_is_made(tmp_path: Path) -> None:
    done = Program(tmp_path).run("SELECT 1")
    assert done.returncode == 1 and done.stderr.startswith("error: there is no store yet\nhint: ")
    assert os.listdir(tmp_path) == []


def test_a_reader_that_leaves_ends_it_quietly(program: Program) -> None:
    with subprocess.Popen(
        [*program.command, "--ndjson", "--limit", "0", ENDLESS],
        env=program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b'{"n":1}\n'
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 141
        assert process.stderr.read() == b""


def test_ctrl_c_ends_a_query(program: Program) -> None:
    with subprocess.Popen(
        [*program.command, "--ndjson", "--limit", "0", f"SELECT 0 AS n UNION ALL SELECT count(*) FROM ({ENDLESS})"],
        env=program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"n":0}\n', "the first row does not wait for others"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130


def test_it_loads_no_server_no_engine_and_no_prompt(program: Program) -> None:
    watch = f"""
import sys
from aura.cli.main import main
code = main(["--home", "", "--config", sys.argv[1], "sql", "SELECT 1"])
print([name for name in {(*FORBIDDEN, "prompt_toolkit", "pygments")!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", watch, str(program.home)],
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_it_answers_while_a_server_writes(busy: Busy) -> None:
    def settled() -> int:
        answer = json.loads(busy.program.answer("--json", "SELECT count(*) AS n FROM v_run WHERE NOT live"))
        return int(answer["rows"][0]["n"])

    first = until(settled, "a first run")
    until(lambda: settled() > first, "a further run")
    before = busy.completed
    rows = json.loads(busy.program.answer("--json", "SELECT name, status FROM v_tool_call ORDER BY started_at_ms"))
    assert {row["name"] for row in rows["rows"]} == {"Bash"}
    until(lambda: busy.completed > before, "the server goes on")
