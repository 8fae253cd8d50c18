"""`aura journal` and `aura evidence` in processes of their own, beside real servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import WAIT_S, Site


@dataclass(frozen=True)
class Done:
    """How a process ended."""

    exit_code: int
    out: bytes
    err: bytes


@dataclass(frozen=True)
class Program:
    """The program on the home of a site."""

    site: Site

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "aura", "--home", "", "--config", str(self.site.home), *words]

    def run(self, *words: str, input: bytes | None = None, command: Sequence[str] | None = None) -> Done:
        feed: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        done = subprocess.run(
            command or self.command(*words),
            cwd=self.site.work,
            env=self.site.environment(),
            capture_output=True,
            timeout=WAIT_S,
            check=False,
            **feed,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def json(self, *words: str, input: bytes | None = None, exit_code: int = 0) -> dict[str, Any]:
        """Return the one object that a command prints with `--json`."""
        done = self.run(*words, "--json", input=input)
        assert (done.exit_code, done.err) == (exit_code, b""), done
        answer = json.loads(done.out)
        assert isinstance(answer, dict)
        return answer

    def fails(self, code: str, *words: str, input: bytes | None = None) -> str:
        """Run a command that fails with `code`; return the message."""
        done = self.run(*words, "--json", input=input)
        assert (done.exit_code, done.out) == (1, b""), done
        error = json.loads(done.err)["error"]
        assert error["code"] == code, error
        return str(error["message"])

    def export(self, session_id: str) -> bytes:
        """Return a session's journal."""
        done = self.run("journal", "export", session_id, "--output", "-")
        assert done.exit_code == 0, done
        return done.out


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace and a config home with a scripted model; its processes end with the test."""
    made = Site(tmp_path)
    yield made
    made.end()


@pytest.fixture
def program(site: Site) -> Program:
    return Program(site)


@pytest.fixture
def session_id(site: Site) -> str:
    """A session with a journal of one run, which nobody holds."""
    server = site.launch()
    server.run("hello")
    server.stop()
    return server.session_id
