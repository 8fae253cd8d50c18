"""All that api and cli see of a served session: reads, requests, live feeds, and the way down (DESIGN.md section 1).

Methods block: native threads only, never a hub; the waiter of the api takes them there. Reads come from the store,
whoever wrote it; requests go to it, and the host reacts to what is committed.
"""

from __future__ import annotations

import os
import threading
from typing import Literal

from aura import API_VERSION, __version__, limits
from aura.clock import Clock, format_time
from aura.errors import AuraError, BadRequest, NotFound
from aura.events import StopReason
from aura.ids import new_run_id
from aura.jsontypes import JsonValue
from aura.runs import NewRun, OnInput, Run, RunKind
from aura.runtime.answers import read_answer
from aura.runtime.feeds import Feed, Feeds
from aura.runtime.host import Host
from aura.runtime.log import Log
from aura.runtime.place import Place
from aura.store.journals import JournalPage
from aura.store.protocol import Accepted, EventRow, RunFilter, Store
from aura.wire import canonical, document
from aura.wire.automation import message_fields, request_digest, run_fields, status_fields
from aura.wire.summaries import summary_fields


class Service:
    """One served session. Any native thread; see each method for what it raises."""

    def __init__(self, store: Store, host: Host, feeds: Feeds, place: Place, clock: Clock, log: Log) -> None:
        self._store = store
        self._host = host
        self._feeds = feeds
        self._place = place
        self._clock = clock
        self.log = log
        self._stop_reason: StopReason | None = None
        self._stop_lock = threading.Lock()
        self._saved = False
        self._stopped = threading.Event()

    @property
    def session_id(self) -> str:
        """The session that is served."""
        return self._host.session_id

    # --- reads --------------------------------------------------------------------------------------------------

    def read_server(self) -> dict[str, JsonValue]:
        """Return the ServerInfo of `GET /v1/server` (interfaces.md section 7)."""
        place = self._place
        return {
            "api": API_VERSION,
            "aura_version": __version__,
            "commit": place.commit,
            "pid": os.getpid(),
            "session_id": self.session_id,
            "workdir": str(place.workdir),
            "write_home": str(place.write_home),
            "url": place.url,
            "started_at": format_time(place.started_at_ms),
            "state": "stopping" if self._host.stopping else "ready",
            "last_seq": self._store.read_last_seq(self.session_id),
        }

    def read_session(self) -> dict[str, JsonValue]:
        """Return the SessionInfo of `GET /v1/session` (interfaces.md section 7)."""
        live = self._host.live
        runs = self._store.list_runs(RunFilter(self.session_id, live=True)).items
        return {
            "session": summary_fields(self._store.get_session(self.session_id)),
            "persisted_seq": self._store.read_persisted_seq(self.session_id),
            "status": status_fields(live.status),
            "meta": live.meta,
            "run": run_fields(runs[0]) if runs else None,
        }

    def read_messages(self, after: int, *, thinking: bool) -> dict[str, JsonValue]:
        """Return `GET /v1/session/messages`: the stored non-system messages after index `after`, -1 for all."""
        stored, total = self._store.read_messages(self.session_id, after, None)
        messages: list[JsonValue] = [
            message_fields(document.decode_message(body), index, thinking=thinking) for index, body in stored
        ]
        return {"messages": messages, "total": total}

    def get_run(self, run_id: str) -> Run:
        """Return a run of this session. Raises `NotFound`."""
        run = self._store.get_run(run_id)
        if run.session_id != self.session_id:
            raise NotFound(f"there is no run {run_id} in this session")
        return run

    def get_run_by_request(self, request_id: str) -> Run:
        """Return the run that a request id made. Raises `NotFound`."""
        run = self._store.find_request(self.session_id, request_id)
        if run is None:
            raise NotFound(f"no run was made by request {request_id!r}")
        return run

    def read_journal(self, after: int, limit: int) -> tuple[list[EventRow], int]:
        """Return (events after `after`, the last committed seq). Raises `CursorOutOfRange`."""
        rows = self._store.read_events(self.session_id, after, limit)
        return rows, max(self._store.read_last_seq(self.session_id), rows[-1].seq if rows else 0)

    def read_journal_page(self, after: int, limit: int) -> tuple[JournalPage, int]:
        """Return (events after `after` joined by commas, the last committed seq). Raises `CursorOutOfRange`."""
        page = self._store.read_journal_page(self.session_id, after, limit)
        return page, max(self._store.read_last_seq(self.session_id), page.last_seq)

    # --- requests -----------------------------------------------------------------------------------------------

    def submit(self, request_id: str, kind: RunKind, text: str, on_input: OnInput) -> Accepted:
        """Make a run, or find the one that `request_id` made (contract.md, Idempotency).

        Raises `BadRequest`, `Busy`, `RequestConflict`, `ShuttingDown` and store errors.
        """
        text = canonical.clean(text)
        if kind == "command":
            self._host.check_command(text)
        if not text:
            raise BadRequest("the prompt is empty")
        now_ms = self._clock.now_ms()
        digest = request_digest(kind, on_input, text)
        return self._host.accept(NewRun(new_run_id(now_ms), request_id, kind, text, on_input, digest, now_ms))

    def cancel_run(self, run_id: str) -> Run:
        """Ask for a run's cancellation; a settled run is returned unchanged. Raises `NotFound`."""
        self.get_run(run_id)
        return self._store.request_cancel(run_id, reason="request", message=None, at_ms=self._clock.now_ms())

    def answer_input(self, run_id: str, input_id: str, *, answer: str | None, action: str | None) -> None:
        """Answer a question or decide an approval. Raises `NotFound`, `NotPending`, `BadRequest`."""
        self.get_run(run_id)
        pending = self._store.get_input(input_id)
        if pending.run_id != run_id:
            raise NotFound(f"there is no input {input_id} in run {run_id}")
        value = read_answer(pending, answer, action)
        self._store.answer(input_id, value, answered_by="api", at_ms=self._clock.now_ms())

    # --- live readers -------------------------------------------------------------------------------------------

    def open_feed(self) -> Feed:
        """Return the session's live feed, counting one more reader. Raises `NotFound`."""
        return self._feeds.open(self.session_id)

    def release_feed(self, feed: Feed) -> None:
        """Count one reader less."""
        self._feeds.release(feed)

    # --- the way down -------------------------------------------------------------------------------------------

    def stop(self, reason: StopReason) -> None:
        """Start the way down: refuse new runs at once, settle the live one in the background. The first reason
        counts.
        """
        with self._stop_lock:
            if self._stop_reason is not None:
                return
            self._stop_reason = reason
        self._host.stop_accepting()
        threading.Thread(target=self._close_host, args=(reason,), name="aura-stop", daemon=True).start()

    def wait_stopped(self, timeout_ms: int | None = None) -> bool:
        """Return True once the host has let the session go or has given up, False after `timeout_ms`."""
        return self._stopped.wait(None if timeout_ms is None else timeout_ms / 1000)

    @property
    def saved(self) -> bool:
        """True once the host is closed and everything it should have saved is saved."""
        return self._saved

    def _close_host(self, reason: StopReason) -> None:
        try:
            self._saved = self._host.close(reason)
        except AuraError as error:
            self.log.warning("service", f"the session was not closed well: {error.message}")
        finally:
            self._stopped.set()


def check_text(text: str, name: Literal["prompt", "command", "answer"]) -> str:
    """Return `text` if it is at most `limits.TEXT_MAX_BYTES` of UTF-8. Raises `BadRequest` with reason `too_large`."""
    if len(canonical.encode_text(text)) > limits.TEXT_MAX_BYTES:
        raise BadRequest(
            f"the {name} is over {limits.TEXT_MAX_BYTES} bytes",
            hint="Put long material into a file of the workspace.",
            details={"reason": "too_large"},
        )
    return text
