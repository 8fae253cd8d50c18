"""Runs one command in a process group of its own and ends the whole group with the call (SHAPES.md section 4).

The group ends when its leader does, at the timeout, at a cancel, and when this process dies (`executors.groups`). It is
killed before its leader is reaped, so that its number cannot belong to anybody else. What the output means is not
decided here.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from aura import limits
from aura.engine.executors import groups
from aura.engine.executors.capture import Capture, Captured
from aura.engine.executors.live import LiveOutput
from aura.engine.scope import Scope


class StartFailed(Exception):
    """The command could not be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. `cap_bytes` bounds what is kept of each stream; with `spill_dir` all of a longer one goes to a file
    there, whose name begins with `name`."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    timeout_ms: int
    cap_bytes: int
    spill_dir: Path | None = None
    name: str = "command"


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `exit_code` is -N after signal N, and None when even SIGKILL did not end it in time."""

    exit_code: int | None
    stdout: Captured
    stderr: Captured
    timed_out: bool = False


def run(
    command: Command,
    scope: Scope,
    *,
    on_output: Callable[[str], None] = lambda text: None,
    on_started: Callable[[int, str], None] = lambda pid, start_time: None,
    kill_grace_ms: int = limits.KILL_GRACE_MS,
) -> Finished:
    """Run `command` to its end and return what it wrote; afterwards no process of its group is left.

    `on_output` gets live text, `on_started` the leader's pid and start time before any output is read. At the timeout
    the group gets SIGTERM, and SIGKILL after `kill_grace_ms`. On cancellation likewise, and then `Cancelled` is raised.
    What the command leaves running in its group is killed when it ends. Raises `StartFailed`. Any thread.
    """
    scope.check()
    guard = _start_guard(kill_grace_ms)
    try:
        process = _start(command, guard)
    except BaseException:
        guard.close()
        raise
    group = _Group(process.pid)
    try:
        on_started(process.pid, groups.find_start_time(process.pid) or "")
        watch = _Watch(command, process, group, scope, on_output, kill_grace_ms)
        with scope.poke(group.interrupt):
            watch.run()
    finally:
        group.end()
        guard.close()
        _reap(process)
    finished = watch.finish(process.returncode)
    scope.check()
    return finished


def _start_guard(kill_grace_ms: int) -> groups.Guard:
    try:
        return groups.Guard(kill_grace_ms)
    except OSError as error:
        raise StartFailed(f"no process can be started: {error.strerror}") from error


def _start(command: Command, guard: groups.Guard) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            groups.guarded(command.argv),
            stdin=guard.launch_stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=dict(command.environment),
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise StartFailed(f"the command cannot be started: {error.strerror}") from error
    except ValueError as error:  # a NUL character, or half of a surrogate pair
        raise StartFailed(
            "the command cannot be started: it holds a character that no command line can have"
        ) from error


def _reap(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(limits.CANCEL_JOIN_MS / 1000)
    except subprocess.TimeoutExpired:
        # Stuck in the kernel (a dead network disk): it dies when that lets go. Popen reaps it later.
        pass


class _Group:
    """The group of a running command: may be signalled from any thread until `end`, never after."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._lock = threading.Lock()
        self._open = True
        self.wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def signal(self, number: signal.Signals) -> None:
        """Signal every process of the group."""
        with self._lock:
            if self._open:
                groups.send(self._pid, number)

    def interrupt(self) -> None:
        """Ask the group to end and wake the thread that watches it."""
        with self._lock:
            if self._open:
                groups.send(self._pid, signal.SIGTERM)
                os.eventfd_write(self.wake, 1)

    def end(self) -> None:
        """Kill what is left, while the leader still holds the group's number."""
        with self._lock:
            self._open = False
            groups.send(self._pid, signal.SIGKILL)
            os.close(self.wake)


