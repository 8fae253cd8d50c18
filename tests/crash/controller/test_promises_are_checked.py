"""What the check after random kills says when a promise is broken: nobody is killed, what is left is tampered with."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.controller_kills import Kills, Place, Report, play
from tests.support.controller_promises import check_promises


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Report]:
    """A job that nobody disturbed."""
    return play(tmp_path_factory.mktemp("played").resolve(), Kills(0, 0), 1, print, batch_count=1)


@pytest.fixture
def place(played: tuple[Place, Report]) -> Iterator[Place]:
    """The place; its files are put back afterwards. Nothing has them open then."""
    place = played[0]
    files = {path: path.read_bytes() for path in place.root.rglob("*") if path.is_file()}
    yield place
    for path in [path for path in place.root.rglob("*") if path.is_file()]:
        if path not in files:
            path.unlink()
        elif path.read_bytes() != files[path]:
            path.write_bytes(files[path])


def repeat_last_line(path: Path) -> None:
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])


def effect_twice(place: Place) -> None:
    repeat_last_line(place.workspace / "effects")


def effect_lost(place: Place) -> None:
    path = place.workspace / "effects"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def effect_of_nobody(place: Place) -> None:
    path = place.workspace / "effects"
    path.write_text(path.read_text() + "first do job-1 and go on. Attempt 2.\n")


def mirrored_twice(place: Place) -> None:
    repeat_last_line(place.state / "mirror" / "job-1.jsonl")


def mirror_lacks_one(place: Place) -> None:
    path = place.state / "mirror" / "job-1.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))


def other_time(place: Place) -> None:
    path = place.state / "mirror" / "job-1.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    event = json.loads(first) | {"time": "2000-01-01T00:00:00.000Z"}
    path.write_text("".join((json.dumps(event) + "\n", *rest)))


def ended_twice(place: Place) -> None:
    with place.log_path.open("a") as log:
        log.write("job-1: completed after 2 attempts, revision 00\n")


def attempt_without_run(place: Place) -> None:
    path = place.state / "jobs" / "job-1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"attempt": 2}))


def other_export(place: Place) -> None:
    path = place.state / "export" / "job-1.json"
    path.write_text(path.read_text() + " ")


def journal_rewritten(place: Place) -> None:
    with closing(sqlite3.connect(place.home / "sessions" / "aura.db")) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        where = "WHERE type = 'message.user' AND session_id = 'job-1'"
        (count,) = database.execute(f"SELECT count(*) FROM v_event {where}").fetchone()
        assert count == 1
        database.execute("UPDATE event SET data = replace(data, 'do job-1', 'do job-9') WHERE type = 'message.user'")
        database.commit()


@pytest.mark.parametrize(
    "said",
    [
        {
            effect_twice: "second command: 1 calls began, 1 ended, 2 effects",
            mirrored_twice: "the mirror is not the exported journal",
            ended_twice: "its end was recorded not once",
            other_export: "the controller's export is not the head",
        },
        {
            effect_lost: "second command: 1 calls began, 1 ended, 0 effects",
            mirror_lacks_one: "the mirror is not the exported journal",
            attempt_without_run: "runs are not the attempts",
        },
        {
            effect_of_nobody: "job-1:2, first command: 0 calls began, 0 ended, 1 effects",
            other_time: "the mirror is not the exported journal",
        },
        {journal_rewritten: "the journal does not verify"},
    ],
)
def test_every_broken_promise_is_told(place: Place, said: dict[Callable[[Place], None], str]) -> None:
    for tamper in said:
        tamper(place)
    report = Report(seed=1)
    check_promises(place, report)
    for words in said.values():
        assert any(words in line for line in report.violations), report.violations


def test_a_process_that_was_left_is_found(place: Place) -> None:
    assert place.find_processes() == []
    left = subprocess.Popen(("/bin/sleep", "60"), cwd=place.workspace)
    try:
        (line,) = place.find_processes()
        assert line.startswith(f"{left.pid}: ")
    finally:
        left.kill()
        left.wait()


def test_nothing_is_wrong_where_nobody_was_killed(played: tuple[Place, Report]) -> None:
    place, report = played
    assert report.violations == []
    assert (report.starts, report.jobs, report.controller_kills, report.server_kills) == (1, 1, 0, 0)
    check_promises(place, report)
    assert (report.runs, report.lost_runs, report.effects, report.violations) == (1, 0, 2, [])
