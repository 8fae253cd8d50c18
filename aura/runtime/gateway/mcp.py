"""The MCP connections that all runs of a gateway share: made when a run first needs them, made again when lost.

A server that failed is left alone for a while, so that each request does not wait for it again. It knows nothing of
requests: connections with their headers are made elsewhere. Native threads only, several at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aura import limits
from aura.clock import Clock
from aura.config.spec import McpServerSpec
from aura.engine.io import IoThread
from aura.engine.mcp.servers import McpServers
from aura.engine.tools.base import Tool
from aura.events import McpServerStatus


class SharedServers:
    """The connections of a process."""

    def __init__(self, io: IoThread, workdir: Path, clock: Clock) -> None:
        self._servers = McpServers(io, workdir)
        self._clock = clock
        self._lock = threading.Lock()
        self._tried_again_ms = clock.monotonic_ms()

    def connect(
        self, specs: Sequence[McpServerSpec], environment: Mapping[str, str], accept: Callable[[str], bool]
    ) -> tuple[tuple[Tool, ...], tuple[McpServerStatus, ...]]:
        """Return the tools of `specs` whose bare names `accept` lets pass, in order, and how each server stands; those
        not connected are connected first.

        Runs that need servers at the same time wait for one another: at most the time-outs of those that are new.
        Raises `McpUnavailable` if one that is required fails.
        """
        if not specs:
            return (), ()
        with self._lock:
            self._forget()
            tools = self._servers.connect(specs, environment, accept)
            self._servers.take_notices()  # the statuses say the same
            return tools, self._servers.describe(specs)

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._servers.close()

    def _forget(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._servers.forget_lost()
        if now_ms - self._tried_again_ms >= limits.MCP_RETRY_MS:
            self._tried_again_ms = now_ms
            self._servers.forget_failures()
