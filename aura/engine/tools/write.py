"""Write: makes a file, or replaces all of one, in one step (engine.md 6.2; interfaces.md 11 allows empty content)."""

from __future__ import annotations

from collections.abc import Mapping

from aura.engine.tools import paths, schema, text_files
from aura.engine.tools.base import ToolContext, ToolSpec
from aura.jsontypes import JsonValue


class WriteTool:
    """Writes a whole file. That an existing one was read before is a gate's business."""

    spec = ToolSpec(
        name="Write",
        description=(
            "Write a file: makes it with its parent directories, or replaces its whole content. A file that exists "
            "must have been read first. To change a part of a file, use Edit."
        ),
        parameters=schema.declare(
            {
                "path": {"type": "string", "description": "The file; relative to the working directory."},
                "content": {"type": "string", "description": "The whole new content; it may be empty."},
            },
            required=("path", "content"),
        ),
        path_parameter="path",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Replace the file; return `W <path> (<n> bytes)`."""
        shown = schema.get_text(arguments, "path").strip()
        path = paths.resolve(shown, context.workdir, context.environment)
        content = text_files.encode(schema.get_text(arguments, "content"))
        text_files.replace(path, content, shown)
        context.reads.record(path)
        return f"W {shown} ({len(content)} bytes)"
