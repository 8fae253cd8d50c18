"""A tool of an MCP server as a tool of the engine: the call goes to the io thread, and its scope goes with it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aura import limits
from aura.engine.io import IoThread
from aura.engine.mcp.failure import McpFailure
from aura.engine.mcp.results import result_text
from aura.engine.tools.base import OnProgress, ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue

if TYPE_CHECKING:
    from aura.engine.mcp.connection import Connection


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of a connected server; `name` is what the server calls it."""

    spec: ToolSpec
    name: str
    connection: Connection
    io: IoThread

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Call the tool. There is no time limit but the scope's: its cancellation sends `notifications/cancelled`.

        Raises `ToolError` for a result that is an error, and when the server answers none.
        """
        try:
            json.dumps(arguments, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ToolError("the arguments hold half of a surrogate pair") from None
        work = self.connection.call(self.name, arguments, _throttled(context.progress))
        try:
            result = context.scope.wait(self.io.submit(work))
        except McpFailure as failure:
            raise ToolError(str(failure)) from failure
        text = result_text(result)
        if result.is_error:
            raise ToolError(text or "the tool failed without saying why")
        return text


def _throttled(show: OnProgress) -> OnProgress:
    """Return a function that shows progress at most once per `limits.OUTPUT_INTERVAL_MS` and drops the rest."""
    next_ms = 0

    def show_sometimes(progress: float, total: float | None, message: str | None) -> None:
        nonlocal next_ms
        now_ms = time.monotonic_ns() // 1_000_000
        if now_ms >= next_ms:
            next_ms = now_ms + limits.OUTPUT_INTERVAL_MS
            show(progress, total, message if message is None else message[: limits.OUTPUT_EVENT_MAX_BYTES])

    return show_sometimes
