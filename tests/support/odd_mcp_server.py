"""An MCP server, made with the official SDK, for what well-behaved ones do not do. A program of its own, not a test.

With the argument `stdio` it speaks on its standard streams, with `http PORT` over HTTP at /mcp, with `sse PORT` by the
transport before that at /sse. ODD_REFUSE names a method whose posted messages are answered with 400. ODD_LOG names a
file that gets every message which the server receives, one line of JSON each. ODD_MODE asks for odd behaviour at the
start: `silent` never answers, `crash` ends at once, `refuse` answers initialize with an error, `stubborn` ignores the
end of standard input and SIGTERM, `chatty` writes what is no MCP on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations

MODE = os.environ.get("ODD_MODE", "")
LOG = os.environ.get("ODD_LOG")
REFUSE = os.environ.get("ODD_REFUSE", "")
server = MCPServer("odd")


def note(message: Any) -> None:
    """Add a line to the log."""
    if LOG:
        with open(LOG, "a") as log:
            log.write(json.dumps(message) + "\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Say it again."""
    return f"you said {text}"


@server.tool()
def fail(text: str) -> CallToolResult:
    """Answer with an error of the tool."""
    return CallToolResult(content=[TextContent(text=text), TextContent(text="second part")], is_error=True)


@server.tool()
def mixed() -> CallToolResult:
    """Answer with text, an image and text."""
    image = ImageContent(data="aGk=", mime_type="image/png")
    return CallToolResult(content=[TextContent(text="before"), image, TextContent(text="after")])


@server.tool()
async def slow(seconds: float, context: Context) -> str:
    """Work for a while and report progress."""
    await context.report_progress(1, 2, "half of it")
    await anyio.sleep(seconds)
    return "done at last"


@server.tool()
def crash() -> str:
    """End the server in the middle of the call."""
    os._exit(3)


@server.tool()
def huge(size: int) -> str:
    """Answer with a long text."""
    return "x" * size


@server.tool()
def environment(name: str) -> str:
    """Return a variable of the server's environment."""
    return os.environ.get(name, "not set")


@server.tool()
def inspect() -> str:
    """Return the process ids of this server: its own, its group, its parent."""
    return json.dumps({"pid": os.getpid(), "group": os.getpgid(0), "parent": os.getppid(), "cwd": os.getcwd()})


class LoggedInput:
    """Standard input, of which every line is noted."""

    def __aiter__(self) -> LoggedInput:
        return self

    async def __anext__(self) -> str:
        line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        if not line:
            note("end of input")
            if MODE == "stubborn":
                await anyio.sleep_forever()
            raise StopAsyncIteration
        note(json.loads(line))
        return line


async def serve_stdio() -> None:
    """Serve on the standard streams."""
    lowlevel = server._lowlevel_server
    stdin: Any = LoggedInput()
    async with stdio_server(stdin=stdin) as (read, write):
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


def serve_http(port: int, *, legacy: bool = False) -> None:
    """Serve over HTTP on the loopback address; a request without the right header is refused if ODD_TOKEN is set."""
    import uvicorn

    inner = server.sse_app() if legacy else server.streamable_http_app()
    token = os.environ.get("ODD_TOKEN")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if token and headers.get(b"authorization") != f"Bearer {token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return

        refused = False

        async def receive_noted() -> Any:
            nonlocal refused
            message = await receive()
            if message.get("body"):
                content = json.loads(message["body"])
                note(content)
                refused = REFUSE != "" and content.get("method") == REFUSE
            return message if not refused else {"type": "http.request", "body": b"no JSON"}

        await inner(scope, receive_noted, send)

    note("listening")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def main() -> None:
    """Do what the command line and ODD_MODE say."""
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "crash":
        print("the secret is", os.environ.get("ODD_SECRET"), file=sys.stderr, flush=True)
        sys.exit(7)
    if MODE == "silent":
        note("silent")
        while True:
            time.sleep(60)
    if MODE == "chatty":
        print("Welcome to the odd server!", flush=True)
    if MODE == "refuse":
        request = json.loads(sys.stdin.readline())
        error = {"code": -32603, "message": f"go away, {os.environ.get('ODD_SECRET')}"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
        sys.stdin.read()
    elif sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http(int(sys.argv[2]), legacy=sys.argv[1] == "sse")


if __name__ == "__main__":
    main()
