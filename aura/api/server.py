"""Serves a session over HTTP until it has stopped: the frame around the two servers, gevent and waitress.

It owns signals, readiness and the end. What is answered is `aura.api.app`'s business. Of the whole program only this
module and `aura.api.waiter` may use gevent.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from aura import limits
from aura.api.app import create_app
from aura.api.body import BROKEN_INPUT
from aura.api.errors import MALFORMED_BODY, malformed_response
from aura.api.responses import IS_GONE, OpenResponses
from aura.api.streams import Streams
from aura.api.waiter import GeventWaiter, ServerKind, ThreadWaiter, Waiter
from aura.events import StopReason
from aura.runtime.feeds import Signal
from aura.runtime.log import Log
from aura.runtime.stop_signals import watch_stop_signals

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from aura.runtime.service import Service

__all__ = ["HttpServer", "ServerKind", "Waiter", "make_waiter", "serve", "start_server"]

_LONG_MS = 3_600_000  # a wait without an end looks up this often


def make_waiter(kind: ServerKind) -> Waiter:
    """Return the way to wait of a server. Main thread, before anything that needs `make_signal`.

    `waiter.make_signal` may then be called from any native thread, before and while `serve` runs.
    """
    return GeventWaiter() if kind == "gevent" else ThreadWaiter()


def serve(
    service: Service,
    listener: socket.socket,
    token: str,
    *,
    waiter: Waiter,
    on_ready: Callable[[], None],
    end_ms: int = limits.RESPONSES_END_MS,
) -> None:
    """Serve `service` on `listener` until it has stopped. Blocking; main thread only, the one that made `waiter`.

    `listener` is a bound TCP socket; it belongs to this function and is closed when it returns. `token` is what callers
    must present. `waiter` says which server it is. `on_ready` is called once, on a native thread, when the listener
    accepts; what it raises ends the server and is raised here, and stopping the service is then the caller's business.

    SIGINT and SIGTERM stop the service; a second one makes this function return at once, with `service.saved` False.
    While the service stops, everything is still answered (new runs with `shutting_down`); when it has stopped, streams
    and long-polls are given what is committed and are ended, for at most `end_ms`. The signal handlers stay, so that a
    late signal does not cut the caller's own end short. The caller keeps the store open until this returns.
    """
    frame = _Frame(service, waiter, end_ms)
    frame.install_signals()
    app = create_app(service, token, waiter, frame.streams)
    server = start_server(frame.responses.count_in(app.wsgi_app), listener, waiter, service.log)
    try:
        waiter.call(on_ready)
        frame.wait()
    finally:
        server.stop()


class HttpServer(Protocol):
    """A server that accepts."""

    def stop(self) -> None:
        """Close the listener and all connections."""
        ...


class _Frame:
    """What one call of `serve` shares: the open responses, and why it should return."""

    def __init__(self, service: Service, waiter: Waiter, end_ms: int) -> None:
        self.service = service
        self.waiter = waiter
        self.streams = Streams(service, waiter)
        self._bell: Signal = waiter.make_signal()
        self.responses = OpenResponses(self._bell)
        self._end_ms = end_ms
        self._stopped = False
        self._signals_count = 0

    def install_signals(self) -> None:
        """Make SIGINT and SIGTERM stop the service."""
        watch_stop_signals(self._on_signal)

    def wait(self) -> None:
        """Return when the service has stopped and open responses have ended, or a second signal came."""
        threading.Thread(target=self._watch_service, name="aura-stopped", daemon=True).start()
        self._wait_for(lambda: self._stopped or self._hurried, _LONG_MS, forever=True)
        self.streams.end()
        self._wait_for(lambda: self.responses.count == 0 or self._hurried, self._end_ms)

    @property
    def _hurried(self) -> bool:
        return self._signals_count > 1

    def _wait_for(self, condition: Callable[[], bool], timeout_ms: int, *, forever: bool = False) -> None:
        deadline_ms = self.waiter.monotonic_ms() + timeout_ms
        while True:
            seen = self._bell.generation
            left_ms = timeout_ms if forever else deadline_ms - self.waiter.monotonic_ms()
            if condition() or left_ms <= 0:
                return
            self._bell.wait(seen, left_ms)

    def _watch_service(self) -> None:
        self.service.wait_stopped()
        self._stopped = True
        self._bell.ring()

    def _on_signal(self, number: signal.Signals) -> None:
        self._signals_count += 1
        self._bell.ring()
        # Stopping may wait for the disk; the next signal is not to wait for that.
        reason: StopReason = "sigint" if number == signal.SIGINT else "sigterm"
        threading.Thread(target=self.service.stop, args=(reason,), name="aura-stop-asked", daemon=True).start()


def start_server(
    wsgi_app: WSGIApplication, listener: socket.socket, waiter: Waiter, log: Log, malformed: bytes = MALFORMED_BODY
) -> HttpServer:
    """Return a server that answers on `listener`, a bound TCP socket that belongs to it from now on.

    Main thread, the one that made `waiter`, which says what kind of server it is. `malformed` is the body, JSON, of the
    answer to what is not HTTP. A WSGI environ holds, under `IS_GONE`, a function that tells whether the caller has hung
    up.
    """
    listener.listen(limits.ACCEPT_BACKLOG_COUNT)
    if waiter.kind == "gevent":
        return _GeventServer(wsgi_app, listener, log, malformed_response(malformed))
    from aura.api.waitress_server import WaitressServer

    return WaitressServer(wsgi_app, listener, log, malformed)


def _has_hung_up(connection: socket.socket) -> bool:
    """Tell whether the peer of a socket has ended its side. It looks, and takes nothing away."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class _GeventServer:
    """pywsgi on the hub. A greenlet per connection; the hub thread is the one that makes it."""

    def __init__(self, wsgi_app: WSGIApplication, listener: socket.socket, log: Log, malformed: bytes) -> None:
        from gevent import GreenletExit, get_hub, pywsgi
        from gevent import socket as hub_socket

        class Handler(pywsgi.WSGIHandler):  # type: ignore[misc]  # gevent has no types
            """Answers without the delay of Nagle's algorithm, and complains in the contract's shape."""

            def handle(self) -> None:
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                super().handle()

            def get_environ(self) -> dict[str, object]:
                environ: dict[str, object] = super().get_environ()
                # The plain socket under gevent's: a look must never wait on the hub.
                environ[IS_GONE] = partial(_has_hung_up, self.socket._sock)
                return environ

            def handle_one_request(self) -> object:
                result = super().handle_one_request()
                return (result[0], malformed) if isinstance(result, tuple) else result

            def handle_one_response(self) -> None:
                super().handle_one_response()
                if self.environ.get(BROKEN_INPUT):
                    self.close_connection = True

            def _handle_client_error(self, error: BaseException) -> object:
                if not isinstance(error, (ValueError, OSError)):
                    log.fault("http", error)
                return "400", malformed

            def handle_error(self, kind: type[BaseException], error: BaseException, _trace: TracebackType) -> None:
                self.close_connection = True
                if not issubclass(kind, GreenletExit) and not isinstance(error, OSError):
                    log.fault("http", error)

        def on_hub_error(_context: object, kind: type[BaseException], error: BaseException | None, _: object) -> None:
            log.fault("hub", error if error is not None else kind())

        get_hub().print_exception = on_hub_error
        # A name for SERVER_NAME, because pywsgi would ask the resolver for one, on the hub.
        name = str(listener.getsockname()[0])
        self._server = pywsgi.WSGIServer(
            hub_socket.socket(fileno=listener.detach()),
            wsgi_app,
            log=None,
            error_log=None,  # it would quote broken requests, which may hold pieces of a prompt
            handler_class=Handler,
            spawn=limits.CONNECTIONS_MAX_COUNT,
            environ={"SERVER_NAME": name},
        )
        self._server.start()

    def stop(self) -> None:
        """Close the listener and all connections."""
        self._server.stop(timeout=0)
