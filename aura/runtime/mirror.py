"""Keeps the mirror of a served session current, on a thread of its own: after the start, after each run, at the end.

No run waits for it. A failure is a line in the log and a notice in the journal; the next run tries again. It decides
nothing about the files: that is `mirror_files`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from aura import events as e
from aura import limits
from aura.errors import AuraError
from aura.runtime.log import Log
from aura.runtime.mirror_files import MirrorFiles


class Mirror:
    """The thread. `request` may be called from any thread and never blocks."""

    def __init__(
        self,
        files: MirrorFiles,
        notify: Callable[[e.Notice], object],
        log: Log,
        *,
        close_ms: int = limits.MIRROR_CLOSE_MS,
    ) -> None:
        """Begin with bringing the files up to date: the last server may not have come to it."""
        self._files = files
        self._notify = notify
        self._log = log
        self._close_ms = close_ms
        self._changed = threading.Condition()
        self._requested = True
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="aura-mirror", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Have the files brought up to date soon."""
        with self._changed:
            self._requested = True
            self._changed.notify()

    def close(self) -> None:
        """Bring the files up to date once more and end. The session has been saved for the last time; the store is
        still open."""
        with self._changed:
            self._requested = self._closing = True
            self._changed.notify()
        self._thread.join(self._close_ms / 1000)
        if self._thread.is_alive():
            self._log.warning("mirror", f"the files are not up to date: no end within {self._close_ms} ms")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._requested)
                self._requested, last = False, self._closing
            self._update()
            if last:
                return

    def _update(self) -> None:
        try:
            self._files.update()
        except OSError as error:
            self._report(error.strerror or type(error).__name__)
        except AuraError as error:
            self._report(error.message)
        except Exception as error:  # noqa: BLE001 a fault of ours must neither end the thread nor a run
            self._report(f"unexpected fault {self._log.fault('mirror', error)}; the server's log has more")

    def _report(self, why: str) -> None:
        message = f"{self._files.writing} is not up to date: {why}"
        self._log.warning("mirror", message)
        if not self._closing:
            self._notify(e.Notice(level="warning", origin="mirror", message=message))
