"""Closes a connection whose TLS handshake was cut short. Nothing else.

httpcore2 (2.16) closes it when the handshake fails, but not when it is cancelled or times out: the socket would stay
open until the server gives up. Its public `trace` extension names the connection, so it is closed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import httpx2


class _Stream(Protocol):
    async def aclose(self) -> None: ...


class _Handshake:
    """The trace of one request: remembers its connection between connecting and the end of the handshake."""

    def __init__(self) -> None:
        self._stream: _Stream | None = None

    async def __call__(self, name: str, info: Mapping[str, object]) -> None:
        if name == "connection.connect_tcp.complete":
            self._stream = info["return_value"]  # type: ignore[assignment]  # a network stream, says httpcore2
        elif name == "connection.start_tls.complete":
            self._stream = None
        elif name == "connection.start_tls.failed" and self._stream is not None:
            await self._stream.aclose()


async def watch_handshake(request: httpx2.Request) -> None:
    """Give a request its trace: a request hook of the HTTP client."""
    if request.url.scheme == "https":
        request.extensions = {**request.extensions, "trace": _Handshake().__call__}
