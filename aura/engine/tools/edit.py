"""Edit: replaces an exact piece of a text file (engine.md 6.2; interfaces.md 11 allows an empty new_string)."""

from __future__ import annotations

from collections.abc import Mapping

from aura.engine.tools import paths, schema, text_files
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue


class EditTool:
    """Changes a part of a file. Bytes that it does not touch stay as they are, also when they are not UTF-8."""

    spec = ToolSpec(
        name="Edit",
        description=(
            "Replace old_string by new_string in a file that was read before. old_string must occur exactly once, "
            "white space included, unless replace_all is true. An empty new_string deletes."
        ),
        parameters=schema.declare(
            {
                "file_path": {"type": "string", "description": "The file; relative to the working directory."},
                "old_string": {"type": "string", "description": "The exact text to replace, without line numbers."},
                "new_string": {"type": "string", "description": "The text that takes its place."},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence."},
            },
            required=("file_path", "old_string", "new_string"),
        ),
        path_parameter="file_path",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Replace in one step; return `E <path> (<n> replacements)`."""
        shown = schema.get_text(arguments, "file_path").strip()
        path = paths.resolve(shown, context.workdir, context.environment)
        old = text_files.encode(schema.get_text(arguments, "old_string"))
        new = text_files.encode(schema.get_text(arguments, "new_string"))
        if not old:
            raise ToolError("old_string is empty; use Write to make a file")
        if old == new:
            raise ToolError("old_string and new_string are identical")
        content = text_files.read_bytes(path, shown)
        old, new = _with_line_ends_of(content, old, new)
        count = content.count(old)
        if count == 0:
            raise ToolError(f"old_string does not occur in {shown}; read the file and copy the text exactly")
        if count > 1 and not schema.is_set(arguments, "replace_all"):
            raise ToolError(
                f"old_string occurs {count} times in {shown}; add lines around it to make it unique, or set replace_all"
            )
        text_files.replace(path, content.replace(old, new), shown)
        context.reads.record(path)
        return f"E {shown} ({count} {'replacement' if count == 1 else 'replacements'})"


def _with_line_ends_of(content: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    # Read shows CRLF lines without their CR, so the model cannot write it.
    if old in content or b"\r\n" not in content or b"\r" in old:
        return old, new
    return old.replace(b"\n", b"\r\n"), new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
