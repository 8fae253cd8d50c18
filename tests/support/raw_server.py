"""A real `aura serve` process with a scripted model, and a plain HTTP client for it. Standard library only.

The process is ended by its id when the block ends, however the test went.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
START_S = 30.0
WAIT_S = 20.0

AGENT = """---
name: main
default: true
model: {provider: script, name: scripted}
tools: {enabled: ["*"], policy: {confirm: ["Write"]}}
---
You are a careful assistant.
"""

SCRIPT = """
context: 50000000
turns:
  - when: {last: "^ask$"}
    repeat: forever
    calls:
      - name: Ask
        arguments: {question: "Which?", options: [{label: red, description: ""}, {label: blue, description: ""}]}
  - when: {last: "^slow"}
    repeat: forever
    chunk_delay_ms: 20
    thinking: "let me think about it for a while"
    content: "a rather long answer that comes in pieces and takes a little while to be complete"
  - when: {last: "^hang$"}
    repeat: forever
    delay_ms: 60000
    content: "never"
  - when: {last: "^stubborn$"}
    repeat: forever
    calls: [{name: Bash, arguments: {command: "trap '' TERM; touch stubborn; while :; do sleep 0.1; done"}}]
  - when: {last: "^brief "}
    repeat: forever
    content: "done"
  - repeat: forever
    content: "echo: {{ last }}"
"""


@dataclass(frozen=True)
class Answer:
    """A response that was read whole."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def failure(self, status: int, code: str) -> dict[str, Any]:
        """Assert the contract's error shape and return the error object."""
        assert self.status == status, self.body[:500]
        assert self.headers["Content-Type"] == "application/json"
        error: dict[str, Any] = self.json["error"]
        assert set(error) == {"code", "message", "retryable", "details"}
        assert error["code"] == code
        return error


