"""Read: shows a text file, or a range of it, with line numbers (engine.md 6.2)."""

from __future__ import annotations

from collections.abc import Mapping

from aura import limits
from aura.engine.tools import paths, schema, text_files
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue


class ReadTool:
    """Reads without changing anything; what it showed may be written afterwards."""

    spec = ToolSpec(
        name="Read",
        description=(
            "Read a text file. Each line is shown as `N: text`. Without a range the whole file is shown; line_start "
            "and line_end (both included, from 1) select a part. A range of a small file is answered with the whole "
            "file. With count the answer is only the number of lines."
        ),
        parameters=schema.declare(
            {
                "path": {"type": "string", "description": "The file; relative to the working directory."},
                "line_start": {"type": "integer", "minimum": 1, "description": "First line, from 1."},
                "line_end": {"type": "integer", "minimum": 1, "description": "Last line."},
                "count": {"type": "boolean", "description": "Only count the lines."},
            },
            required=("path",),
        ),
        read_only=True,
        path_parameter="path",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return the numbered lines, or their number. Bytes that are not UTF-8 are shown as U+FFFD."""
        shown = schema.get_text(arguments, "path").strip()
        path = paths.resolve(shown, context.workdir, context.environment)
        content = text_files.read_bytes(path, shown)
        lines = split_lines(content.decode("utf-8", "replace"))
        if schema.is_set(arguments, "count"):
            return str(len(lines))
        first, last = _range(arguments, len(content), len(lines), shown)
        context.reads.record(path)
        if not lines:
            return f"{shown} is empty"
        return "\n".join(f"{number}: {lines[number - 1]}" for number in range(first, last + 1))


def split_lines(text: str) -> list[str]:
    """Return the lines as an editor counts them: a final line break ends the last line and begins none."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _range(arguments: Mapping[str, JsonValue], size_bytes: int, line_count: int, shown: str) -> tuple[int, int]:
    first = schema.find_integer(arguments, "line_start") or 1
    last = schema.find_integer(arguments, "line_end")
    if last is not None and last < first:
        raise ToolError(f"line_end {last} lies before line_start {first}")
    if first > max(line_count, 1):
        raise ToolError(f"{shown} has {line_count} lines; line_start {first} lies behind them")
    small = size_bytes // limits.TOKEN_ESTIMATE_BYTES < limits.READ_SMALL_FILE_TOKENS
    if small and first > 1 and last is not None:
        return 1, line_count
    return first, line_count if last is None else min(last, line_count)
