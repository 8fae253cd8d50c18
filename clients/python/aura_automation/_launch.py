"""Starting `aura serve` and waiting for its ready file. Whatever goes wrong, no process is left behind."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from aura_automation._decode import read_ready
from aura_automation._http import checked_token
from aura_automation._limits import LAUNCH_EXIT_S, READY_POLL_S
from aura_automation._process import end
from aura_automation.aura import Aura
from aura_automation.errors import ProgramFailed
from aura_automation.models import Ready


@dataclass(frozen=True, slots=True)
class Launched:
    """A server that is ready. `lease` is the pipe's write end: one byte releases the server, closing it stops
    it.
    """

    process: subprocess.Popen[bytes]
    lease: FileIO
    ready: Ready


def launch(
    aura: Aura,
    *,
    ready_file: Path,
    token: str,
    resume: str | None,
    bind: str | None,
    extra: Sequence[str],
    log: Path | None,
    timeout_s: float,
) -> Launched:
    """Start a server and return it once its ready file is there. See `Server.launch` for arguments and
    errors.
    """
    checked_token(token)
    _remove_stale(ready_file)
    root = [] if resume is None else ["--resume", resume]
    flags = ["--ready-file", str(ready_file)]
    flags += [] if bind is None else ["--bind", bind]
    read_end, write_end = os.pipe()
    lease = os.fdopen(write_end, "wb", buffering=0)
    try:
        command = aura.command(*root, "serve", *flags, "--launcher-fd", str(read_end), *extra)
        with _log(log) as output:
            process = _start(aura, command, token, read_end, output)
    except BaseException:
        lease.close()
        raise
    finally:
        os.close(read_end)
    try:
        ready = _await_ready(process, ready_file, log, timeout_s)
    except BaseException:
        lease.close()  # to the server its launcher is lost: it ends by itself
        with suppress(subprocess.TimeoutExpired):
            process.wait(LAUNCH_EXIT_S)
        end(process)
        raise
    return Launched(process, lease, ready)


def _start(aura: Aura, command: list[str], token: str, read_end: int, output: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            cwd=aura.cwd,
            env=aura.environment(token),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(read_end,),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        problem = f"aura serve could not be started: {error}"
        raise ProgramFailed(problem, details={"reason": "not_started"}, hint="check binary and cwd") from error


def _await_ready(process: subprocess.Popen[bytes], ready_file: Path, log: Path | None, timeout_s: float) -> Ready:
    hint = "give launch a log= file to see what it says" if log is None else f"see {log}"
    end_s = time.monotonic() + timeout_s
    while True:
        exit_code = process.poll()  # asked before reading: a file written just before the exit is not missed
        with suppress(FileNotFoundError):
            return read_ready(ready_file.read_bytes(), str(ready_file))
        if exit_code is not None:
            problem = f"aura serve ended with status {exit_code} before it was ready"
            raise ProgramFailed(problem, details={"reason": "exited", "exit_code": exit_code}, hint=hint)
        if time.monotonic() >= end_s:
            problem = f"aura serve was not ready within {timeout_s:g} s and was ended"
            raise ProgramFailed(problem, details={"reason": "timeout"}, hint=hint)
        time.sleep(READY_POLL_S)


def _remove_stale(ready_file: Path) -> None:
    try:
        ready_file.unlink(missing_ok=True)
    except OSError as error:
        problem = f"the old ready file cannot be removed: {error}"
        raise ProgramFailed(problem, details={"reason": "not_started"}, hint="choose another ready_file") from error


@contextmanager
def _log(path: Path | None) -> Iterator[int]:
    if path is None:
        yield subprocess.DEVNULL
        return
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        problem = f"the log file cannot be opened: {error}"
        raise ProgramFailed(problem, details={"reason": "not_started"}, hint="choose another log=") from error
    try:
        yield fd
    finally:
        os.close(fd)
