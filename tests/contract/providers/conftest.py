"""Hand-made model servers on the loopback interface, and a provider that talks to them."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from aura.clock import SystemClock
from aura.config.spec import ProviderSpec, Secret
from aura.conversation import Message
from aura.engine.io import IoThread
from aura.engine.providers.base import Request
from aura.engine.providers.chat import ChatProvider
from aura.engine.providers.endpoint import endpoint_of
from aura.engine.scope import Scope

WAIT_S = 20


class Exchange:
    """One request as the server sees it, and what it writes back. Writing to a client that has gone is no error."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self.method = handler.command
        self.path = handler.path
        self.headers = handler.headers
        self.body = body
        self.socket = handler.connection
        self._handler = handler

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    def answer(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """Write a whole answer with its length."""
        self.head(status, content_type, content_length=str(len(body)), **headers)
        self.write(body)

    def head(self, status: int, content_type: str, **headers: str) -> None:
        self._handler.send_response(status)
        self._handler.send_header("content-type", content_type)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        if "content_length" not in headers:
            self._handler.send_header("connection", "close")
            self._handler.close_connection = True
        self._handler.end_headers()
        self._handler.wfile.flush()

    def write(self, data: bytes) -> bool:
        """Return False when the client has gone."""
        try:
            self._handler.wfile.write(data)
            self._handler.wfile.flush()
            return True
        except OSError:
            return False

    def stream(self, *frames: object, done: bool = True) -> None:
        """Write an event stream: dicts as JSON data, texts as they are."""
        self.head(200, "text/event-stream")
        for frame in frames:
            self.frame(frame)
        if done:
            self.frame("data: [DONE]")

    def frame(self, frame: object) -> bool:
        text = frame if isinstance(frame, str) else f"data: {json.dumps(frame, ensure_ascii=False)}"
        return self.write(f"{text}\n\n".encode())

    def drop(self, *, reset: bool = False) -> None:
        """Close the connection without another word, with a reset instead of an end if asked."""
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.socket.detach())
        else:
            self.socket.shutdown(socket.SHUT_RDWR)
        self._handler.close_connection = True

    def client_has_gone(self) -> bool:
        """Wait until the client closes the connection; False if it does not in time."""
        self.socket.settimeout(WAIT_S)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


class ModelServer:
    """A server that answers with `behave`, and remembers the requests it got."""

    def __init__(self) -> None:
        self.requests: list[Exchange] = []
        self.connections = 0
        self.behave: Callable[[Exchange], object] = lambda exchange: exchange.answer(404, b"{}")
        self.failures: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                exchange = Exchange(self, body)
                outer.requests.append(exchange)
                outer.behave(exchange)

            do_GET = do_POST

            def log_message(self, format: str, *args: object) -> None:
                return None

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                error = sys.exception()
                if not isinstance(error, OSError):  # a connection that was dropped on purpose is no failure
                    outer.failures.append(repr(error))

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT_S)


class Stopper:
    """The alarm of these tests: a deadline on a timer thread of its own."""

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> threading.Timer:
        timer = threading.Timer(delay_ms / 1000, callback)
        timer.daemon = True
        timer.start()
        return timer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.close()
    assert running.failures == []


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose connections are never accepted and whose queue is full: connecting hangs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        yield address[1]
        for filler in fillers:
            filler.close()


@pytest.fixture(scope="module")
def io() -> Iterator[IoThread]:
    thread = IoThread()
    yield thread
    thread.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "aura-io"]


@pytest.fixture
def scope() -> Scope:
    return Scope(Stopper())


@pytest.fixture
def make(io: IoThread) -> Callable[..., ChatProvider]:
    """Return a factory of providers: `make(url, type="llamacpp", token=None, timeout_ms=…, idle_ms=…)`."""

    def build(
        url: str, type: str = "llamacpp", token: str | None = None, timeout_ms: int = 20_000, idle_ms: int = 20_000
    ) -> ChatProvider:
        secret = Secret(token) if token else None
        spec = ProviderSpec("local", type, Path("p.yaml"), url=url, token=secret, timeout_ms=timeout_ms)  # type: ignore[arg-type]
        return ChatProvider(replace(endpoint_of(spec), idle_ms=idle_ms), io, SystemClock())

    return build


@pytest.fixture
def request_of() -> Callable[[str], Request]:
    return lambda text: Request("m", "Be careful.", [Message("user", text)])


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits, with a bound, until a condition holds."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true in time"
            time.sleep(0.005)

    return wait
