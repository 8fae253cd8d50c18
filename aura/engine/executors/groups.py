"""Process groups: how one is named safely, guarded against the death of this process, and ended after a crash.

A group is known by its leader's pid and start time, so that a pid that was given to somebody else is never signalled.
"""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aura import limits

# Reads the group's number, then waits for the end of a pipe whose only write end belongs to the server: `read` ends
# when the server does, however it dies.
_GUARD = 'read -r group || exit; read -r _; kill -s TERM -- "-$group"; sleep "$1"; kill -s KILL -- "-$group"'

# Tells the guard which group to end before the command can start anything, then forgets the pipe and becomes the
# command.
_LAUNCH = 'echo "$$" >&0 && exec "$@" </dev/null'


class Guard:
    """A tiny process that ends a group when this process dies without having done so.

    It is a child of this process, outside the group: nothing of the command sees it, waits for it or can signal it by
    signalling its own group, and it is reaped here even where nobody reaps orphans. Owner's thread only.
    """

    def __init__(self, kill_grace_ms: int) -> None:
        """Start the guard. Raises `OSError`."""
        grace_s = math.ceil(kill_grace_ms / 1000)
        read_end, self.launch_stdin = os.pipe()
        try:
            self._process = subprocess.Popen(
                ("/bin/sh", "-c", _GUARD, "aura-guard", str(grace_s)),
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        except BaseException:
            os.close(self.launch_stdin)
            raise
        finally:
            os.close(read_end)

    def close(self) -> None:
        """End the guard. The group must be dead, and its leader not yet reaped: the guard knows it by number only."""
        self._process.kill()
        self._process.wait()
        os.close(self.launch_stdin)


def guarded(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line that becomes `argv` in the same process once the guard knows it.

    It must be started as the leader of a new session, with `Guard.launch_stdin` as its standard input; the command
    itself then reads /dev/null.
    """
    return ("/bin/sh", "-c", _LAUNCH, "aura-launch", *argv)


def find_start_time(pid: int) -> str | None:
    """Return when `pid` started, as the kernel counts it (field 22 of /proc/<pid>/stat), or None if it is not there.

    Together with the pid it names one process for as long as the machine is up.
    """
    fields = _find_stat(pid)
    return fields[19] if fields else None


def end_group(pid: int, start_time: str, kill_grace_ms: int = limits.KILL_GRACE_MS) -> bool:
    """End the group led by `pid` if that is still the process that started at `start_time`; tell whether it was.

    The group gets SIGTERM and, when its leader has ended or `kill_grace_ms` are over, SIGKILL. Blocks for that long:
    not to be called on the hub. A leader that is gone leaves its group to the guard.
    """
    try:
        leader = os.pidfd_open(pid)
    except (OSError, OverflowError, ValueError):
        return False
    try:
        fields = _find_stat(pid)
        if fields is None or fields[19] != start_time or fields[2] != str(pid) or pid == os.getpgrp():
            return False
        send(pid, signal.SIGTERM)
        poller = select.poll()
        poller.register(leader, select.POLLIN)
        poller.poll(kill_grace_ms)
        send(pid, signal.SIGKILL)
        return True
    finally:
        os.close(leader)


def send(group: int, number: signal.Signals) -> None:
    """Signal a group. One that is gone, or all of whose processes belong to somebody else by now, is left alone."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def _find_stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/<pid>/stat from the third one on; the name before them may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