class _Watch:
    """Waits for one command: its output, its end, the clock and the scope."""

    def __init__(
        self,
        command: Command,
        process: subprocess.Popen[bytes],
        group: _Group,
        scope: Scope,
        on_output: Callable[[str], None],
        kill_grace_ms: int,
    ) -> None:
        self._group = group
        self._scope = scope
        self._grace_ms = kill_grace_ms
        self._live = LiveOutput(on_output)
        self._captures = {
            name: Capture(command.cap_bytes, command.spill_dir, f"{command.name}-{name}")
            for name in ("stdout", "stderr")
        }
        self._streams: dict[int, str] = {}
        self._poller = select.poll()
        self._leader = os.pidfd_open(process.pid)
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            self._open_stream(name, pipe)
        self._poller.register(self._leader, select.POLLIN)
        self._poller.register(group.wake, select.POLLIN)
        self._step: list[tuple[int, signal.Signals | None]] = []
        self._deadline_ms = _now_ms() + command.timeout_ms
        self._timed_out = False

    def run(self) -> None:
        """Return when the leader has ended, or cannot be ended."""
        try:
            while not self._poll():
                now_ms = _now_ms()
                self._live.tick(now_ms)
                if not self._pursue(now_ms):
                    break
            self._drain()
        finally:
            os.close(self._leader)

    def finish(self, exit_code: int | None) -> Finished:
        """Return the result; the live output is complete afterwards."""
        self._live.finish()
        stdout, stderr = (self._captures[name].finish() for name in ("stdout", "stderr"))
        return Finished(exit_code, stdout, stderr, self._timed_out)

    def _open_stream(self, name: str, pipe: IO[bytes] | None) -> None:
        if pipe is None:
            return
        os.set_blocking(pipe.fileno(), False)
        self._streams[pipe.fileno()] = name
        self._poller.register(pipe.fileno(), select.POLLIN)

    def _poll(self) -> bool:
        """Wait for something to happen and take it; True when the leader has ended."""
        ended = False
        for descriptor, _ in self._poller.poll(self._wait_ms()):
            if descriptor == self._leader:
                ended = True
            elif descriptor == self._group.wake:
                os.eventfd_read(self._group.wake)
            else:
                self._read(descriptor)
        return ended

    def _wait_ms(self) -> int:
        now_ms = _now_ms()
        moments = [self._step[0][0] if self._step else self._deadline_ms]
        due_ms = self._live.due_ms(now_ms)
        if due_ms is not None:
            moments.append(now_ms + due_ms)
        return max(0, min(moments) - now_ms)

    def _pursue(self, now_ms: int) -> bool:
        """End a command that was cancelled or is too late, step by step; False when no step is left."""
        if not self._step:
            if self._scope.reason is None and now_ms < self._deadline_ms:
                return True
            self._timed_out = self._scope.reason is None
            self._group.signal(signal.SIGTERM)
            self._step = [(now_ms + self._grace_ms, signal.SIGKILL), (now_ms + 2 * self._grace_ms, None)]
        while self._step and now_ms >= self._step[0][0]:
            number = self._step.pop(0)[1]
            if number is not None:
                self._group.signal(number)
        return bool(self._step)

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, limits.PROCESS_READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._poller.unregister(descriptor)
            del self._streams[descriptor]
            return
        name = self._streams[descriptor]
        self._captures[name].feed(chunk)
        self._live.feed(name, chunk)

    def _drain(self) -> None:
        """Read what is still in the pipes. A process in the background may hold them open: it is hardly waited for.

        After a SIGTERM the rest of the group has its grace to end in; that its pipes are closed tells that it has.
        """
        self._poller.unregister(self._leader)
        self._poller.unregister(self._group.wake)
        now_ms = _now_ms()
        end_ms = self._step[0][0] if self._step else now_ms + limits.PROCESS_DRAIN_MS
        quiet_ms = self._grace_ms if self._step else limits.PROCESS_QUIET_MS
        while self._streams and now_ms < end_ms:
            ready = self._poller.poll(min(quiet_ms, end_ms - now_ms))
            if not ready:
                return
            for descriptor, _ in ready:
                self._read(descriptor)
            now_ms = _now_ms()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
