"""Odd MCP servers as configuration and as specs, connected servers, and a bench that calls their tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aura.config.spec import HttpTarget, McpServerSpec, Secret, StdioTarget
from aura.engine.mcp.servers import McpServers
from aura.engine.tools.base import Tool
from tests.support.bench import Bench

ODD_SERVER = Path(__file__).with_name("odd_mcp_server.py")


@dataclass(frozen=True)
class HttpServer:
    """An odd server that listens at `url`."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


StartHttp = Callable[..., HttpServer]


@dataclass
class Odd:
    """The odd server as it is configured: its mode, and the log of what it receives."""

    folder: Path
    name: str = "odd"
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.folder / f"{self.name}.log"

    def entry(self, mode: str = "", **more: Any) -> dict[str, Any]:
        """Return its entry in a file of MCP servers."""
        env = {"ODD_LOG": str(self.log), "ODD_MODE": mode} | more.pop("env", {})
        return {"command": sys.executable, "args": [str(ODD_SERVER), "stdio"], "env": env, "timeout": "30s"} | more

    def spec(self, mode: str = "", **more: Any) -> McpServerSpec:
        """Return what the configuration makes of it."""
        secret = more.pop("secret", None)
        env = {"ODD_LOG": str(self.log), "ODD_MODE": mode} | ({"ODD_SECRET": secret} if secret else {})
        target = StdioTarget(
            Secret(sys.executable),
            (Secret(str(ODD_SERVER)), Secret("stdio")),
            tuple((name, Secret(value)) for name, value in env.items()),
        )
        secrets = (Secret(secret),) if secret else ()
        return McpServerSpec(self.name, self.log, target, **({"timeout_ms": 30_000, "secrets": secrets} | more))

    def received(self) -> list[Any]:
        """Return what it has received, in order."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def cancelled(self) -> list[Any]:
        """Return the request ids that it was told are cancelled."""
        return [
            message["params"]["requestId"]
            for message in self.received()
            if isinstance(message, dict) and message.get("method") == "notifications/cancelled"
        ]

    def call_ids(self, tool: str) -> list[Any]:
        """Return the ids of the calls of a tool that it has received."""
        return [
            message["id"]
            for message in self.received()
            if isinstance(message, dict) and message.get("method") == "tools/call" and message["params"]["name"] == tool
        ]


@dataclass
class Connected:
    """Connected servers, with a bench that calls their tools."""

    servers: McpServers
    folder: Path

    def bench(self, *specs: McpServerSpec) -> Bench:
        """Connect servers and return a bench with their tools."""
        return Bench(self.folder, options={"tools": self.connect(*specs)})

    def connect(self, *specs: McpServerSpec) -> tuple[Tool, ...]:
        """Connect servers and return their tools."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        return self.servers.connect(specs, environment)


def http_spec(url: str, name: str = "web", **headers: str) -> McpServerSpec:
    """Return the spec of a server over HTTP; one at /sse speaks the transport before streamable HTTP."""
    sent = tuple((header, Secret(value)) for header, value in headers.items())
    target = HttpTarget(Secret(url), sent, legacy_sse=url.endswith("/sse"))
    return McpServerSpec(name, Path("x.yaml"), target)


def is_alive(pid: int) -> bool:
    """Tell whether a process is there and not only waiting to be reaped."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
