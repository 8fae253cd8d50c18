"""HTTP with a chat completions server, on the io thread, through the maintained `openai` SDK.

Importing this module imports asyncio and the SDK (about half a second): `chat` does so at the first model call.
Retries are not made here, and the SDK's own are off. What an error answer means is decided in `classify`, what frames
mean in `completion`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar, cast

import httpx2
import openai

from aura import limits
from aura.clock import Clock
from aura.engine.providers.base import ProviderError, ProviderErrorKind, Reply
from aura.engine.providers.classify import classify, excerpt, unexpected
from aura.engine.providers.completion import Completion
from aura.engine.providers.endpoint import Endpoint
from aura.engine.providers.handshake import watch_handshake
from aura.engine.providers.sse import LineTooLong, SseDecoder

T = TypeVar("T")
_NOT_A_STREAM = ("text/html", "application/json", "application/xhtml+xml")


class Transport:
    """One server's connections. Made on any thread; its coroutines run on the io thread only."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._endpoint = endpoint
        self._clock = clock
        hooks: dict[str, list[Callable[..., Awaitable[None]]]] = {
            "request": [watch_handshake],
            "response": [self._refuse_errors],
        }
        # A connection per call: llama-server closes its side after a stream, and a call sent into that closing fails.
        self._http = openai.DefaultAsyncHttpxClient(
            limits=httpx2.Limits(max_keepalive_connections=0), headers={"Connection": "close"}, event_hooks=hooks
        )
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.token.reveal() if endpoint.token else "none",
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=openai.Timeout(None, connect=limits.PROVIDER_CONNECT_MS / 1000),
            http_client=self._http,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def stream_chat(self, body: bytes, completion: Completion) -> Reply:
        """Send `body` and feed the answer's frames to `completion`. Raises `ProviderError`."""
        try:
            response = await self._within_timeout(self._post(body))
            try:
                await self._read_stream(response, completion)
            finally:
                await response.aclose()
            return completion.finish()
        except ProviderError as error:
            error.streamed = completion.started
            raise

    async def get_document(self, url: str) -> tuple[int, bytes]:
        """Return status and body of a GET. Raises `ProviderError`, for error statuses as in inference."""
        return await self._within_timeout(self._get(url))

    async def _post(self, body: bytes) -> httpx2.Response:
        # The environment's organization and project are for OpenAI's own programs, not for whatever server this is.
        headers = {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit, **self._no_token()}
        response: object = await self._client.post(
            "/chat/completions",
            cast_to=httpx2.Response,
            content=body,
            options={"headers": {**headers, "Accept": "text/event-stream"}},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        return cast(httpx2.Response, response)  # `cast_to` a response: the SDK hands it over unread

    def _no_token(self) -> Mapping[str, openai.Omit]:
        return {} if self._endpoint.token else {"Authorization": openai.omit}

    async def _get(self, url: str) -> tuple[int, bytes]:
        token = self._endpoint.token
        headers = {"Authorization": f"Bearer {token.reveal()}"} if token else {}
        async with self._http.stream("GET", url, headers=headers, timeout=self._client.timeout) as response:
            body = bytearray()
            await _read_into(body, response.aiter_bytes(), limits.PROVIDER_BODY_BYTES)
            return response.status_code, self._without_token(bytes(body))

    async def _within_timeout(self, work: Awaitable[T]) -> T:
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(endpoint.timeout_ms / 1000):
                return await work
        except TimeoutError:
            raise self._network(f"no answer from {endpoint.origin} within {endpoint.timeout_ms} ms") from None
        except openai.APITimeoutError as error:
            raise self._network(f"cannot reach {endpoint.origin}: {_reason(error)}") from None
        except (openai.APIConnectionError, httpx2.RequestError) as error:
            raise self._lost(error) from None

    async def _read_stream(self, response: httpx2.Response, completion: Completion) -> None:
        start = b""
        chunks = response.aiter_bytes()
        if response.headers.get("content-type", "").split(";")[0].strip().lower() in _NOT_A_STREAM:
            raise self._unexpected(response.status_code, await _read_some(chunks))
        decoder = SseDecoder()
        try:
            while not completion.done:
                chunk = await self._next(chunks)
                if chunk is None:
                    break
                start += chunk[: limits.MESSAGE_EXCERPT_BYTES - len(start)]
                for frame in decoder.feed(chunk):
                    completion.add(frame)
        except LineTooLong as error:
            raise ProviderError("malformed", str(error), provider=self._endpoint.provider) from None
        except ProviderError as error:
            if error.kind != "network" or not completion.complete:
                raise
            return  # the answer was whole when the connection went
        if not completion.done and not completion.chunks:
            raise self._unexpected(response.status_code, start)

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        try:
            async with asyncio.timeout(self._endpoint.idle_ms / 1000):
                return await anext(chunks, None)
        except TimeoutError:
            message = (
                f"{self._endpoint.origin} sent nothing for {self._endpoint.idle_ms} ms in the middle of its answer"
            )
            raise self._network(message) from None
        except httpx2.RequestError as error:
            raise self._lost(error) from None

    async def _refuse_errors(self, response: httpx2.Response) -> None:
        """Raise for an error status, with a bounded read of its body: the SDK would read it whole."""
        if response.status_code < 400:
            return
        body = self._without_token(await _read_some(response.aiter_bytes()))
        headers = {name.lower(): value for name, value in response.headers.items()}
        raise classify(response.status_code, body, headers, self._endpoint.provider, self._clock.now_ms())

    def _unexpected(self, status: int, body: bytes) -> ProviderError:
        return unexpected(status, self._without_token(body), self._endpoint.provider)

    def _without_token(self, body: bytes) -> bytes:
        """Remove the token from a body that repeats it, before anything is cut out of the body."""
        token = self._endpoint.token
        return body.replace(token.reveal().encode(), "…".encode()) if token else body

    def _lost(self, error: Exception) -> ProviderError:
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
        origin = self._endpoint.origin
        if isinstance(cause, httpx2.TooManyRedirects):
            return self._error("unclassified", f"{origin} redirects without end")
        if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)):
            return self._network(f"cannot reach {origin}: {_reason(cause)}")
        return self._network(f"the connection to {origin} was lost: {_reason(cause)}")

    def _network(self, message: str) -> ProviderError:
        return self._error("network", message)

    def _error(self, kind: ProviderErrorKind, message: str) -> ProviderError:
        return ProviderError(kind, excerpt(message), provider=self._endpoint.provider)


async def _read_some(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the start of an error's body. A connection that breaks or drips changes nothing: the status is known."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.PROVIDER_ERROR_BODY_MS / 1000):
            await _read_into(body, chunks, limits.PROVIDER_ERROR_BODY_BYTES)
    except (TimeoutError, httpx2.RequestError):
        pass
    return bytes(body)


async def _read_into(body: bytearray, chunks: AsyncIterator[bytes], size_bytes: int) -> None:
    async for chunk in chunks:
        body += chunk[: size_bytes - len(body)]
        if len(body) >= size_bytes:
            return


def _reason(error: BaseException | None) -> str:
    """Return the innermost cause's own words: the libraries wrap the system's error several times."""
    while error is not None and (error.__cause__ or error.__context__) is not None:
        error = error.__cause__ or error.__context__
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)  # asyncio puts its own words in place of the system's
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
