"""The MCP servers of a process: connects them side by side, turns their tools into the engine's, closes them.

It is the engine's face of MCP. The SDK is imported with the first server that is connected, never before.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aura import limits
from aura.config.spec import HttpTarget, McpServerSpec
from aura.engine.io import IoThread
from aura.engine.mcp.failure import McpFailure
from aura.engine.mcp.results import face_tools
from aura.engine.mcp.tool import McpTool
from aura.engine.tools.base import Tool
from aura.errors import McpUnavailable
from aura.events import McpServerStatus, Transport

if TYPE_CHECKING:
    from mcp_types import Tool as Listed

    from aura.engine.mcp.connection import Connection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Connected:
    connection: Connection
    tools: tuple[McpTool, ...]


class McpServers:
    """Connections, one per server, made once and kept. One thread at a time, no greenlet."""

    def __init__(self, io: IoThread, workdir: Path) -> None:
        self._io = io
        self._workdir = workdir
        self._connected: dict[McpServerSpec, _Connected] = {}
        self._failed: dict[McpServerSpec, str] = {}
        self._opened: list[Connection] = []  # all that may not have ended yet
        self._notices: list[str] = []

    def connect(
        self,
        specs: Sequence[McpServerSpec],
        environment: Mapping[str, str],
        accept: Callable[[str], bool] = lambda name: True,
    ) -> tuple[Tool, ...]:
        """Connect those of `specs` that are not yet, and return the tools of all of them, in order.

        `accept` is asked for each tool, by the name that its server gives it; what it refuses is not returned.
        `environment` holds no secret; a server gets it with its own `env` over it. Blocks for at most the longest
        time-out of a server and a moment, times the batches of `limits.MCP_CONNECTING_MAX_COUNT`. A server that fails
        is a notice, and is not tried again before `forget_failures`. Raises `McpUnavailable` if one that is required
        fails.
        """
        new = [spec for spec in specs if spec not in self._connected and spec not in self._failed]
        if new:
            connections = self._make(new, environment)
            self._take(connections, self._run(_open_all(connections)))
        connected = (self._connected[spec] for spec in specs if spec in self._connected)
        return tuple(tool for one in connected for tool in one.tools if accept(tool.name))

    def keep(self, specs: Sequence[McpServerSpec]) -> None:
        """Begin to end the connections to all other servers. Does not wait for their end."""
        for spec in [spec for spec in self._connected if spec not in specs]:
            self._io.submit(self._connected.pop(spec).connection.close())

    def forget_failures(self, name: str | None = None) -> None:
        """Make the next `connect` try the servers again that failed, or whose connection was lost; only `name` if
        given.
        """
        self.forget_lost(name)
        for spec in [spec for spec in self._failed if name in (None, spec.name)]:
            del self._failed[spec]

    def forget_lost(self, name: str | None = None) -> None:
        """Make the next `connect` try the servers again whose connection was lost; only `name` if given."""
        lost = [spec for spec, connected in self._connected.items() if not connected.connection.is_alive]
        for spec in [spec for spec in lost if name in (None, spec.name)]:
            del self._connected[spec]

    def describe(self, specs: Sequence[McpServerSpec]) -> tuple[McpServerStatus, ...]:
        """Return how each of `specs` stands."""
        return tuple(self._describe(spec) for spec in specs)

    def take_notices(self) -> tuple[str, ...]:
        """Return what somebody should know of the servers connected since the last time."""
        notices, self._notices = tuple(self._notices), []
        return notices

    def close(self) -> None:
        """End all connections and processes. Bounded; repeating it does nothing."""
        opened, self._opened = self._opened, []
        self._connected.clear()
        if opened:
            self._run(_close_all(opened))

    def _describe(self, spec: McpServerSpec) -> McpServerStatus:
        transport: Transport = "stdio"
        if isinstance(spec.target, HttpTarget):
            transport = "sse" if spec.target.legacy_sse else "http_streamable"
        if spec in self._connected:
            return McpServerStatus(spec.name, transport, "connected", len(self._connected[spec].tools))
        if spec in self._failed:
            return McpServerStatus(spec.name, transport, "failed", reason=self._failed[spec])
        return McpServerStatus(spec.name, transport, "not_attempted")

    def _make(self, specs: Sequence[McpServerSpec], environment: Mapping[str, str]) -> list[Connection]:
        from aura.engine.mcp.connection import Connection

        for name in ("mcp", "client"):
            # The SDK logs what servers send, which may be anything. What matters of it is reported by us.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        connections = [Connection(spec, self._workdir, environment) for spec in specs]
        self._opened = [connection for connection in self._opened if not connection.has_ended] + connections
        return connections

    def _take(self, connections: Sequence[Connection], outcomes: Sequence[list[Listed] | McpFailure]) -> None:
        failures: dict[str, str] = {}
        for connection, outcome in zip(connections, outcomes, strict=True):
            spec = connection.spec
            if not isinstance(outcome, McpFailure):
                self._add_tools(connection, outcome)
                continue
            problem = f"the MCP server {spec.name} is not available: {outcome}"
            if spec.required:
                failures[spec.name] = problem
            else:
                self._failed[spec] = str(outcome)
                self._notices.append(problem)
        if failures:
            raise McpUnavailable(
                "; ".join(failures.values()),
                hint="Start it, or take required: true away from it.",
                details={"server": next(iter(failures))},
            )

    def _add_tools(self, connection: Connection, listed: list[Listed]) -> None:
        name = connection.spec.name
        faces, left_out = face_tools(name, listed)
        tools = tuple(McpTool(face, tool, connection, self._io) for tool, face in faces.items())
        self._connected[connection.spec] = _Connected(connection, tools)
        self._notices += [f"the MCP server {name}: {remark}" for remark in left_out]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        job = self._io.submit(work)
        ended = threading.Event()
        job.add_done_callback(ended.set)
        ended.wait()  # every step of the work has its own bound
        return job.result()


async def _open_all(connections: Sequence[Connection]) -> list[list[Listed] | McpFailure]:
    import asyncio

    places = asyncio.Semaphore(limits.MCP_CONNECTING_MAX_COUNT)

    async def open_one(connection: Connection) -> list[Listed] | McpFailure:
        async with places:
            try:
                return await connection.open()
            except McpFailure as failure:
                return failure

    return await asyncio.gather(*(open_one(connection) for connection in connections))


async def _close_all(connections: Sequence[Connection]) -> None:
    import asyncio

    await asyncio.gather(*(connection.close() for connection in connections))
