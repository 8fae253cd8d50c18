"""Checks what is left after `controller_kills.play`: each job ended once, nothing ran twice, nothing is missing.

It asks the database by the public views, through the standard library's SQLite, as anybody could, and the offline
commands of aura; only reads.
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
EFFECT = re.compile(r"(first|second) (?:.*: )?do (job-\d+)(?: .* Attempt (\d+)\.)?")
ENDED = re.compile(r"^(job-\d+): (.*) after (\d+) attempts, revision (.*)$", re.MULTILINE)


def check_promises(place: Place, report: Report) -> None:
    """Count what is there, and append to the report's violations whatever should not be."""
    with closing(sqlite3.connect(f"file:{place.home / 'sessions' / 'aura.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        for job in place.jobs:
            _Job(place, report, database, job).check()
        _check_effects(place, report, database)
    _check_endings(place, report)


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
        self._exported = _read_lines(place.aura("journal", "export", job, "--output", "-"))
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
        seqs = [event["seq"] for event in self._exported]
        self._expect(seqs == list(range(1, len(seqs) + 1)), "the journal has a gap")
        self._expect(seqs == [event["seq"] for event in self._events], "the exported journal is not the stored one")
        verified = self._place.find_failure("journal", "verify", self._job)
        self._expect(verified is None, f"the journal does not verify: {verified}")
        runs = Counter(run["run_id"] for run in self._runs)
        accepted = Counter(event["run_id"] for event in self._events if event["type"] == "run.accepted")
        self._expect(accepted == runs, "run.accepted is not there once for each run")
        inputs = Counter(event["run_id"] for event in self._events if event["type"] == "message.user")
        lost = {run["run_id"] for run in self._runs if run["state"] == "lost"}  # perhaps before it began
        self._expect(inputs <= runs and runs.keys() - inputs.keys() <= lost, "a prompt entered not once for its run")
        ends = Counter(event["run_id"] for event in self._events if event["type"] in TERMINAL)
        self._expect(ends == runs, "terminal records are not one per run")

    def _check_mirror(self) -> None:
        seen = _read_lines((self._place.state / "mirror" / f"{self._job}.jsonl").read_bytes())
        self._expect(seen == self._exported[: len(seen)], "the mirror is not the exported journal, each event once")
        self._expect(bool(seen) and seen[-1]["seq"] >= self._runs[-1]["last_seq"], "the mirror ends too early")

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
    """Commands left lines that name their run's request: one if the call ended well, else at most one if it began."""
    lines = (place.workspace / "effects").read_text().splitlines()
    report.effects = len(lines)
    effects = Counter[tuple[str, str]]()
    for line in lines:
        if found := EFFECT.fullmatch(line):
            word, job, attempt = found.groups()
            effects[f"{job}:{attempt or 1}", word] += 1
        else:
            report.violations.append(f"a strange effect: {line!r}")
    started, ended = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    rows = "SELECT request_id, args, status FROM v_tool_call JOIN v_run USING (run_id) WHERE name = 'Bash'"
    for request_id, args, status in database.execute(rows):
        word = "first" if "echo 'first" in json.loads(args)["command"] else "second"
        started[request_id, word] += 1
        ended[request_id, word] += status == "ok"
    for key in started | effects:
        if not ended[key] <= effects[key] <= started[key] <= 1:
            what = f"{started[key]} calls began, {ended[key]} ended, {effects[key]} effects"
            report.violations.append(f"{key[0]}, {key[1]} command: {what}")


def _check_endings(place: Place, report: Report) -> None:
    """Each life of the controller prints how the jobs ended: always the same, and what its state says."""
    printed: dict[str, set[tuple[str, ...]]] = {job: set() for job in place.jobs}
    for job, *ending in ENDED.findall(place.log_path.read_text()):
        printed[job].add(tuple(ending))
    for job, endings in printed.items():
        state = json.loads((place.state / "jobs" / f"{job}.json").read_text())
        if endings != {(state["verdict"], str(state["attempt"]), state["revision"])}:
            report.violations.append(f"{job}: its end was recorded not once: {sorted(endings)}")


def _read_lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write_report(report: Report, path: Path) -> None:
    """Write the report as JSON."""
    path.write_text(json.dumps({name: getattr(report, name) for name in report.__slots__}, indent=2) + "\n")
