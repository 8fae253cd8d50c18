"""docs/controller.md holds the program that is tested, and its console example works word by word."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(CHECKOUT / "scripts/demo/controller.py"), *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    assert run("jobs").returncode == 2
    state = tmp_path / "state"
    state.mkdir()
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("jobs", "state", "--", "aura")
    assert (done.returncode, done.stderr) == (4, "another controller has this state\n")
