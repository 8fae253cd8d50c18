"""`POST /v1/chat/completions`: one request, from its body to its stream or its document (gateway.md 2.6, 2.7 and 3).

Nothing is answered before the run has taken its input, so that what is refused is refused with an HTTP status. How a
run is followed is `aura.api.gateway.reader`'s job, what is shown of it `aura.wire.chat`'s.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from flask import Request, Response

from aura import limits
from aura.api.body import read_json
from aura.api.gateway.errors import error_fields, error_frame, failure_fields, failure_response
from aura.api.gateway.places import Place, Places
from aura.api.gateway.reader import CallerGone, ChatReader
from aura.api.gateway.timers import ChatTimers
from aura.api.responses import IS_GONE
from aura.api.waiter import Waiter
from aura.config.spec import AgentSpec
from aura.errors import AuraError, BadRequest, Internal
from aura.runtime.gateway.service import Chat, GatewayService
from aura.wire import canonical
from aura.wire.chat import ChatHead, ChatOptions, ChatProjector, Chunk, Failed, Frame, Named
from aura.wire.chat_frames import DONE, HEARTBEAT, OPENING, Collected, Completion, named_frame
from aura.wire.chat_request import ChatRequest

SESSION_HEADER = "X-Chat-Session-Id"
_WAITRESS_IS_GONE = "waitress.client_disconnected"
_GONE = 499  # nobody sees it, but in a log


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What the server's options say about chats. Times in ms, 0 for none."""

    options: ChatOptions = field(default_factory=ChatOptions)
    first_chunk_ms: int = limits.FIRST_CHUNK_TIMEOUT_MS
    inactivity_ms: int = 0
    buffer_count: int = limits.STREAMING_BUFFER_COUNT
    debug_provider_errors: bool = False


class ChatHandler:
    """Answers chat requests. It has no state of its own."""

    def __init__(self, service: GatewayService, waiter: Waiter, places: Places, settings: ChatSettings) -> None:
        self._service = service
        self._waiter = waiter
        self._places = places
        self._settings = settings

    def post(self, request: Request) -> Response:
        """Return the response. Raises what is wrong with the request, in the order of gateway.md 2.6."""
        from aura.wire.schemas.chat import read_chat_request

        chat_request = read_chat_request(read_json(request))
        spec = self._service.select_agent(chat_request.model)
        offered = _client_tools(chat_request, spec)
        _check_attended(chat_request, spec)
        session_id = _session_id(chat_request, request)
        place = self._places.take()
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            request_id = f"req_{secrets.token_hex(16)}"
            chat = self._waiter.call(self._service.start_chat, offered, spec, request_id, session_id, headers)
        except BaseException:
            place.leave()
            raise
        return _Exchange(self, chat, offered, place, _is_gone_of(request)).respond()


