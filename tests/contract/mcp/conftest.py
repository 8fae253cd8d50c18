"""Real servers in processes of their own; all that a test starts ends with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura.engine.io import IoThread
from aura.engine.mcp.servers import McpServers
from tests.support.odd_mcp import ODD_SERVER, Connected, HttpServer, Odd, StartHttp
from tests.support.serving import Site, until


@pytest.fixture
def odd(tmp_path: Path) -> Odd:
    """The odd server, not started."""
    return Odd(tmp_path)


@pytest.fixture
def connected(tmp_path: Path) -> Iterator[Connected]:
    """Servers on an io thread of the test's own; all of them end with the test."""
    io = IoThread()
    servers = McpServers(io, tmp_path)
    yield Connected(servers, tmp_path)
    servers.close()
    io.close()


@pytest.fixture
def start_http(odd: Odd) -> Iterator[StartHttp]:
    """Return a function that starts the odd server over HTTP, for those who send `token` if there is one.

    `legacy`: by the transport before streamable HTTP. Messages of the method `refuse` are answered with 400.
    """
    running: list[HttpServer] = []

    def start(token: str = "", *, legacy: bool = False, refuse: str = "") -> HttpServer:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        env = {**os.environ, "ODD_LOG": str(odd.log), "ODD_TOKEN": token, "ODD_REFUSE": refuse}
        kind, path = ("sse", "sse") if legacy else ("http", "mcp")
        process = subprocess.Popen([sys.executable, str(ODD_SERVER), kind, str(port)], env=env)
        running.append(HttpServer(f"http://127.0.0.1:{port}/{path}", process))

        def accepts() -> bool:
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        until(accepts, "the start of the HTTP server")
        return running[-1]

    yield start
    for server in running:
        server.kill()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace and a config home with a scripted model; its processes end with the test."""
    made = Site(tmp_path)
    yield made
    made.end()
