"""What is said of an agent to anybody who may ask: no secret, and nothing that could hold one (gateway.md 2.4, 2.5).

Addresses are cut to their origin and commands to their name, because a token may stand anywhere else in them.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from aura.config.spec import AgentSpec, HttpTarget, McpServerSpec
from aura.jsontypes import JsonValue

INVALID_URL = "<invalid url>"
UNKNOWN_COMMAND = "<unknown>"
Fields = dict[str, JsonValue]


def model_entry(agent_id: str, spec: AgentSpec) -> JsonValue:
    """Return the agent's entry of `GET /v1/models`."""
    fields: Fields = {
        "id": agent_id,
        "object": "model",
        "created": 0,
        "owned_by": spec.model.provider.name,
    }
    return fields | ({"description": spec.description} if spec.description else {})


def agent_info(agent_id: str, spec: AgentSpec) -> JsonValue:
    """Return the agent's entry of `GET /aura/info`."""
    fields: Fields = {"id": agent_id}
    if spec.description:
        fields["description"] = spec.description
    fields["model"] = spec.model.name
    fields["mcp_servers"] = {server.name: server_info(server) for server in spec.mcp}
    return fields


def server_info(server: McpServerSpec) -> JsonValue:
    """Return what may be said of an MCP server."""
    if isinstance(server.target, HttpTarget):
        return {"transport": "http_streamable", "url": origin(server.target.url.reveal())}
    return {"transport": "stdio", "command": program(server.target.command.reveal())}


def origin(url: str) -> str:
    """Return `scheme://host:port` of a URL, nothing else of it; `INVALID_URL` for what has no origin."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return INVALID_URL
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return INVALID_URL
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")


def program(command: str) -> str:
    """Return the file name of a program; `UNKNOWN_COMMAND` for what has none."""
    name = os.path.basename(command.strip())
    return name if name not in ("", ".", "..") else UNKNOWN_COMMAND
