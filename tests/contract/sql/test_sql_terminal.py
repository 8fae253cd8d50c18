"""`aura sql` at a terminal of its own: a table as wide as the window, and the prompt with Tab."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.contract.sql.conftest import TIMEOUT_S, Program

COLUMNS = 60


class Terminal:
    """The other side of a pseudo-terminal."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self._fd = fd
        self.process = process
        self.seen = b""

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def read_until(self, text: str) -> str:
        """Read on until `text` has come; fail after a while."""
        deadline = time.monotonic() + TIMEOUT_S
        while text.encode() not in self.seen:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} did not come: {self.seen!r}"
            self.seen += self._read()
        seen, _, self.seen = self.seen.partition(text.encode())
        return seen.decode()

    def read_all(self) -> str:
        while data := self._read():
            self.seen += data
        return self.seen.decode()

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 65536)
        except OSError:  # the other side is closed
            return b""


@contextmanager
def started(program: Program, *words: str) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {key: value for key, value in program.environment.items() if key not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(program.home / "state")}
    process = subprocess.Popen(
        [*program.command, *words],
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(TIMEOUT_S)
        os.close(ours)


def test_a_table_is_as_wide_as_the_terminal_at_most(program: Program) -> None:
    with started(program, "SELECT run_id, args, error FROM v_tool_call") as terminal:
        lines = terminal.read_all().splitlines()
        assert terminal.process.wait(TIMEOUT_S) == 0
    assert max(map(len, lines)) <= COLUMNS
    assert any("…" in line for line in lines)


def test_the_prompt_completes_answers_and_remembers(program: Program) -> None:
    with started(program) as terminal:
        terminal.read_until("aura>")
        terminal.type("SELECT count(*) AS how_many FROM v_ses")
        terminal.read_until("v_ses")
        terminal.type("\t")
        terminal.read_until("sion")
        terminal.type(";\r")
        terminal.read_until("how_many\r\n--------\r\n       3\r\n")
        terminal.read_until(" ms)")
        terminal.type(".quit\r")
        assert terminal.process.wait(TIMEOUT_S) == 0
    history = (program.home / "state" / "aura" / "sql_history").read_text()
    assert "+SELECT count(*) AS how_many FROM v_session;" in history
