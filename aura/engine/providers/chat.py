"""The chat completions protocol as a `Provider`, for every type but `script`.

This is the run thread's side: it encodes the request, waits under the scope and hands deltas on. The connection is
the io thread's (`transport`), which is imported here at the first call, because the SDK takes half a second.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from aura.clock import Clock
from aura.engine.io import IoThread
from aura.engine.providers.base import OnDelta, ProviderError, Reply, Request
from aura.engine.providers.chat_request import encode_request
from aura.engine.providers.classify import unexpected
from aura.engine.providers.completion import Completion, parse_document
from aura.engine.providers.deltas import DeltaChannel
from aura.engine.providers.endpoint import Endpoint
from aura.engine.scope import Scope
from aura.jsontypes import JsonObject

if TYPE_CHECKING:
    from aura.engine.providers.transport import Transport


class ChatProvider:
    """A model server. Any thread but the io thread may call it; its connections are closed with the io thread."""

    def __init__(self, endpoint: Endpoint, io: IoThread, clock: Clock) -> None:
        self._endpoint = endpoint
        self._io = io
        self._clock = clock
        self._lock = threading.Lock()
        self._made: Transport | None = None
        self._contexts: dict[str, int] = {}
        self._call_numbers = itertools.count(1)

    @property
    def type(self) -> str:
        """The provider's type, as in its configuration file."""
        return self._endpoint.provider

    def stream(self, request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        """Make one model call; see `Provider.stream`. Deltas that came while `on_delta` was busy are joined."""
        scope.check()
        body = encode_request(request, self._endpoint.dialect)
        channel = DeltaChannel()
        completion = Completion(self.type, channel.put, self._new_call_id)
        job = self._io.submit(self._transport().stream_chat(body, completion))
        return channel.pump(job, scope, on_delta)

    def context_tokens(self, model: str, scope: Scope) -> int:
        """Return the context window of one slot of the server, 0 when it does not say. Kept after the first success.

        Raises `ProviderError`, by the same rules as a model call, and `Cancelled`.
        """
        known = self._contexts.get(model)
        if known is not None:
            return known
        urls = self._endpoint.props_urls(model)
        tokens = _context_of(self._read_props(urls, scope)) if urls else 0
        self._contexts[model] = tokens
        return tokens

    def _read_props(self, urls: list[str], scope: Scope) -> JsonObject:
        for url in urls[:-1]:
            try:
                return self._read_document(url, scope)
            except ProviderError as error:
                if error.status != 404:
                    raise
        return self._read_document(urls[-1], scope)

    def _read_document(self, url: str, scope: Scope) -> JsonObject:
        scope.check()
        status, body = scope.wait(self._io.submit(self._transport().get_document(url)))
        document = parse_document(body)
        if document is None:
            raise unexpected(status, body, self.type)
        return document

    def _transport(self) -> Transport:
        with self._lock:
            if self._made is None:
                from aura.engine.providers.transport import Transport

                self._made = Transport(self._endpoint, self._clock)
                self._io.on_close(self._made.close)
            return self._made

    def _new_call_id(self) -> str:
        return f"call_{next(self._call_numbers)}"


def _context_of(props: JsonObject) -> int:
    settings = props.get("default_generation_settings")
    tokens = settings.get("n_ctx") if isinstance(settings, dict) else None
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else 0
