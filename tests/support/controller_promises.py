"""Checks what is left after `controller_kills.play`: each job ended once, nothing ran twice, nothing is missing.

It asks the database by the public views, through the standard library's SQLite, as anybody could; only reads.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.controller_kills import Place, Report

TERMINAL = ("run.persisted", "run.persist_failed", "run.lost")
EFFECT = re.compile(r"^(first|second) .*?\b(job-\d+)$", re.MULTILINE)


def check_promises(place: Place, report: Report) -> None:
    """Count what is there, and append to the report's violations whatever should not be."""
    with closing(sqlite3.connect(f"file:{place.home / 'sessions' / 'aura.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        for job in place.jobs:
            _Job(place, report, database, job).check()
        _check_effects(place, report, database)


class _Job:
    """One job: its state, its runs, its journal, its mirror, its revisions."""

    def __init__(self, place: Place, report: Report, database: sqlite3.Connection, job: str) -> None:
        self._place = place
        self._report = report
        self._job = job
        self._state: dict[str, Any] = json.loads((place.state / "jobs" / f"{job}.json").read_text())
        self._runs = database.execute(
            "SELECT * FROM v_run WHERE session_id = ? ORDER BY accepted_seq", (job,)
        ).fetchall()
        self._events = database.execute("SELECT * FROM v_event WHERE session_id = ? ORDER BY seq", (job,)).fetchall()
        self._revisions = database.execute(
            "SELECT * FROM v_revision WHERE session_id = ? ORDER BY n", (job,)
        ).fetchall()
        report.runs += len(self._runs)
        report.lost_runs += sum(run["state"] == "lost" for run in self._runs)
        report.events += len(self._events)

    def check(self) -> None:
        """Check all of it."""
        self._check_runs()
        self._check_journal()
        self._check_mirror()
        self._check_revisions()

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self._report.violations.append(f"{self._job}: {what}")

    def _check_runs(self) -> None:
        self._expect(self._state["verdict"] == "completed", f"the controller says {self._state['verdict']!r}")
        requests = [f"{self._job}:{n + 1}" for n in range(self._state["attempt"])]
        self._expect([run["request_id"] for run in self._runs] == requests, "runs are not the attempts, one for each")
        self._expect(not any(run["live"] for run in self._runs), "a run is live")
        *earlier, last = self._runs
        self._expect((last["state"], last["outcome"]) == ("persisted", "completed"), f"the last run is {last['state']}")
        self._expect(all(run["state"] == "lost" for run in earlier), "an earlier run was not lost, and was repeated")

    def _check_journal(self) -> None:
        seqs = [event["seq"] for event in self._events]
        self._expect(seqs == list(range(1, len(seqs) + 1)), "the journal has a gap")
        runs = Counter(run["run_id"] for run in self._runs)
        accepted = Counter(event["run_id"] for event in self._events if event["type"] == "run.accepted")
        self._expect(accepted == runs, "run.accepted is not there once for each run")
        inputs = Counter(event["run_id"] for event in self._events if event["type"] == "message.user")
        lost = {run["run_id"] for run in self._runs if run["state"] == "lost"}  # perhaps before it began
        self._expect(inputs <= runs and runs.keys() - inputs.keys() <= lost, "a prompt entered not once for its run")
        ends = Counter(event["run_id"] for event in self._events if event["type"] in TERMINAL)
        self._expect(ends == runs, "terminal records are not one per run")

    def _check_mirror(self) -> None:
        lines = (self._place.state / "mirror" / f"{self._job}.jsonl").read_text().splitlines()
        mirrored = [json.loads(line) for line in lines]
        seen = [(event["seq"], event["type"], event["run_id"], event["data"]) for event in mirrored]
        stored = [(event["seq"], event["type"], event["run_id"], json.loads(event["data"])) for event in self._events]
        self._expect(seen == stored[: len(seen)], "the mirror is not the journal's beginning, each event once")
        self._expect(bool(seen) and seen[-1][0] >= self._runs[-1]["last_seq"], "the mirror ends before the last run")

    def _check_revisions(self) -> None:
        for revision in self._revisions:
            words = ("session", "export", self._job, "--revision", revision["revision"], "--output", "-")
            sha256 = hashlib.sha256(self._place.aura(*words)).hexdigest()
            self._expect(sha256 == revision["revision"], f"revision {revision['n']} hashes to {sha256}")
        self._report.revisions += len(self._revisions)
        exported = (self._place.state / "export" / f"{self._job}.json").read_bytes()
        sha256 = hashlib.sha256(exported).hexdigest()
        known = [revision["revision"] for revision in self._revisions]
        self._expect(sha256 == self._state["revision"] == known[-1], "the controller's export is not the head")


def _check_effects(place: Place, report: Report, database: sqlite3.Connection) -> None:
    """Commands left lines: at least one for each that ended well, at most one for each that was started."""
    effects = Counter(EFFECT.findall((place.workspace / "effects").read_text()))
    started, ended = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    calls = database.execute("SELECT session_id, run_id, args, status FROM v_tool_call WHERE name = 'Bash'").fetchall()
    each = Counter[tuple[str, str]]()
    for call in calls:
        word = "first" if "echo 'first" in json.loads(call["args"])["command"] else "second"
        each[call["run_id"], word] += 1
        started[word, call["session_id"]] += 1
        ended[word, call["session_id"]] += call["status"] == "ok"
    report.effects = effects.total()
    report.violations += [f"{word} ran {count} times in {run}" for (run, word), count in each.items() if count > 1]
    for key in started | effects:
        if not ended[key] <= effects[key] <= started[key]:
            what = f"{ended[key]} ended, {started[key]} started, {effects[key]} effects"
            report.violations.append(f"{key[1]}, {key[0]} command: {what}")


def write_report(report: Report, path: Path) -> None:
    """Write the report as JSON."""
    path.write_text(json.dumps({name: getattr(report, name) for name in report.__slots__}, indent=2) + "\n")
