"""The operator's plain-text transcript of a session (contract.md, root flag --output): with thinking, unlike the
journal.

It is a reader of the session's feed on a thread of its own, and never holds the session up. The file is truncated at
start.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path
from typing import TextIO, cast

from aura import limits
from aura.errors import AuraError, BadRequest
from aura.events import Delta, Transient
from aura.jsontypes import JsonObject
from aura.runtime.feeds import Feed
from aura.runtime.service import Service
from aura.runtime.signals import ThreadSignal
from aura.wire import canonical


class Transcript:
    """Writes what happens from now on to a file, until `close`. Make it before the first run."""

    def __init__(self, service: Service, path: Path) -> None:
        """Open the file, with mode 0600. Raises `BadRequest` when it cannot be written."""
        try:
            self._file: TextIO = open(  # noqa: SIM115 closed by close()
                path, "w", encoding="utf-8", errors="replace", opener=_private
            )
        except OSError as error:
            raise BadRequest(f"--output {path} cannot be written: {error.strerror}") from error
        self._service = service
        self._feed: Feed = service.open_feed()
        self._after = self._feed.head
        self._signal = ThreadSignal()  # the feed's own may be the hub's, and this is another thread
        self._closing = threading.Event()
        self._thinking = ""
        self._thread = threading.Thread(target=self._run, name="aura-transcript", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what is committed, then end. Returns when the file is closed."""
        self._closing.set()
        self._signal.ring()
        self._thread.join()
        self._service.release_feed(self._feed)
        self._file.close()

    def _run(self) -> None:
        with self._feed.transients() as live, self._feed.ringing(self._signal):
            while True:
                seen = self._signal.generation
                closing = self._closing.is_set()
                try:
                    wrote = self._write_new(live)
                except (OSError, AuraError) as error:  # a full disk must not stop the session that is described
                    self._service.log.warning("transcript", f"the transcript ends here: {error}")
                    return
                if closing and not wrote:
                    return
                if not wrote:
                    self._signal.wait(seen, limits.FOLLOW_TICK_MS)

    def _write_new(self, live: deque[Transient]) -> bool:
        self._collect_thinking(live)
        rows = self._feed.peek(self._after)
        if rows is None:
            rows = tuple(self._service.read_journal(self._after, limits.PAGE_ROWS)[0])
        for row in rows:
            self._after = row.seq
            event = canonical.decode(row.line)
            assert isinstance(event, dict), "an event is an object"
            self._write_event(row.type, cast(JsonObject, event["data"]))
        self._file.flush()
        return bool(rows)

    def _collect_thinking(self, live: deque[Transient]) -> None:
        while live:
            item = live.popleft()
            if isinstance(item, Delta) and item.thinking:
                self._thinking += item.text

    def _write_event(self, type: str, data: JsonObject) -> None:
        match type:
            case "message.user":
                self._paragraph("user", str(data["content"]))
            case "message.assistant":
                if self._thinking:
                    self._paragraph("thinking", self._thinking)
                    self._thinking = ""
                self._paragraph("assistant", str(data["content"]))
            case "tool.started":
                self._paragraph(f"call {data['name']}", canonical.encode(data["args"]).decode())
            case "tool.finished":
                self._paragraph(f"{data['status']} {data['name']}", str(data["result"]))
            case "notice":
                self._paragraph(str(data["level"]), f"{data['source']}: {data['message']}")
            case "run.finished":
                run = cast(JsonObject, data["run"])
                self._paragraph("run", f"{run['id']}: {run['outcome']}")

    def _paragraph(self, title: str, text: str) -> None:
        if text:
            self._file.write(f"--- {title}\n{text.rstrip()}\n\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
