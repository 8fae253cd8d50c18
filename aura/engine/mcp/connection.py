"""One connection to an MCP server, by the official SDK, on the io thread (DESIGN.md section 3).

The SDK's contexts belong to the task that enters them, so one owner task enters them, tells that the server is ready,
and leaves them when it is told to stop or the server is gone. Calls come from tasks of their own. A lost connection
stays lost. Importing this module imports the SDK: only `engine.mcp.servers` does, and only when a server is configured.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from aura import __version__, limits
from aura.config.spec import HttpTarget, McpServerSpec, StdioTarget
from aura.engine.mcp.failure import McpFailure, Redactor
from aura.engine.mcp.process import ServerProcess
from aura.engine.mcp.watch import Dispatcher, PostWatch
from aura.engine.tools.base import OnProgress
from aura.jsontypes import JsonValue

_LOG = logging.getLogger(__name__)


class Connection:
    """A server, connected once. All methods on the io thread, except where they say otherwise."""

    def __init__(self, spec: McpServerSpec, workdir: Path, environment: Mapping[str, str]) -> None:
        self.spec = spec
        self._workdir = workdir
        self._environment = environment
        self._redactor = Redactor(spec.secrets)
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[list[types.Tool]]
        self._over = asyncio.Event()  # told to stop, or the connection has ended
        self._stopping = False
        self._failed = False
        self._session: ClientSession | None = None
        self._process: ServerProcess | None = None
        self._step = "be started"
        self._bad_status: int | None = None

    @property
    def is_alive(self) -> bool:
        """False once the server is known to be gone. Any thread."""
        return self._session is not None

    @property
    def has_ended(self) -> bool:
        """True once there is nothing left to close. Any thread."""
        return self._owner is not None and self._owner.done()

    async def open(self) -> list[types.Tool]:
        """Connect, initialize, and return the server's tools. Raises `McpFailure`."""
        self._ready = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(), name=f"mcp-{self.spec.name}")
        limit_s = (self.spec.timeout_ms + limits.MCP_START_GRACE_MS) / 1000
        try:
            return await asyncio.wait_for(asyncio.shield(self._ready), limit_s)
        except TimeoutError:
            self._stop()
            raise McpFailure(self._late()) from None

    async def call(
        self, tool: str, arguments: Mapping[str, JsonValue], on_progress: OnProgress
    ) -> types.CallToolResult:
        """Call a tool and return its result, errors of the tool included. Being cancelled tells the server so.

        Raises `McpFailure` when the server gives no result.
        """
        if self._session is None:
            raise McpFailure(f"the MCP server {self.spec.name} is not connected any more")
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))

        async def show(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message)

        try:
            # Not `call_tool`: it would take a result away that does not fit the tool's output schema.
            request = types.CallToolRequest(params=params)
            return await self._session.send_request(request, types.CallToolResult, progress_callback=show)
        except (MCPError, ValidationError, RuntimeError) as error:
            raise McpFailure(self._describe_call(error)) from error

    async def close(self) -> None:
        """End the connection and the server's process; return when both have ended, at most `limits.MCP_CLOSE_MS`."""
        self._stop()
        if self._owner is None:
            return
        _, unfinished = await asyncio.wait({self._owner}, timeout=limits.MCP_CLOSE_MS / 1000)
        if unfinished:
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=limits.CANCEL_JOIN_MS / 1000)

    def _stop(self) -> None:
        self._stopping = True
        self._over.set()

    def _note_end(self) -> None:
        self._session = None
        self._over.set()

    def _note_failed_post(self, status: int | None) -> None:
        starting = not self._ready.done()
        self._note_end()
        self._fail(
            f"it could not {self._step}: " + (f"it answered HTTP {status}" if status else "it cannot be reached")
        )
        if starting and self._owner is not None:
            self._owner.cancel()  # it waits for an answer that does not come

    async def _own(self) -> None:
        try:
            async with self._transport() as (read, write):
                dispatcher = Dispatcher(read, write)
                dispatcher.on_end = self._note_end
                client = types.Implementation(name="aura", version=__version__)
                async with ClientSession(dispatcher=dispatcher, client_info=client) as session:
                    await self._live(session)
        except Exception as error:  # noqa: BLE001 whatever ends a foreign server's transport is that server's failure
            self._fail(self._describe(error))
        finally:
            self._session = None
            self._fail("its connection ended")
            if self._process is not None:
                self._end_process(self._process)

    async def _live(self, session: ClientSession) -> None:
        try:
            with anyio.fail_after(self.spec.timeout_ms / 1000):
                self._step = "initialize"
                await session.initialize()
                self._step = "list its tools"
                tools = await self._list_tools(session)
        except (MCPError, ValidationError, RuntimeError, TimeoutError) as error:
            self._fail(self._describe(error))
            return
        if not self._over.is_set():
            self._session = session
        if not self._ready.done():
            self._ready.set_result(tools)
        await self._over.wait()

    async def _list_tools(self, session: ClientSession) -> list[types.Tool]:
        capabilities = session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return []
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(limits.MCP_PAGES_MAX_COUNT):
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) >= limits.MCP_TOOLS_MAX_COUNT:
                break
        return tools[: limits.MCP_TOOLS_MAX_COUNT]

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        target = self.spec.target
        if isinstance(target, StdioTarget):
            process = self._process = ServerProcess(target, self._environment, asyncio.get_running_loop())
            command, *args = process.argv
            parameters = StdioServerParameters(
                command=command,
                args=args,
                env=process.environment,
                cwd=self._workdir,
                encoding_error_handler="replace",
            )
            async with stdio_client(parameters, errlog=process.stderr) as streams:
                process.started()
                yield streams
            return
        if target.legacy_sse:
            async with self._legacy_sse(target) as streams:
                yield streams
            return
        async with self._http_client(target) as client:
            url = target.url.reveal()
            limit = limits.MCP_SSE_EVENT_BYTES
            async with streamable_http_client(url, http_client=client, max_sse_event_size=limit) as streams:
                yield streams

    @asynccontextmanager
    async def _legacy_sse(self, target: HttpTarget) -> AsyncIterator[tuple[Any, Any]]:
        """Enter the transport before streamable HTTP. The SDK swallows what becomes of a message that it posts, so a
        post that fails ends the connection here: its answer would never come.
        """
        self._step = "open its stream"

        def make_client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return self._http_client(target, PostWatch(self._note_failed_post))

        async with sse_client(target.url.reveal(), httpx_client_factory=make_client) as streams:
            yield streams

    def _http_client(
        self, target: HttpTarget, transport: httpx2.AsyncBaseTransport | None = None
    ) -> httpx2.AsyncClient:
        async def hurry_goodbyes(request: httpx2.Request) -> None:
            if request.method == "DELETE":
                request.extensions["timeout"] = httpx2.Timeout(limits.MCP_DELETE_MS / 1000).as_dict()

        async def note_status(response: httpx2.Response) -> None:
            self._bad_status = response.status_code if response.status_code >= 400 else None

        return httpx2.AsyncClient(
            headers={name: value.reveal() for name, value in target.headers},
            timeout=httpx2.Timeout(limits.MCP_CONNECT_MS / 1000, read=None),
            event_hooks={"request": [hurry_goodbyes], "response": [note_status]},
            transport=transport,
        )

    def _fail(self, text: str) -> None:
        if not self._ready.done():
            self._failed = True
            self._ready.set_exception(McpFailure(text))
            self._ready.exception()  # marks it as seen: `open` may have given up already

    def _end_process(self, process: ServerProcess) -> None:
        process.close()
        if (self._failed or not self._stopping) and process.last_words:
            words = self._redactor.clean(process.last_words)
            _LOG.warning("the MCP server %s ended; it wrote last: %s", self.spec.name, words)

    def _late(self) -> str:
        return f"it did not {self._step} within {self.spec.timeout_ms} ms"

    def _describe(self, error: BaseException) -> str:
        """Say why the server could not be connected."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, McpFailure):
            return str(error)
        if isinstance(error, TimeoutError):
            return self._late()
        if isinstance(error, OSError):
            return f"it cannot be started: {error.strerror}"
        if isinstance(error, httpx2.HTTPStatusError):
            return f"it could not {self._step}: it answered HTTP {error.response.status_code}"
        if isinstance(error, httpx2.ConnectError):
            return "it cannot be reached"
        if isinstance(error, httpx2.TransportError):
            return f"the connection to it failed ({type(error).__name__})"
        if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
            return f"it ended before it could {self._step}"
        if isinstance(error, MCPError):
            return f"it could not {self._step}: {self._redactor.clean(error.message)}{self._status_note()}"
        return f"it could not {self._step}: its answer is not MCP ({type(error).__name__})"

    def _describe_call(self, error: Exception) -> str:
        """Say why a call has no result."""
        name = self.spec.name
        if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
            return f"the connection to the MCP server {name} was lost; whether the call took effect is unknown"
        if isinstance(error, MCPError):
            return f"the MCP server {name} refused the call: {self._redactor.clean(error.message)}{self._status_note()}"
        return f"the answer of the MCP server {name} is not MCP ({type(error).__name__})"

    def _status_note(self) -> str:
        return "" if self._bad_status is None else f" (HTTP {self._bad_status})"
