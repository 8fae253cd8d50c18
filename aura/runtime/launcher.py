"""The launcher's hold on a server: a pipe that releases it with one byte, or stops it by ending (contract.md,
--launcher-fd).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from aura.errors import BadRequest, LauncherLost


class Launcher:
    """Watches the read end of the launcher's pipe on a thread of its own, until a byte or the end comes."""

    def __init__(self, fd: int) -> None:
        try:
            os.set_inheritable(fd, False)
        except OSError as error:
            raise BadRequest(f"--launcher-fd {fd} is not open", hint="Pass an inherited read end of a pipe.") from error
        self._fd = fd
        self._lock = threading.Lock()
        self._lost = False
        self._on_lost: Callable[[], object] | None = None
        threading.Thread(target=self._watch, name="aura-launcher", daemon=True).start()

    def check(self) -> None:
        """Raise `LauncherLost` if the launcher has died before it released this server."""
        if self._lost:
            raise LauncherLost("the launcher died before it released the server")

    def call_when_lost(self, callback: Callable[[], object]) -> None:
        """Call `callback` once if the launcher dies unreleased, at once if it has. It must not block."""
        with self._lock:
            self._on_lost = callback
            lost = self._lost
        if lost:
            callback()

    def _watch(self) -> None:
        try:
            released = os.read(self._fd, 1) != b""
        except OSError:
            released = False
        os.close(self._fd)
        if released:
            return
        with self._lock:
            self._lost = True
            callback = self._on_lost
        if callback is not None:
            callback()
