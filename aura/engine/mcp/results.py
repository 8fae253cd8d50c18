"""What an MCP server says, in the engine's terms: listed tools as `ToolSpec`s, results as text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from aura import limits
from aura.engine.tools.base import ToolSpec
from aura.jsontypes import JsonObject

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock, Tool

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def face_tools(server: str, tools: Iterable[Tool]) -> tuple[dict[str, ToolSpec], list[str]]:
    """Return the tools as a model sees them, by the server's own names, and a sentence for each that is left out.

    A name is `mcp__<server>__<tool>`; characters that no model provider takes become underscores. The schema is the
    server's, which alone knows how to check it.
    """
    faces: dict[str, ToolSpec] = {}
    left_out: list[str] = []
    names: set[str] = set()
    for tool in tools:
        name = f"mcp__{server}__{_NOT_IN_NAMES.sub('_', tool.name)}"
        shown = json.dumps(tool.name[: limits.MCP_TOOL_NAME_MAX_CHARS], ensure_ascii=False)
        if len(name) > limits.MCP_TOOL_NAME_MAX_CHARS:
            left_out.append(f"its tool {shown} is left out: {name[:100]} is too long a name")
        elif name in names:
            left_out.append(f"its tool {shown} is left out: there is another one named {name}")
        else:
            names.add(name)
            faces[tool.name] = _face(name, server, tool)
    return faces, left_out


def result_text(result: CallToolResult) -> str:
    """Return what a model reads of a result: its texts joined by newlines, every other part as JSON.

    A result without any part is its structured content, if it has some.
    """
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(_part_text(part) for part in result.content)


def _face(name: str, server: str, tool: Tool) -> ToolSpec:
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    description = (tool.description or "").strip() or tool.title or f"The tool {tool.name} of the MCP server {server}."
    return ToolSpec(
        name=name,
        description=description,
        parameters=_schema(tool.input_schema),
        read_only=read_only,
        parallel=read_only,
        own_schema=False,
    )


def _schema(schema: JsonObject) -> JsonObject:
    # Some model providers refuse the schema of a tool without parameters unless it says so in full.
    return {"type": "object", "properties": {}, **schema}


def _part_text(part: ContentBlock) -> str:
    if part.type == "text":
        return part.text
    fields = cast(JsonObject, part.model_dump(mode="json", by_alias=True, exclude_none=True))
    return json.dumps(fields, ensure_ascii=False)
