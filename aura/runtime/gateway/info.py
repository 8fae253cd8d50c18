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
        "created": (spec.created_at_ms or 0) // 1000,
        "owned_by": spec.owner or spec.model.provider.wire_name,
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
    fields: Fields
    if isinstance(server.target, HttpTarget):
        transport = "sse" if server.target.legacy_sse else "http_streamable"
        fields = {"transport": transport, "url": origin(server.target.url.reveal())}
    else:
        fields = {"transport": "stdio", "command": program(server.target.command.reveal())}
    if server.description:
        fields["description"] = server.description
    return fields


def origin(url: str) -> str:
    """Return `scheme://host:port` of a URL, nothing else of it; `INVALID_URL` for what has no origin."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return INVALID_URL
    # An @ behind the authority: somebody may have meant what is before it as a password.
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in f"{parts.path}{parts.query}{parts.fragment}"
    ):
        return INVALID_URL
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")


def program(command: str) -> str:
    """Return the file name of a program; `UNKNOWN_COMMAND` for what has none."""
    name = os.path.basename(command.strip())
    return name if name not in ("", ".", "..") else UNKNOWN_COMMAND
