"""`aura runs` and `aura stats`: what a person asks every morning, without SQL."""

from __future__ import annotations

import apsw
import pytest

from tests.contract.history.conftest import Program
from tests.support.serving import Site, bash, calls


def ids(answer) -> list[str]:
    return [run["id"] for run in answer["runs"]]


def test_runs_are_listed_newest_first_as_the_api_has_them(told):
    answer = told.json("runs")
    assert sorted(ids(answer)) == [f"run-{n}" for n in range(1, 8)] and answer["truncated"] is False
    newest = answer["runs"][0]
    assert list(newest)[:3] == ["id", "request_id", "kind"] and list(newest)[-1] == "text"
    assert told.json("runs", "--limit", "1") == {"runs": [newest], "truncated": True}


def test_runs_are_chosen_by_session_state_and_time(told):
    assert ids(told.json("runs", "--session", "nightly")) == ["run-5", "run-4"]
    assert ids(told.json("runs", "--state", "lost")) == ["run-5"]
    assert ids(told.json("runs", "--state", "live")) == ["run-7"] == ids(told.json("runs", "--since", "1m"))
    assert set(ids(told.json("runs", "--state", "failed", "--state", "cancelled"))) == {"run-3", "run-6"}
    assert set(ids(told.json("runs", "--since", "2026-01-12"))) == {"run-6", "run-7"}
    assert told.text("runs", "--session", "docs", "--state", "lost") == "no runs\n"


def test_people_read_runs_as_a_table_and_are_told_of_more(told):
    lines = told.text("runs").splitlines()
    assert lines[0].split() == ["RUN", "SESSION", "STATE", "ACCEPTED", "TOOK", "CALLS", "WHAT"]
    (failed,) = [line for line in lines if line.startswith("run-3 ")]
    assert "failed" in failed and "Fix the login test" in failed and "(provider_rate_limit: " in failed
    cut = told.run("runs", "--limit", "2")
    assert (cut.returncode, len(cut.stdout.splitlines())) == (0, 3)
    assert cut.stderr.startswith("note: only the newest 2 runs")


def test_stats_since_a_day_count_what_was_at_work(told):
    stats = told.json("stats", "--since", "2026-01-01")
    assert sum(item["runs"] for item in stats["runs"]) == 7
    assert [item["code"] for item in stats["failures"]] == ["provider_rate_limit", "server_lost"]
    assert [run["run_id"] for run in stats["lost"]] == ["run-5"]
    assert [(run["run_id"], run["held"]) for run in stats["live"]] == [("run-7", False)]
    assert [item["input_id"] for item in stats["waiting"]] == ["in-1"]
    assert {item["name"]: item["error_rate"] for item in stats["tools"]}["WebFetch"] == 0.5
    assert {item["model"]: item["cost_usd"] for item in stats["models"]}["qwen-coder"] is None
    assert stats["store"]["sessions"] == 3 and stats["store"]["database_bytes"] > 0
    today = told.json("stats")
    assert (today["failures"], today["tools"]) == ([], []) and [run["run_id"] for run in today["live"]] == ["run-7"]


def test_people_read_stats_in_parts(told):
    text = told.text("stats", "--since", "2026-01-01")
    assert text.startswith("since 2026-01-01 00:00:00Z\n7 runs: 3 completed, ")
    for part in ("failures", "lost runs", "live runs", "waiting for somebody", "models", "tools, the slowest", "store"):
        assert f"\n{part}" in text
    assert "running, no server" in text and "git push origin v2" in text and "50.0%" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("command", ["runs", "stats", "search"])
def test_a_time_that_is_none_and_a_missing_store_are_said_plainly(told, program, command, tmp_path):
    words = [command, "fox"] if command == "search" else [command]
    assert "7d" in told.fails("bad_request", *words, "--since", "yesterday")["hint"]
    empty = type(told)(tmp_path / "empty")
    empty.fails("not_found", *words)
    assert not (tmp_path / "empty").exists()


def test_an_unknown_session_is_not_found(told):
    told.fails("not_found", "runs", "--session", "nope")
    told.fails("invalid_id", "runs", "--session", "../nope")
    assert told.run("runs", "--state", "odd").returncode == 2


def test_a_live_server_is_seen_as_the_holder_of_its_run(site: Site):
    site.script(calls(bash("sleep 30")), {"content": "done", "repeat": "forever"})
    server = site.launch()
    server.client.submit("r1", prompt="go on")
    server.event("tool.started")
    program = Program(site.home)
    (live,) = program.json("stats")["live"]
    assert (live["state"], live["held"]) == ("running", True)
    assert ids(program.json("runs", "--state", "live")) == [live["run_id"]]
    assert "running" in program.text("runs") and "no server" not in program.text("stats")


@pytest.mark.parametrize(
    "words",
    [("runs",), ("stats",), ("search", "login"), ("search", "--rebuild"), ("session", "log", "api")],
    ids=" ".join,
)
def test_a_store_of_a_newer_program_is_refused_and_left_as_it_was(told, words):
    connection = apsw.Connection(str(told.store / "aura.db"))
    connection.execute("PRAGMA user_version = 99").fetchall()
    connection.close()
    before = (told.store / "aura.db").read_bytes()
    assert "newer" in told.fails("store_unavailable", *words)["hint"]
    assert (told.store / "aura.db").read_bytes() == before
