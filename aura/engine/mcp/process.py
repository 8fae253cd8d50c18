"""How a stdio server is started: in a process group of its own, guarded, with its last words kept for the log.

The SDK spawns the process and speaks with it. This module gives it a command line that first tells the group's number
to the guard, so that the whole group ends when this process does, however it dies. The end of standard input alone is
not enough: a server may be busy, or hidden behind a wrapper that does not pass it on. io thread only.
"""

from __future__ import annotations

import os
import shutil
import signal
from asyncio import AbstractEventLoop
from collections.abc import Mapping

from aura import limits
from aura.config.spec import StdioTarget
from aura.engine.executors import groups
from aura.engine.mcp.failure import McpFailure

# Tells its group's number on standard error, to us, and on the guard's pipe, which it opens through its parent because
# the SDK hands no other descriptors down; then it becomes the server. If the parent is gone, it does not start.
_LAUNCH = 'echo "$$" >&2 && echo "$$" >"/proc/$PPID/fd/$1" && shift && exec "$@"'


class ServerProcess:
    """One server's process group, from before it is started until after it has ended."""

    def __init__(self, target: StdioTarget, environment: Mapping[str, str], loop: AbstractEventLoop) -> None:
        """Prepare the start. Raises `McpFailure` when there is no such program or nothing can be started."""
        self._loop = loop
        self.environment = {**environment, **{name: value.reveal() for name, value in target.env}}
        command = target.command.reveal()
        if shutil.which(command, path=self.environment.get("PATH", os.defpath)) is None:
            raise McpFailure("its command is not an executable program")
        try:
            self._guard = groups.Guard(limits.KILL_GRACE_MS)
            self._read_end, write_end = os.pipe()
        except OSError as error:
            raise McpFailure(f"no process can be started: {error.strerror}") from error
        arguments = (value.reveal() for value in target.args)
        self.argv = ["/bin/sh", "-c", _LAUNCH, "aura-mcp", str(self._guard.launch_stdin), command, *arguments]
        self.stderr = os.fdopen(write_end, "w")
        os.set_blocking(self._read_end, False)
        self._said = b""
        self._group: int | None = None
        loop.add_reader(self._read_end, self._read)

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to standard error."""
        return self._said.decode("utf-8", "replace").strip()

    def started(self) -> None:
        """Give up our end of the server's standard error, so that its end can be seen."""
        self.stderr.close()

    def close(self) -> None:
        """End what is left of the group, then the guard. Afterwards nothing that the server started is left in it."""
        self.stderr.close()
        if self._read_end >= 0:
            self._read()
        if self._read_end >= 0:
            self._stop_reading()
        if self._group is not None:
            groups.send(self._group, signal.SIGKILL)
        self._guard.close()

    def _read(self) -> None:
        try:
            chunk = os.read(self._read_end, limits.PROCESS_READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._stop_reading()
            return
        self._said += chunk
        if self._group is None:
            number, newline, rest = self._said.partition(b"\n")
            if newline and number.isdigit():
                self._group, self._said = int(number), rest
        self._said = self._said[-limits.MCP_STDERR_BYTES :]

    def _stop_reading(self) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        self._read_end = -1
