"""The program in processes of its own: on the small store of docs/sql.md, and beside a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Site
from tests.support.sql_store import make_sql_store

CHECKOUT = Path(__file__).parents[3]
TIMEOUT_S = 60


@dataclass(frozen=True)
class Program:
    """`python -m aura --home "" --config <home> …`, behind `prefix`."""

    home: Path
    prefix: tuple[str, ...] = ()

    @property
    def store(self) -> Path:
        return self.home / "sessions"

    @property
    def command(self) -> list[str]:
        return [*self.prefix, sys.executable, "-m", "aura", "--home", "", "--config", str(self.home)]

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AURA_")}
        return kept | {"PYTHONPATH": str(CHECKOUT), "HOME": str(self.home / "nobody")}

    def run(self, *words: str | bytes, **settings: Any) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        if "input" not in settings:
            settings["stdin"] = subprocess.DEVNULL
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        settings = {"env": self.environment, "cwd": self.home.parent, "timeout": TIMEOUT_S} | pipes | settings
        done = subprocess.run([*self.command, *words], **settings, check=False)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), (done.stderr or b"").decode()
        )

    def text(self, *words: str, **settings: Any) -> str:
        """Run a command that succeeds without a word on standard error; return what it prints."""
        done = self.run(*words, **settings)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def json(self, *words: str, **settings: Any) -> dict[str, Any]:
        """The same with `--json`."""
        answer = json.loads(self.text(*words, "--json", **settings))
        assert isinstance(answer, dict)
        return answer

    def fails(self, code: str, *words: str | bytes) -> dict[str, Any]:
        """Run a command that fails with `code`; return the error object."""
        plain = self.run(*words)
        assert (plain.returncode, plain.stdout) == (1, "") and plain.stderr.startswith("error: "), plain
        assert "Traceback" not in plain.stderr
        done = self.run(*words, "--json")
        assert (done.returncode, done.stdout) == (1, ""), done
        error = json.loads(done.stderr)["error"]
        assert error["code"] == code, error
        assert isinstance(error, dict)
        return error


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program on a write home without a store."""
    return Program(tmp_path / "home")


@pytest.fixture
def told(tmp_path: Path) -> Program:
    """The program on the small store of docs/sql.md."""
    make_sql_store(tmp_path / "home" / "sessions")
    return Program(tmp_path / "home")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A bench on which servers run."""
    made = Site(tmp_path)
    try:
        yield made
    finally:
        made.end()
