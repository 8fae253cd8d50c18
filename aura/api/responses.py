"""Counts the responses that are under way, so that the end of the server can wait for them. It changes none of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from aura.runtime.feeds import Signal

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


IS_GONE = "aura.is_gone"  # in a WSGI environ: a function that tells whether the caller has hung up


class OpenResponses:
    """The number of responses that are not finished. `signal` rings when it falls to 0. Any thread."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._lock = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        """How many responses are under way."""
        return self._count

    def count_in(self, wsgi_app: WSGIApplication) -> WSGIApplication:
        """Return `wsgi_app` with its responses counted, from the request until the server has closed the body."""

        def counted(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            self._add(1)
            try:
                body = wsgi_app(environ, start_response)
            except BaseException:
                self._add(-1)
                raise
            return _Body(body, lambda: self._add(-1))

        return counted

    def _add(self, change: int) -> None:
        with self._lock:
            self._count += change
            count = self._count
        if count == 0:
            self._signal.ring()


class _Body:
    """A response body that says when it was closed, which both servers do in every case."""

    def __init__(self, body: Iterable[bytes], closed: Callable[[], None]) -> None:
        self._body = body
        self._closed = closed

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._closed()