@dataclass
class Served:
    """A running server. Methods open a connection each, unless they say otherwise."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    log_path: Path
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.headers = {"Authorization": f"Bearer {self.token}"}

    def connect(self, timeout_s: float = WAIT_S) -> http.client.HTTPConnection:
        """Return a keep-alive connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send one request; `body` is encoded as JSON unless it is bytes."""
        connection = self.connect()
        try:
            return self.request_on(connection, method, path, body, **headers)
        finally:
            connection.close()

    def request_on(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
    ) -> Answer:
        """Send one request on an open connection."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, body=data, headers={**self.headers, **headers})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request("POST", path, body, **headers)

    def submit(self, prompt: str, **fields: str) -> dict[str, Any]:
        """Submit a prompt under a fresh request id and return the accepted run."""
        answer = self.post("/v1/runs", {"request_id": secrets.token_hex(8), "prompt": prompt, **fields})
        assert answer.status == 202, answer.body[:500]
        run: dict[str, Any] = answer.json
        return run

    def submit_stubborn(self) -> dict[str, Any]:
        """Submit a prompt whose command ignores SIGTERM, and return once it does. The run settles two seconds after
        its cancellation."""
        run = self.submit("stubborn")
        # `tool.started` comes before the command: only the command itself knows when it is deaf.
        wait_for((self.log_path.parent / "workspace" / "stubborn").exists, "the command ignores SIGTERM")
        return run

    def finish(self, run: dict[str, Any]) -> dict[str, Any]:
        """Return the run's terminal record."""

        def terminal() -> dict[str, Any] | None:
            record: dict[str, Any] = self.get(f"/v1/runs/{run['id']}").json
            return record if record["terminal"] else None

        return wait_for(terminal, "the run is terminal")

    def run(self, prompt: str, **fields: str) -> dict[str, Any]:
        """Submit a prompt and return its terminal record."""
        return self.finish(self.submit(prompt, **fields))

    def last_seq(self) -> int:
        last_seq: int = self.get("/v1/server").json["last_seq"]
        return last_seq

    def journal(self, after: int = 0) -> list[dict[str, Any]]:
        """Return all events after `after`."""
        events: list[dict[str, Any]] = []
        while True:
            page = self.get(f"/v1/journal?after={after}&limit=5000").json
            events += page["events"]
            if not page["events"]:
                return events
            after = page["events"][-1]["seq"]

    def wait_event(self, type: str, after: int) -> dict[str, Any]:
        """Return the first event of a type after `after`."""

        def found() -> dict[str, Any] | None:
            return next((event for event in self.journal(after) if event["type"] == type), None)

        return wait_for(found, f"an event {type}")

    def stream(self, query: str = "", timeout_s: float = WAIT_S, **headers: str) -> Stream:
        """Open an event stream."""
        return Stream(self, query, timeout_s, headers)

    def open_sockets(self) -> int:
        """Return how many sockets the process has open."""
        return sum(_is_socket(path) for path in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def log(self) -> str:
        return self.log_path.read_text()


class Stream:
    """A raw event stream on a connection of its own."""

    def __init__(self, served: Served, query: str, timeout_s: float, headers: dict[str, str]) -> None:
        self.connection = served.connect(timeout_s)
        self.connection.request("GET", f"/v1/events{query}", headers={**served.headers, **headers})
        self.response = self.connection.getresponse()
        self.status = self.response.status

    def frames(self) -> Iterator[dict[str, str]]:
        """Yield frames as their fields, without comments, until the stream ends."""
        fields: dict[str, str] = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if not text:
                if fields:
                    yield fields
                fields = {}
            elif not text.startswith(":"):
                name, _, value = text.partition(": ")
                fields[name] = value

    def until(self, type: str) -> list[dict[str, str]]:
        """Return the frames up to and with the first of a type."""
        taken = []
        for frame in self.frames():
            taken.append(frame)
            if frame["event"] == type:
                return taken
        raise AssertionError(f"the stream ended before {type}")

    def read_bytes(self, size: int) -> bytes:
        """Return exactly the next `size` bytes of the body."""
        data = b""
        while len(data) < size:
            piece = self.response.read1(size - len(data))
            assert piece, "the stream ended too early"
            data += piece
        return data

    def close(self) -> None:
        self.response.close()
        self.connection.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = WAIT_S) -> Any:
    """Return the condition's first value that is true."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


def lay_home(home: Path) -> None:
    """Write the smallest configuration with the scripted model."""
    (home / "config/agents").mkdir(parents=True)
    (home / "config/providers").mkdir()
    (home / "config/agents/main.md").write_text(AGENT)
    (home / "config/providers/script.yaml").write_text("script:\n  type: script\n  file: script.yaml\n")
    (home / "script.yaml").write_text(SCRIPT)
    (home / "config/script.yaml").write_text(SCRIPT)


@contextmanager
def serve(root: Path, server: str, *options: str) -> Iterator[Served]:
    """Start a server on a fresh session under `root`; end it when the block ends."""
    home, workspace, ready = root / "home", root / "workspace", root / "ready.json"
    if not home.exists():
        lay_home(home)
        workspace.mkdir()
    token = secrets.token_hex(24)
    command = [sys.executable, "-m", "aura", "--home", "", "--config", str(home), "serve"]
    command += ["--ready-file", str(ready), "--server", server, *options]
    environment = {**os.environ, "AURA_SERVE_TOKEN": token, "PYTHONPATH": str(ROOT)}
    log_path = root / "serve.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, cwd=workspace, env=environment, stdout=log, stderr=log)
    try:
        record = wait_for(lambda: _ready(ready, process), "the server is ready", START_S)
        assert "error" not in record, record
        yield Served(process, int(record["url"].rpartition(":")[2]), token, log_path)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> int:
    """End a process that may have ended already, and return its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait(10)


def _ready(path: Path, process: subprocess.Popen[bytes]) -> Any:
    if path.exists():
        return json.loads(path.read_text())
    assert process.poll() is None, f"the server ended with {process.returncode}"
    return None


def _is_socket(path: Path) -> bool:
    try:
        return os.readlink(path).startswith("socket:")
    except OSError:  # closed meanwhile
        return False


def exchange(port: int, data: bytes, *, timeout_s: float = WAIT_S) -> bytes:
    """Send raw bytes, and return everything until the server closes or hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(data)
        pieces = []
        try:
            while piece := connection.recv(65536):
                pieces.append(piece)
        except ConnectionResetError:  # the server hung up on bytes that it did not read
            pass
    return b"".join(pieces)
