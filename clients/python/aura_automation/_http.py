"""The only module that knows httpx: one request in, one JSON document or one typed error out; and SSE frames.

It does not retry and does not know the contract's routes. The token is sent to the endpoint's URL only: no
proxy of the environment is used and no redirect is followed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import httpx
from httpx_sse import EventSource, SSEError

from aura_automation._decode import excerpt, http_failure, read_json
from aura_automation._endpoint import Endpoint
from aura_automation._limits import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, RETRY_AFTER_MAX_S, WAIT_MARGIN_S
from aura_automation.codes import BadRequest, Unauthorized
from aura_automation.errors import AutomationError, ContractDrift, Json, NetworkError

Transport: TypeAlias = httpx.BaseTransport

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


@dataclass(frozen=True, slots=True)
class Frame:
    """One SSE event as it came: its name, its own or the sticky last id, its data."""

    event: str
    id: str
    data: str


def checked_token(token: str) -> str:
    """Return `token` if it can be sent as a bearer token. Raises `Unauthorized` otherwise, without showing
    it.
    """
    if token and token.isascii() and token.isprintable() and " " not in token:
        return token
    raise Unauthorized("the token cannot be sent", hint="use at least 32 printable ASCII characters without spaces")


class Http:
    """A connection pool to one endpoint. Any thread may use it. Its `Client` closes it."""

    def __init__(self, endpoint: Endpoint, token: str, *, transport: Transport | None = None) -> None:
        """Open nothing yet. `transport` replaces the network in tests. Raises `Unauthorized` for an unusable
        token.
        """
        self._endpoint = endpoint
        self._token = checked_token(token).encode("ascii")
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}", "User-Agent": "aura-automation"},
            timeout=httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,
            follow_redirects=False,
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"Http({self._endpoint!r})"

    def close(self) -> None:
        """Close all connections; repeating it is harmless."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Json] | None = None,
        expect: tuple[int, ...] = (200,),
        wait_s: float = 0.0,
    ) -> Json:
        """Return the JSON document of an answer whose status is in `expect`. `wait_s` is how long the server
        may wait.

        Raises the typed error of the answer's code; `NetworkError` when there is no answer; `ContractDrift`
        for another status or shape; `BadRequest` for a text that is not Unicode.
        """
        where = f"{method} {path}"
        content = _encode(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        read_s = wait_s + WAIT_MARGIN_S if wait_s else READ_TIMEOUT_S
        timeout = httpx.Timeout(read_s, connect=CONNECT_TIMEOUT_S)
        url = self._endpoint.url + path
        try:
            response = self._client.request(
                method, url, params=params, content=content, headers=headers, timeout=timeout
            )
        except httpx.InvalidURL as error:
            raise BadRequest(f"{url} is not a usable URL: {error}") from None
        except httpx.TransportError as error:
            raise self._lost(where, error) from None
        except httpx.HTTPError as error:
            raise ContractDrift(where, "", f"not readable: {error}") from None
        return self._document(response, where, expect)

    @contextmanager
    def stream(self, path: str, *, params: Mapping[str, str], silence_s: float) -> Iterator[Iterator[Frame]]:
        """Open an SSE stream and give its frames, which end when the server ends it. `silence_s`: heartbeat
        interval.

        Raises like `request`, while it opens and while frames are taken.
        """
        where = f"GET {path}"
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", "Accept-Encoding": "identity"}
        timeout = httpx.Timeout(silence_s + WAIT_MARGIN_S, connect=CONNECT_TIMEOUT_S)
        url = self._endpoint.url + path
        try:
            with self._client.stream("GET", url, params=params, headers=headers, timeout=timeout) as response:
                if response.status_code != 200:
                    response.read()
                    self._document(response, where, expect=(200,))
                yield _frames(response)
        except SSEError as error:  # first: it counts as a transport error
            raise ContractDrift(where, "Content-Type", str(error)) from None
        except httpx.TransportError as error:
            raise self._lost(where, error) from None
        except httpx.HTTPError as error:
            raise ContractDrift(where, "", f"not readable: {error}") from None

    def _document(self, response: httpx.Response, where: str, expect: tuple[int, ...]) -> Json:
        raw = response.content
        if self._token in raw:  # a foreign server that echoes requests must not put the token into an error
            raw = raw.replace(self._token, b"[token]")
        status = response.status_code
        if status in expect:
            return read_json(raw, where)
        if status < 400:
            raise ContractDrift(where, "", f"HTTP status {status}: {excerpt(raw)!r}")
        raise self._failure(read_json(raw, f"{where} (HTTP status {status})"), where, response)

    def _failure(self, document: Json, where: str, response: httpx.Response) -> AutomationError:
        retry_after_s = _retry_after_s(response) if response.status_code == 503 else None
        return http_failure(document, f"{where} (HTTP status {response.status_code})", retry_after_s)

    def _lost(self, where: str, error: httpx.TransportError) -> NetworkError:
        url = self._endpoint.url
        self._endpoint.refresh()
        text = f"{where} at {url}: {type(error).__name__}" + (f": {error}" if str(error) else "")
        return NetworkError(text, may_have_arrived=not isinstance(error, _NEVER_SENT), hint="is the server running?")


def _encode(body: Mapping[str, Json] | None) -> bytes | None:
    if body is None:
        return None
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadRequest("the text has lone surrogates, which UTF-8 cannot carry", hint="decode it first") from None


def _frames(response: httpx.Response) -> Iterator[Frame]:
    for sse in EventSource(response).iter_sse():
        if sse.event or sse.data:  # a comment after an id comes out as an empty event
            yield Frame(sse.event, sse.id, sse.data)


def _retry_after_s(response: httpx.Response) -> float | None:
    said = response.headers.get("Retry-After", "")
    return min(float(said), RETRY_AFTER_MAX_S) if said.isascii() and said.isdigit() else None
