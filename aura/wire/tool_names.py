"""Names of tools: what a model sees, and what the gateway shows of it (interfaces.md section 8, tool identity)."""

from __future__ import annotations

_MCP = "mcp__"


def split_tool_name(name: str) -> tuple[str, str | None]:
    """Return (bare name, namespace): of `mcp__<server>__<tool>` the tool and the server, of others the name and None.

    A server's name has no double underscore, so the first one ends it.
    """
    if not name.startswith(_MCP):
        return name, None
    server, separator, tool = name.removeprefix(_MCP).partition("__")
    return (tool, server) if separator and server and tool else (name, None)
