"""Looking at and ending a server process. Only a process that this one started is ever signalled."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from aura_automation._limits import KILL_GRACE_S, STOP_POLL_S, TERM_GRACE_S


def end(process: subprocess.Popen[bytes], *, term_grace_s: float = TERM_GRACE_S) -> int:
    """End our child: SIGTERM, then SIGKILL after `term_grace_s`. Returns its exit status; it is reaped.

    The process itself is signalled, not its group: MCP servers in the group must outlive the settling run.
    Raises `subprocess.TimeoutExpired` if the kernel does not end it within 5 s of SIGKILL.
    """
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        return process.wait(term_grace_s)
    process.kill()
    return process.wait(KILL_GRACE_S)


class Watch:
    """Tells whether a process that is not our child still runs, without being fooled by a reused pid."""

    def __init__(self, pid: int) -> None:
        """Look at `pid` from now on. A pid that this machine does not have, or hides, counts as gone."""
        self._fd: int | None = None
        with suppress(OSError):
            self._fd = os.pidfd_open(pid)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Stop looking; the process counts as gone from now on."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def is_running(self) -> bool:
        """Tell whether the process runs. A process that ended but was not reaped by its parent does not."""
        if self._fd is None:
            return False
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        return not poller.poll(0)


def wait_until(done: Callable[[], bool], timeout_s: float) -> bool:
    """Return True once `done` is, False if it is not within `timeout_s`."""
    end_s = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() >= end_s:
            return False
        time.sleep(STOP_POLL_S)
    return True
