"""The real program in processes of its own, on a store of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[3]
TIMEOUT_S = 60


@dataclass(frozen=True)
class Done:
    """How a process ended."""

    exit_code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def error_lines(self) -> list[str]:
        return self.err.decode().splitlines()


@dataclass(frozen=True)
class Program:
    """`python -m aura --home "" --config <home> session …`, started in `cwd`, behind `prefix`."""

    cwd: Path
    home: Path
    prefix: tuple[str, ...] = ()

    @property
    def store(self) -> Path:
        return self.home / "sessions"

    def command(self, *words: str | bytes) -> list[str | bytes]:
        return [*self.plain("--home", "", "--config", str(self.home)), "session", *words]

    def plain(self, *words: str | bytes) -> list[str | bytes]:
        return [*self.prefix, sys.executable, "-m", "aura", *words]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AURA_")}
        return kept | {"PYTHONPATH": str(CHECKOUT), "HOME": str(self.cwd / "nobody")} | more

    def run_command(self, command: list[str | bytes], **settings: Any) -> Done:
        defaults = {"cwd": self.cwd, "env": self.environment(), "timeout": TIMEOUT_S}
        defaults |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if "input" not in settings:
            defaults["stdin"] = subprocess.DEVNULL
        done = subprocess.run(command, **(defaults | settings), check=False)
        return Done(done.returncode, done.stdout or b"", done.stderr or b"")

    def run(self, *words: str | bytes, **settings: Any) -> Done:
        return self.run_command(self.command(*words), **settings)

    def json(self, *words: str | bytes, **settings: Any) -> dict[str, Any]:
        """Run a command that succeeds with `--json`; return its one object."""
        done = self.run(*words, "--json", **settings)
        assert (done.exit_code, done.err) == (0, b""), done
        assert done.out.endswith(b"\n") and done.out.count(b"\n") == 1
        answer = json.loads(done.out)
        assert isinstance(answer, dict)
        return answer

    def text(self, *words: str | bytes, **settings: Any) -> str:
        """Run a command that succeeds without `--json`; return what it says."""
        done = self.run(*words, **settings)
        assert (done.exit_code, done.err) == (0, b""), done
        return done.text

    def fails(self, code: str, *words: str | bytes, **settings: Any) -> dict[str, Any]:
        """Run a command that fails with `code`, in both forms; return the error object."""
        plain = self.run(*words, **settings)
        assert (plain.exit_code, plain.out) == (1, b""), plain
        assert plain.error_lines[0].startswith("error: ")
        assert all(line.startswith("hint: ") for line in plain.error_lines[1:]) and len(plain.error_lines) <= 2
        done = self.run(*words, "--json", **settings)
        assert (done.exit_code, done.out) == (1, b""), done
        answer = json.loads(done.err)
        assert list(answer) == ["error"]
        error = answer["error"]
        assert set(error) - {"hint"} == {"code", "message", "retryable", "details"}
        assert (error["code"], error["retryable"]) == (code, False), error
        return error


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with an empty write home, which does not exist yet."""
    return Program(tmp_path, tmp_path / "home")


def document(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "id": "task-1",
        "title": "Add a flag",
        "created_at": "2026-11-30T10:00:00.123456+00:00",
        "updated_at": "2026-11-30T11:04:11.5+01:00",
        "messages": [
            {"ID": "", "Role": "system", "Content": "You are careful."},
            {"ID": "", "Role": "user", "Content": "add a --retry flag"},
            {
                "ID": "",
                "Role": "assistant",
                "Content": "Reading.",
                "calls": [{"id": "call_1", "name": "Read", "arguments": {"path": "cli.py"}}],
            },
            {"ID": "", "Role": "tool", "Content": "1: import sys\n", "tool_name": "Read", "tool_call_id": "call_1"},
        ],
        "meta": {"agent": "main"},
        "todos": {"items": [{"content": "edit", "status": "pending"}]},
    }
    return json.dumps(fields | changes).encode()


@pytest.fixture(name="document")
def document_fixture() -> Any:
    """Makes a session document in the reference program's spelling, with changed top-level fields."""
    return document


@pytest.fixture
def imported(program: Program) -> dict[str, Any]:
    """The Summary of `task-1`, imported into the program's store."""
    done = program.json("import", "-", input=document())
    assert done["created"] is True
    summary = done["session"]
    assert isinstance(summary, dict)
    return summary
