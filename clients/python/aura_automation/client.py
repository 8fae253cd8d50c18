"""The client of one live session: a method for each route of the contract, and `wait` and `events` on top of
them.

It builds requests and loads answers. Connections are in `_http`, trying again in `_retry`, waiting in
`_wait`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from marshmallow import Schema

from aura_automation import _schemas
from aura_automation._decode import load
from aura_automation._endpoint import Endpoint
from aura_automation._event_schemas import JournalPageSchema
from aura_automation._http import Frame, Http, Transport
from aura_automation._limits import (
    CALL_RETRY_S,
    HEARTBEAT_S,
    JOURNAL_LIMIT,
    JOURNAL_LIMIT_MAX,
    JOURNAL_WAIT_MAX_S,
    RECONNECT_S,
    WAIT_POLL_S,
)
from aura_automation._retry import Backoff, Timing, is_passing, is_undelivered, retry
from aura_automation._stream import follow
from aura_automation._wait import RunWait
from aura_automation.codes import BadRequest, NotFound
from aura_automation.errors import AutomationError, Json
from aura_automation.models import (
    Action,
    Event,
    JournalPage,
    MessagePage,
    OnInput,
    Run,
    ServerInfo,
    SessionInfo,
    TransientEvent,
)

T = TypeVar("T")

_SERVER = _schemas.ServerInfoSchema()
_SESSION = _schemas.SessionInfoSchema()
_MESSAGES = _schemas.MessagePageSchema()
_THINKING_MESSAGES = _schemas.ThinkingMessagePageSchema()
_RUN = _schemas.RunSchema()
_JOURNAL = JournalPageSchema()
_NOTHING = _schemas.NothingSchema()


class Client:
    """Talks to one `aura serve`. Use it as a context manager, or call `close`. Any thread may call any
    method.

    Every method raises `Unauthorized` for a wrong token, `ContractDrift` when an answer does not fit the
    contract, `Overloaded`, `StoreUnavailable` or `Internal` when the server says so, and `NetworkError` when
    there is no answer.

    A call that may be repeated without harm is repeated after a lost connection, or after a 503 that says
    when to come again, with growing pauses, for at most `retry_s` seconds (10 unless given; 0: never).
    `submit` is such a call: its request id makes it so. `answer` and `decide` are repeated only when they
    certainly did not arrive, and `shutdown` never.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        ready_file: Path | None = None,
        session_id: str | None = None,
        retry_s: float = CALL_RETRY_S,
        transport: Transport | None = None,
        timing: Timing | None = None,
    ) -> None:
        """Prepare for the server at `url`; nothing is sent yet.

        With `ready_file` and `session_id` the client follows that session to a restarted server's new port.
        `transport` and `timing` are for tests. Raises `BadRequest` for a bad URL, `Unauthorized` for an
        unusable token.
        """
        endpoint = Endpoint(url, ready_file=ready_file, session_id=session_id)
        self._http = Http(endpoint, token, transport=transport)
        self._retry_s = retry_s
        self._timing = timing or Timing()

    def __repr__(self) -> str:
        return f"Client({self._http!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The server and its run go on."""
        self._http.close()

    def server(self) -> ServerInfo:
        """Return what the server process says of itself."""
        return self._get(_SERVER, ServerInfo, "/v1/server")

    def session(self) -> SessionInfo:
        """Return the stored summary and the live state of the session."""
        return self._get(_SESSION, SessionInfo, "/v1/session")

    def messages(self, after: int = -1, *, thinking: bool = False) -> MessagePage:
        """Return the stored messages after index `after` (-1: all), with their thinking if asked.

        Raises `BadRequest` for an `after` below -1.
        """
        params = {"after": str(after), "thinking": _switch(thinking)}
        schema = _THINKING_MESSAGES if thinking else _MESSAGES
        return self._get(schema, MessagePage, "/v1/session/messages", params)

    def submit(
        self,
        request_id: str,
        *,
        prompt: str | None = None,
        command: str | None = None,
        on_input: OnInput = "block",
    ) -> Run:
        """Submit a prompt or a slash command, and return its run: a new one, or the present record of an
        earlier submit.

        `request_id` (1 to 256 printable characters) makes it idempotent for the session's whole life: repeat
        the call with the same arguments as often as you like, also after a restart. Exactly one of `prompt`
        and `command` is given, at most 1 MiB. With `on_input="wait"` questions wait for `answer` or `decide`;
        with `"block"` they end the run as blocked.

        Raises `BadRequest`, `Busy` (another run has not settled), `RequestConflict` (the id was used for
        something else), `ShuttingDown`.
        """
        if (prompt is None) == (command is None):
            raise BadRequest("give exactly one of prompt and command")
        body: dict[str, Json] = {"request_id": request_id, "on_input": on_input}
        body |= {"prompt": prompt} if command is None else {"command": command}
        send = partial(self._http.request, "POST", "/v1/runs", body=body, expect=(200, 202))
        return load(_RUN, Run, self._again(send), "POST /v1/runs")

    def run(self, run_id: str) -> Run:
        """Return the record of a run. Raises `NotFound`."""
        return self._get(_RUN, Run, f"/v1/runs/{_segment(run_id)}")

    def find_run(self, request_id: str) -> Run | None:
        """Return the record of the run that was submitted with `request_id`, or None. Raises `BadRequest`."""
        try:
            return self._get(_RUN, Run, "/v1/runs", {"request_id": request_id})
        except NotFound:
            return None

    def cancel(self, run_id: str) -> Run:
        """Ask for the run to be cancelled and return its record. It is a request: the terminal record
        decides.

        A settled run comes back unchanged. Raises `NotFound`.
        """
        path = f"/v1/runs/{_segment(run_id)}/cancel"
        send = partial(self._http.request, "POST", path, expect=(200, 202))
        return load(_RUN, Run, self._again(send), f"POST {path}")

    def answer(self, run_id: str, input_id: str, *, answer: str) -> None:
        """Answer a question (`input.required` of kind ask): free text, an option's label, or its 1-based
        number.

        Raises `NotFound`, `NotPending` (answered already, or the run has settled), `BadRequest`. After a
        `NetworkError` the answer may have arrived: `input.resolved` in the journal tells.
        """
        self._resolve(run_id, input_id, {"answer": answer})

    def decide(self, run_id: str, input_id: str, *, action: Action) -> None:
        """Decide an approval (`input.required` of kind confirm): `allow`, `allow_session` or `deny`.

        Raises like `answer`.
        """
        self._resolve(run_id, input_id, {"action": action})

    def journal(self, after: int = 0, *, limit: int = JOURNAL_LIMIT, wait_s: int = 0) -> JournalPage:
        """Return up to `limit` (1 to 5000) events after seq `after`; if there are none, wait `wait_s` (0 to
        60) for one.

        Raises `CursorOutOfRange` for an `after` below 0 or beyond the journal, `BadRequest` for the other
        bounds.
        """
        return self._again(partial(self._journal_page, after, wait_s, limit=limit))

    def events(
        self,
        after: int = 0,
        *,
        transient: bool = False,
        thinking: bool = False,
        heartbeat: int = HEARTBEAT_S,
        reconnect_s: float = RECONNECT_S,
    ) -> Iterator[Event | TransientEvent]:
        """Iterate over the events after seq `after` as they come, each durable one exactly once and in order.

        With `transient` also over live `TransientEvent`s (`delta.thinking` only with `thinking`), which may
        be dropped. Heartbeats, which the server sends every `heartbeat` (1 to 60) seconds of silence, are not
        shown. The iterator never ends by itself: leave the loop, or close it. It reconnects from the last
        durable event, also to a restarted server; an outage of more than `reconnect_s` seconds raises
        `NetworkError`. Also raises `CursorOutOfRange`, `BadRequest`. Nothing is sent before the first `next`.
        """
        backoff = Backoff(reconnect_s, self._timing.now, self._timing.sleep)
        switches = {
            "transient": _switch(transient),
            "thinking": _switch(thinking),
            "heartbeat": str(heartbeat),
        }

        def connect(cursor: int) -> AbstractContextManager[Iterator[Frame]]:
            params = {"after": str(cursor), **switches}
            return self._http.stream("/v1/events", params=params, silence_s=heartbeat)

        return follow(connect, after, backoff)

    def wait(
        self,
        run_id: str,
        *,
        on_event: Callable[[Event], None] | None = None,
        stop: Callable[[], bool] | None = None,
        poll_s: int = WAIT_POLL_S,
        after: int | None = None,
        reconnect_s: float = RECONNECT_S,
    ) -> Run:
        """Wait until the run is terminal and return its record.

        `on_event` is called in this thread, exactly once for every durable event of the session, in order:
        from the run's own `run.accepted`, or from the one after seq `after`, up to and including the run's
        terminal event. To mirror a whole session without a hole, store each event's seq and pass the last one
        as `after`. What `on_event` raises ends the wait.

        `stop` is asked before every event and at least every `poll_s` seconds (a whole number from 1 to 60),
        also while the server is away; once it is true, `StopRequested` is raised and the run goes on. Only a
        server that is alive but silent can delay that, by at most 10 s.

        Lost connections and server restarts are bridged: an outage of more than `reconnect_s` seconds raises
        `NetworkError`. A run whose server was killed comes back `lost` once a new server has the session.
        Also raises `NotFound`, `CursorOutOfRange`, `BadRequest`.
        """
        if not 1 <= poll_s <= JOURNAL_WAIT_MAX_S:
            raise BadRequest(
                f"poll_s is {poll_s}", hint=f"use a whole number of seconds from 1 to {JOURNAL_WAIT_MAX_S}"
            )
        waiting = RunWait(
            run_id=run_id,
            fetch_run=partial(self._run_once, run_id),
            fetch_page=self._journal_page,
            on_event=on_event,
            stop=stop,
            poll_s=poll_s,
            reconnect_s=reconnect_s,
            timing=self._timing,
        )
        return waiting.follow(after)

    def shutdown(self) -> None:
        """Ask the server to stop: no new runs, the active one is cancelled and saved, then the process exits.

        It is not repeated: `NetworkError` may mean that the server is gone already.
        """
        document = self._http.request("POST", "/v1/shutdown", expect=(202,))
        load(_NOTHING, dict, document, "POST /v1/shutdown")

    # --- one request, and its repetition --------------------------------------------------------------------

    def _get(self, schema: Schema, kind: type[T], path: str, params: dict[str, str] | None = None) -> T:
        document = self._again(partial(self._http.request, "GET", path, params=params))
        return load(schema, kind, document, f"GET {path}")

    def _run_once(self, run_id: str) -> Run:
        path = f"/v1/runs/{_segment(run_id)}"
        return load(_RUN, Run, self._http.request("GET", path), f"GET {path}")

    def _journal_page(self, after: int, wait_s: int, *, limit: int = JOURNAL_LIMIT) -> JournalPage:
        if not 1 <= limit <= JOURNAL_LIMIT_MAX or not 0 <= wait_s <= JOURNAL_WAIT_MAX_S:
            raise BadRequest("limit is 1 to 5000, wait_s 0 to 60")
        params = {"after": str(after), "limit": str(limit), "wait": str(wait_s)}
        document = self._http.request("GET", "/v1/journal", params=params, wait_s=wait_s)
        return load(_JOURNAL, JournalPage, document, "GET /v1/journal")

    def _resolve(self, run_id: str, input_id: str, body: dict[str, Json]) -> None:
        path = f"/v1/runs/{_segment(run_id)}/inputs/{_segment(input_id)}"
        document = self._again(partial(self._http.request, "POST", path, body=body), is_undelivered)
        load(_NOTHING, dict, document, f"POST {path}")

    def _again(self, attempt: Callable[[], T], may_repeat: Callable[[AutomationError], bool] = is_passing) -> T:
        return retry(attempt, Backoff(self._retry_s, self._timing.now, self._timing.sleep), may_repeat)


def _segment(text: str) -> str:
    if not text:
        raise BadRequest("the id is empty")
    return quote(text, safe="")


def _switch(on: bool) -> str:
    return "true" if on else "false"