class _Exchange:
    """One request that has a run: from its acceptance until nobody reads any more."""

    def __init__(
        self, handler: ChatHandler, chat: Chat, request: ChatRequest, place: Place, is_gone: Callable[[], bool]
    ) -> None:
        settings, waiter = handler._settings, handler._waiter
        options = settings.options if request.stream else ChatOptions()
        timers = ChatTimers(
            waiter.monotonic_ms(),
            first_chunk_ms=settings.first_chunk_ms if request.stream else 0,
            inactivity_ms=settings.inactivity_ms if request.stream else 0,
        )
        client_tools = frozenset(tool.name for tool in request.tools)
        head = ChatHead(chat.run.session_id, request.max_tokens, client_tools)
        place.signal = chat.feed.signal
        self._service = handler._service
        self._waiter = waiter
        self._settings = settings
        self._chat = chat
        self._request = request
        self._place = place
        self._projector = ChatProjector(head, options)
        self._collected = Collected(client_tools)
        reader = ChatReader(handler._service, waiter, chat, self._projector, timers, handler._places, is_gone)
        self._batches = reader.follow()
        completion_id = f"chatcmpl-{chat.run.id.removeprefix('run_')}"
        self._completion = Completion(completion_id, int(time.time()), model_of(chat.spec))
        self._closed = False

    def respond(self) -> Response:
        """Return the response, once it is known that there is an answer."""
        try:
            response = self._stream() if self._request.stream else self._document()
        except CallerGone:
            response = Response(status=_GONE)
        except BaseException:
            self.close()
            raise
        response.headers[SESSION_HEADER] = self._chat.run.session_id
        response.call_on_close(self.close)
        return response

    def close(self) -> None:
        """Stop watching; a run that is still at work ends then, unless the server is ending anyway."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._projector.ended:
                self._waiter.call(self._service.abandon, self._chat)
        finally:
            self._waiter.call(self._chat.leave)
            self._place.leave()

    # --- the whole answer ---------------------------------------------------------------------------------------

    def _document(self) -> Response:
        for batch in self._batches:
            for frame in batch or ():
                if isinstance(frame, Failed):
                    return failure_response(frame, debug=self._settings.debug_provider_errors)
                if isinstance(frame, Chunk):
                    self._collected.add(frame)
        document = self._completion.document(self._collected, self._chat.run.session_id)
        response = Response(canonical.encode(document), content_type="application/json")
        response.headers["Cache-Control"] = "no-store"
        return response

    # --- the stream ---------------------------------------------------------------------------------------------

    def _stream(self) -> Response:
        first: list[Frame] = []
        while not (self._projector.started or self._projector.ended):
            batch = next(self._batches)
            first.extend(batch if batch is not None else ())
        refused = next((frame for frame in first if isinstance(frame, Failed) and not frame.started), None)
        if refused is not None:
            return failure_response(refused, debug=self._settings.debug_provider_errors)
        response = Response(self._pieces(first), content_type="text/event-stream")
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Accel-Buffering"] = "no"
        return response

    def _pieces(self, first: Sequence[Frame]) -> Iterator[bytes]:
        yield OPENING
        try:
            yield from self._joined(first)
            for batch in self._batches:
                if batch is None:
                    yield HEARTBEAT
                else:
                    yield from self._joined(batch)
            yield DONE
        except CallerGone:
            return
        except AuraError as error:
            self._service.log.warning("chat", f"the stream of {self._chat.run.id} ends early: {error.message}")
            yield error_frame(error_fields(error)) + DONE
        except Exception as error:  # noqa: BLE001 the headers are out: there is no other way to answer
            fault_id = self._service.log.fault("chat", error)
            yield error_frame(error_fields(Internal(f"unexpected fault {fault_id}; the server's log has more"))) + DONE

    def _joined(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        pieces: list[bytes] = []
        size_bytes = 0
        for frame in frames:
            pieces.append(self._encode(frame))
            size_bytes += len(pieces[-1])
            if size_bytes >= limits.STREAM_PIECE_BYTES or len(pieces) >= self._settings.buffer_count:
                yield b"".join(pieces)
                pieces, size_bytes = [], 0
        if pieces:
            yield b"".join(pieces)

    def _encode(self, frame: Frame) -> bytes:
        match frame:
            case Chunk():
                return self._completion.chunk(frame)
            case Named():
                return named_frame(frame)
            case Failed():
                return error_frame(failure_fields(frame, debug=self._settings.debug_provider_errors))


def model_of(spec: AgentSpec) -> str:
    """Return the model as answers name it: `provider/model`."""
    return spec.model.wire_name


def _client_tools(request: ChatRequest, spec: AgentSpec) -> ChatRequest:
    """Return the request with the tools that the agent lets through (gateway.md 3.10); the others are dropped."""
    return replace(request, tools=tuple(tool for tool in request.tools if spec.accepts_client_tool(tool.name)))


def _check_attended(request: ChatRequest, spec: AgentSpec) -> None:
    """Raise `BadRequest` where an approval could come up that nobody would see (gateway.md 2.6)."""
    if spec.hitl is not None and spec.hitl.webhook is None and not request.stream:
        raise BadRequest(
            "this agent asks for approvals in its stream, so the request must have stream: true",
            details={"param": "stream"},
        )


def _session_id(chat_request: ChatRequest, request: Request) -> str:
    """Return the session that a request belongs to (gateway.md 2.6, session id)."""
    named = (
        chat_request.metadata.get("chat_session_id"),
        request.headers.get(SESSION_HEADER),
        request.headers.get("x-openwebui-chat-id"),
    )
    return next((text.strip() for text in named if text and text.strip()), f"cs_{secrets.token_hex(16)}")


def _is_gone_of(request: Request) -> Callable[[], bool]:
    found: Callable[[], bool] | None = request.environ.get(IS_GONE) or request.environ.get(_WAITRESS_IS_GONE)
    return found if found is not None else lambda: False
