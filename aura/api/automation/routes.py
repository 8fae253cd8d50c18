"""The routes of contract.md's table, in its order. Each reads its request, calls the service off the hub, and encodes.

What a request means is the service's business; how errors look is `aura.api.errors`'. The schemas are imported by the
first request that needs them: they are an eighth of the time that a server takes to start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flask import Blueprint, Response, request

from aura.api.body import read_json
from aura.api.longpoll import read_page
from aura.api.sse import Source, stream
from aura.api.streams import Streams
from aura.api.waiter import Waiter
from aura.jsontypes import JsonValue
from aura.runtime.service import check_text
from aura.wire import automation, canonical

if TYPE_CHECKING:
    from aura.runtime.service import Service


class AutomationRoutes:
    """Handlers of one served session. They run on greenlets or threads, as `waiter` has it."""

    def __init__(self, service: Service, waiter: Waiter, streams: Streams) -> None:
        self._service = service
        self._waiter = waiter
        self._streams = streams

    def blueprint(self) -> Blueprint:
        """Return the routes under `/v1`."""
        table: tuple[tuple[str, str, Callable[..., Response]], ...] = (
            ("GET", "/server", self.get_server),
            ("GET", "/session", self.get_session),
            ("GET", "/session/messages", self.get_messages),
            ("POST", "/runs", self.post_run),
            ("GET", "/runs/<run_id>", self.get_run),
            ("GET", "/runs", self.get_run_by_request),
            ("POST", "/runs/<run_id>/cancel", self.post_cancel),
            ("POST", "/runs/<run_id>/inputs/<input_id>", self.post_input),
            ("GET", "/journal", self.get_journal),
            ("GET", "/events", self.get_events),
            ("POST", "/shutdown", self.post_shutdown),
        )
        blueprint = Blueprint("automation", __name__, url_prefix="/v1")
        for method, path, handler in table:
            blueprint.add_url_rule(path, handler.__name__, handler, methods=[method])
        return blueprint

    def get_server(self) -> Response:
        """`GET /v1/server`."""
        _refuse_query()
        return _json(self._waiter.call(self._service.read_server))

    def get_session(self) -> Response:
        """`GET /v1/session`."""
        _refuse_query()
        return _json(self._waiter.call(self._service.read_session))

    def get_messages(self) -> Response:
        """`GET /v1/session/messages`."""
        from aura.wire.schemas.automation import read_messages_query

        query = read_messages_query(_query())
        return self._waiter.call(lambda: _json(self._service.read_messages(query.after, thinking=query.thinking)))

    def post_run(self) -> Response:
        """`POST /v1/runs`: 202 for a new run, 200 with `Idempotent-Replay` for one that its request id made before."""
        from aura.wire.schemas.automation import read_submission

        _refuse_query()
        new = read_submission(read_json(request))
        text = check_text(new.text, new.kind)
        accepted = self._waiter.call(self._service.submit, new.request_id, new.kind, text, new.on_input)
        response = _json(automation.run_fields(accepted.run), 202 if accepted.created else 200)
        if not accepted.created:
            response.headers["Idempotent-Replay"] = "true"
        return response

    def get_run(self, run_id: str) -> Response:
        """`GET /v1/runs/{id}`."""
        _refuse_query()
        return _json(automation.run_fields(self._waiter.call(self._service.get_run, run_id)))

    def get_run_by_request(self) -> Response:
        """`GET /v1/runs?request_id=`."""
        from aura.wire.schemas.automation import read_request_query

        request_id = read_request_query(_query())
        return _json(automation.run_fields(self._waiter.call(self._service.get_run_by_request, request_id)))

    def post_cancel(self, run_id: str) -> Response:
        """`POST /v1/runs/{id}/cancel`."""
        from aura.wire.schemas.automation import read_empty_body

        _refuse_query()
        read_empty_body(read_json(request))
        return _json(automation.run_fields(self._waiter.call(self._service.cancel_run, run_id)), 202)

    def post_input(self, run_id: str, input_id: str) -> Response:
        """`POST /v1/runs/{id}/inputs/{input_id}`."""
        from aura.wire.schemas.automation import read_input_reply

        _refuse_query()
        reply = read_input_reply(read_json(request))
        if reply.answer is not None:
            check_text(reply.answer, "answer")
        self._waiter.call(self._service.answer_input, run_id, input_id, answer=reply.answer, action=reply.action)
        return _json({})

    def get_journal(self) -> Response:
        """`GET /v1/journal`: events are spliced as they are stored."""
        from aura.wire.schemas.automation import read_journal_query

        query = read_journal_query(_query())
        return _response(read_page(query, self._service, self._waiter, self._streams))

    def get_events(self) -> Response:
        """`GET /v1/events`: a cursor out of range is refused before the first byte of the stream."""
        from aura.wire.schemas.automation import read_events_query

        query = read_events_query(_query(), request.headers.get("Last-Event-ID"))
        self._waiter.call(self._service.read_journal, query.after, 1)
        watch = self._streams.watch()
        source = Source(watch.feed, self._service, self._waiter, self._streams)
        response = Response(stream(source, query), content_type="text/event-stream")
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Accel-Buffering"] = "no"
        response.call_on_close(watch.close)
        return response

    def post_shutdown(self) -> Response:
        """`POST /v1/shutdown`."""
        from aura.wire.schemas.automation import read_empty_body

        _refuse_query()
        read_empty_body(read_json(request))
        self._waiter.call(self._service.stop, "request")
        return _json({}, 202)


def _query() -> list[tuple[str, str]]:
    return list(request.args.items(multi=True))


def _refuse_query() -> None:
    query = _query()
    if not query:
        return
    from aura.wire.schemas.automation import read_empty_query

    read_empty_query(query)


def _json(value: JsonValue, status: int = 200) -> Response:
    return _response(canonical.encode(value), status)


def _response(body: bytes, status: int = 200) -> Response:
    response = Response(body, status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
