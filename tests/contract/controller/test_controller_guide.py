"""docs/controller.md holds the program that is tested, and its console example works word by word."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.serving import until

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = (CHECKOUT / "docs" / "controller.md").read_text()
PROGRAM = (CHECKOUT / "scripts" / "demo" / "controller.py").read_text()


def fence(language: str) -> str:
    """Return the page's only fence of that language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(text, str)
    return text


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with `aura` and `python` as an installed one has them."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("aura", f'"{sys.executable}" -m aura'), ("python", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(0o700)
    paths = f"{CHECKOUT}:{CHECKOUT / 'clients' / 'python'}"
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": paths}


def control(place: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    command = [sys.executable, str(CHECKOUT / "scripts/demo/controller.py"), *words]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=60)


def test_the_page_holds_the_program_word_for_word() -> None:
    assert fence("python") == PROGRAM


def test_the_example_prints_what_the_page_says_and_again_changes_nothing(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "controller.py").write_text(PROGRAM)
    lines = fence("console").splitlines(keepends=True)
    script = "".join(line.removeprefix("$ ") for line in lines[:-1])
    expected = lines[-1].replace("3f5c…", "[0-9a-f]{64}")

    def run(words: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", words], cwd=place, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run(script)
    assert re.fullmatch(expected, first)
    again = run(script[script.rindex("cd workspace") :])
    assert again == first
    state = json.loads((place / "state/jobs/job-1.json").read_text())
    assert (state["launches"], state["attempt"], state["verdict"]) == (1, 1, "completed")
    assert state["revision"] in first
    assert (place / "state/token").stat().st_mode & 0o077 == 0


def test_wrong_words_and_a_second_controller_are_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "jobs").write_text("\n")
    assert control(tmp_path, environment, "jobs").returncode == 2
    state = tmp_path / "state"
    state.mkdir()
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = control(tmp_path, environment, "jobs", "state", "--", "aura")
    assert (done.returncode, done.stderr) == (4, "another controller has this state\n")


JOB = '{"id": "job-1", "prompt": "count the files"}'


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([JOB, "", "{"], 3),
        ([JOB, JOB.replace("count", "remove")], 2),
        (['{"id": "job-1"}'], 1),
        (['{"id": "../job-1", "prompt": "count"}'], 1),
        (['{"id": "job-1", "prompt": null}'], 1),
        (['["job-1", "count"]'], 1),
    ],
)
def test_a_list_with_a_mistake_is_refused_before_anything_is_begun(
    tmp_path: Path, environment: dict[str, str], lines: list[str], number: int
) -> None:
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    done = control(tmp_path, environment, "jobs.jsonl", "state", "--", "aura")
    assert done.returncode == 2
    assert done.stderr == f'jobs.jsonl: line {number} is not {{"id": "job-1", "prompt": "..."}} with an id of its own\n'
    assert not (tmp_path / "state").exists()


def test_a_list_that_is_not_there_is_said_in_a_line(tmp_path: Path, environment: dict[str, str]) -> None:
    done = control(tmp_path, environment, "jobs.jsonl", "state", "--", "aura")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "jobs.jsonl" in done.stderr


@pytest.fixture
def place(tmp_path: Path, environment: dict[str, str]) -> Path:
    """A directory with a home whose agent waits for the file `go`, a list of one job, and its session."""
    files = {
        "home/config/agents/main.md": "---\nname: main\ndefault: true\nmodel: {provider: script, name: scripted}\n"
        'tools: {enabled: ["*"]}\n---\nBe careful.\n',
        "home/config/providers/script.yaml": "script: {type: script, file: script.yaml}\n",
        "home/script.yaml": "turns:\n  - when: {last: ^count}\n    calls:\n      - name: Bash\n"
        '        arguments: {command: "until [ -e go ]; do sleep 0.05; done"}\n  - content: Done.\n',
        "jobs.jsonl": JOB,
        "empty.json": '{"messages": []}',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    words = ("aura", "--home", "", "--config", "home", "session", "import", "empty.json", "--id", "job-1")
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)
    return tmp_path


WORDS = ("jobs.jsonl", "state", "--", "aura", "--home", "", "--config", "home")


@contextmanager
def controlling(place: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A controller at work; it is ended by us if it does not end itself."""
    command = [sys.executable, str(CHECKOUT / "scripts/demo/controller.py"), *WORDS]
    with subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_told_to_stop_it_lets_the_agent_work_and_the_next_start_finds_the_run(
    place: Path, environment: dict[str, str]
) -> None:
    mirror = place / "state/mirror/job-1.jsonl"
    try:
        with controlling(place, environment) as process:
            until(lambda: mirror.exists() and "tool.started" in mirror.read_text(), "a command at work")
            process.terminate()
            assert process.wait(30) == 3
    finally:
        (place / "go").touch()
    done = control(place, environment, *WORDS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("job-1: completed after 1 attempts, revision ")
    assert json.loads((place / "state/jobs/job-1.json").read_text())["launches"] == 1


def test_told_to_stop_while_another_process_has_the_session_it_stops_as_well(
    place: Path, environment: dict[str, str]
) -> None:
    ready_file = place / "state/ready/job-1.1.json"
    locks = place / "home/sessions/.locks"
    locks.mkdir(mode=0o700, exist_ok=True)
    with (locks / "job-1.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with controlling(place, environment) as process:
            until(ready_file.exists, "a start that was refused")
            process.terminate()
            assert process.wait(30) == 3
            assert process.stderr is not None
            assert process.stderr.read().startswith("job-1: session_locked: ")
    (place / "go").touch()
    assert control(place, environment, *WORDS).returncode == 0
