"""A small server with an in-memory journal and scripted faults, to see the client survive bad days.

It plays the routes that the client's waiting and streaming use. It checks the token and never decides anything itself.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import client_documents as documents
from client_documents import TOKEN, Document

Fault = Callable[["Handler"], None]
LONG_POLL_MAX_S = 5.0


class FakeServer:
    """Its journal, its runs, its faults (one is used up per request to its path), and what it was asked."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.events: list[Document] = []
        self.runs: dict[str, Document] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.requests: list[str] = []
        self.stopping = False
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen; on the port of the first start, so that a restart is found again."""
        http = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler(), bind_and_activate=False)
        http.daemon_threads = True
        http.allow_reuse_address = True
        http.server_bind()
        http.server_activate()
        self.stopping = False
        self.port = http.server_address[1]
        self._http = http
        self._thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and cut every long-poll."""
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        if self._http is not None and self._thread is not None:
            self._http.shutdown()
            self._http.server_close()
            self._thread.join(5)
            self._http = self._thread = None

    def add(self, *events: Document) -> None:
        """Append events to the journal and wake the long-polls."""
        with self.changed:
            self.events.extend(events)
            self.changed.notify_all()

    def fault(self, path: str, *faults: Fault) -> None:
        """Let the next requests to `path` meet these faults, one each."""
        self.faults.setdefault(path, []).extend(faults)

    def asked(self, path: str) -> int:
        """Return how many requests `path` has had."""
        return sum(1 for request in self.requests if request.split(" ")[1].split("?")[0] == path)

    def wait_asked(self, path: str, count: int) -> None:
        """Wait until `path` has had `count` requests."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.asked(path) >= count, 10), f"{path} was not asked"

    def wait_faults_met(self, path: str) -> None:
        """Wait until requests to `path` have met all its faults."""
        with self.changed:
            assert self.changed.wait_for(lambda: not self.faults[path], 10), f"{path} was not asked"

    def _handler(self) -> type[Handler]:
        return type("BoundHandler", (Handler,), {"fake": self})


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def cut(self) -> None:
        """End the connection without an answer."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def reply(self, status: int, document: Document, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status: int, code: str, **headers: str) -> None:
        self.reply(status, {"error": documents.error(code=code)}, **headers)

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        self.body = self.rfile.read(length)
        path = urlsplit(self.path).path
        with self.fake.changed:
            self.fake.requests.append(f"{self.command} {self.path}")
            faults = self.fake.faults.get(path)
            fault = faults.pop(0) if faults else None
            self.fake.changed.notify_all()
        if self.fake.stopping:
            self.cut()
        elif fault is not None:
            fault(self)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.fail(401, "unauthorized")
        else:
            self._route(path)

    def _route(self, path: str) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        found = self.fake.runs.get(path.removeprefix("/v1/runs/"))
        if path == "/v1/server":
            self.reply(200, documents.server_info(url=self.fake.url))
        elif path == "/v1/journal":
            self._journal(int(query["after"]), int(query["limit"]), float(query["wait"]))
        elif path == "/v1/events":
            self._stream(int(query["after"]))
        elif found is not None:
            self.reply(200, found)
        else:
            self.fail(404, "not_found")

    def after(self, seq: int) -> list[Document]:
        return [event for event in self.fake.events if isinstance(event["seq"], int) and event["seq"] > seq]

    def _journal(self, after: int, limit: int, wait_s: float) -> None:
        fake = self.fake
        with fake.changed:
            fake.changed.wait_for(lambda: fake.stopping or self.after(after), min(wait_s, LONG_POLL_MAX_S))
            page = self.after(after)[:limit]
            last_seq = fake.events[-1]["seq"] if fake.events else 0
        if fake.stopping:
            self.cut()
            return
        self.reply(200, {"events": list(page), "last_seq": last_seq})

    def _stream(self, after: int) -> None:
        self.begin_stream()
        cursor = after
        while not self.fake.stopping:
            for event in self._next(cursor):
                self.send_event(event)
                cursor = int(str(event["seq"]))
        self.cut()

    def _next(self, cursor: int) -> list[Document]:
        fake = self.fake
        with fake.changed:
            fake.changed.wait_for(lambda: fake.stopping or self.after(cursor), LONG_POLL_MAX_S)
            return self.after(cursor)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, event: Document) -> None:
        self.send_text(f"id: {event['seq']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n")

    def send_text(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()
