"""The small store of docs/sql.md, `aura sql` in processes of its own, and a server that keeps writing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Running, Site, bash, calls
from tests.support.sql_store import make_sql_store

CHECKOUT = Path(__file__).parents[3]
TIMEOUT_S = 60


@dataclass(frozen=True)
class Program:
    """`python -m aura --home "" --config <home> sql …`."""

    home: Path

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "aura", "--home", "", "--config", str(self.home), "sql"]

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AURA_")}
        return kept | {"PYTHONPATH": str(CHECKOUT), "HOME": str(self.home / "nobody")}

    def run(self, *words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        if "input" not in settings:
            settings["stdin"] = subprocess.DEVNULL
        settings = {"env": self.environment, "cwd": self.home, "timeout": TIMEOUT_S, "text": True} | settings
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.run([*self.command, *words], **(pipes | settings), check=False)

    def answer(self, *words: str, **settings: Any) -> str:
        """Run it where it must succeed without a word; return what it prints."""
        done = self.run(*words, **settings)
        assert (done.returncode, done.stderr) == (0, ""), done
        return str(done.stdout)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    make_sql_store(tmp_path / "sessions")
    return Program(tmp_path)


class Busy:
    """A server whose session gets one run after the other until the block ends."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.path = site.sessions / "aura.db"
        self.program = Program(site.home)
        self.server: Running = site.launch()
        self.completed = 0
        self.failures: list[BaseException] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="busy")

    @contextmanager
    def at_work(self) -> Iterator[Busy]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(TIMEOUT_S)
        assert self.failures == [] and not self._thread.is_alive()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                run = self.server.run("go on", f"request-{self.completed}")
                assert (run.state, run.outcome) == ("persisted", "completed"), run
                self.completed += 1
        except BaseException as error:  # noqa: BLE001 shown by the block
            self.failures.append(error)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Busy]:
    site = Site(tmp_path)
    call = calls(bash("true"), when={"last": "^go on"}, usage={"input": 100, "output": 20}, repeat="forever")
    site.script(call, {"content": "done", "repeat": "forever"})
    try:
        with Busy(site).at_work() as made:
            yield made
    finally:
        site.end()
