"""A gateway in a process of its own on a `Site`, and raw HTTP to talk to it. Every wait is bounded."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.serving import WAIT_S, Site, server_kind, until


class Answer:
    """One answer: status, headers and body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error object of the body."""
        error = self.json["error"]
        assert isinstance(error, dict)
        return error

    @property
    def frames(self) -> list[tuple[str, Any]]:
        """The frames of a stream: (event name or "", decoded data), `[DONE]` as it is; comments are left out."""
        return list(parse_frames(self.body.decode()))

    @property
    def text(self) -> str:
        """The text of a stream."""
        return "".join(
            choice["delta"].get("content", "")
            for name, data in self.frames
            if not name and isinstance(data, dict)
            for choice in data.get("choices", ())
        )


def parse_frames(text: str) -> Iterator[tuple[str, Any]]:
    """Yield (event name or "", data) of each frame that has data."""
    for block in text.split("\n\n"):
        lines = block.split("\n")
        name = next((line.removeprefix("event: ") for line in lines if line.startswith("event: ")), "")
        data = next((line.removeprefix("data: ") for line in lines if line.startswith("data: ")), None)
        if data is not None:
            yield name, data if data == "[DONE]" else json.loads(data)


class Gateway:
    """A running `aura webserver`."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path, key: str | None) -> None:
        self.process = process
        self.url = url
        self.log = log
        self._key = key

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection; the caller closes it."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return http.client.HTTPConnection(host, int(port), timeout=WAIT_S)

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send one request and read the whole answer."""
        connection = self.connect()
        try:
            self.send(connection, method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a request on `connection`."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        if self._key is not None:
            sent["Authorization"] = f"Bearer {self._key}"
        connection.request(method, path, data, {**sent, **(headers or {})})

    def get(self, path: str, **headers: str) -> Answer:
        """Send a GET."""
        return self.request("GET", path, headers=headers)

    def chat(self, *messages: Any, headers: Mapping[str, str] | None = None, **more: Any) -> Answer:
        """Send a chat request; a text is a user's message."""
        return self.request("POST", "/v1/chat/completions", chat_body(*messages, **more), headers)

    def open_chat(self, *messages: Any, **more: Any) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a streaming chat request and return its connection and response, unread."""
        connection = self.connect()
        self.send(connection, "POST", "/v1/chat/completions", chat_body(*messages, stream=True, **more))
        return connection, connection.getresponse()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the process and wait for its end; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def log_text(self) -> str:
        """Return what it has logged so far."""
        return self.log.read_text()


def chat_body(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return a chat request's body; a text is a user's message."""
    full = [{"role": "user", "content": item} if isinstance(item, str) else item for item in messages]
    return {"messages": full, **more}


def launch_gateway(
    site: Site, *words: str, environment: Mapping[str, str] | None = None, key: str | None = None
) -> Gateway:
    """Start a gateway on `site` and return it once it listens. It ends with the site."""
    number = len(site.processes)
    ready, log = site.root / f"gateway-{number}.json", site.root / f"gateway-{number}.log"
    given = dict(environment or {}) | ({"AURA_API_KEY": key} if key is not None else {})
    arguments = ("webserver", "--port", "0", "--server", server_kind(), "--ready-file", str(ready), *words)
    with log.open("wb") as stream:
        process = site.spawn(*arguments, environment=given, stdout=stream, stderr=stream)
    until(lambda: ready.exists() or process.poll() is not None, "the gateway's ready file")
    fields = json.loads(ready.read_bytes())
    assert "error" not in fields, fields
    assert fields["pid"] == process.pid
    return Gateway(process, fields["url"], log, key)


def hang_up(connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
    """Close a connection in the middle of a response."""
    if connection.sock is not None:
        connection.sock.shutdown(socket.SHUT_RDWR)
    response.close()
    connection.close()


def read_until(response: http.client.HTTPResponse, wanted: bytes) -> bytes:
    """Read a stream until `wanted` has come; return what was read."""
    read = b""
    while wanted not in read:
        piece = response.read1(65536)
        assert piece, f"the stream ended without {wanted!r}: {read!r}"
        read += piece
    return read


def descriptors(pid: int) -> int:
    """Return how many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))
