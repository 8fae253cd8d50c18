"""Rg: searches file contents with ripgrep, or with `own_search` where it is not installed (interfaces.md 11)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from aura import limits
from aura.engine.executors import process
from aura.engine.executors.capture import Captured
from aura.engine.tools import own_search, paths, schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue

_NO_MATCH = 1  # exit status of both programs


class RgTool:
    """Searches below a directory or in a file. `program` None: ripgrep if the environment's PATH has it."""

    spec = ToolSpec(
        name="Rg",
        description=(
            "Search file contents by a regular expression. Each match is shown as `path:line:text`; the answer is "
            "empty when nothing matches. Hidden and binary files are left out."
        ),
        parameters=schema.declare(
            {
                "pattern": {"type": "string", "description": "A regular expression."},
                "path": {"type": "string", "description": "A directory or file; the working directory if left out."},
            },
            required=("pattern",),
        ),
        read_only=True,
        path_parameter="path",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return the matches. Raises `ToolError` for a bad expression, a missing path and a search that is too slow."""
        pattern = schema.get_text(arguments, "pattern")
        shown = (schema.find_text(arguments, "path") or ".").strip()
        path = paths.resolve(shown, context.workdir, context.environment)
        if not path.exists():
            raise ToolError(f"{shown} does not exist")
        command = process.Command(
            argv=_command_line(pattern, _target(path, context.workdir), context.environment.get("PATH")),
            cwd=context.workdir,
            environment=context.environment,
            timeout_ms=limits.RG_TIMEOUT_MS,
            cap_bytes=limits.RG_OUTPUT_MAX_BYTES,
        )
        try:
            finished = process.run(command, context.scope)
        except process.StartFailed as error:
            raise ToolError(str(error)) from error
        if finished.timed_out:
            raise ToolError(f"the search took longer than {limits.RG_TIMEOUT_MS // 1000} s; narrow pattern or path")
        matches = _render(finished.stdout)
        if matches or finished.exit_code in (0, _NO_MATCH):
            return matches
        reason = finished.stderr.head.decode("utf-8", "replace").strip()
        raise ToolError(f"the search failed: {reason or f'exit code {finished.exit_code}'}")


def _command_line(pattern: str, target: str, search_path: str | None) -> tuple[str, ...]:
    program = shutil.which("rg", path=search_path)
    if program is None:
        return (sys.executable, "-I", "-S", "-X", "utf8", own_search.__file__, pattern, target)
    columns = f"--max-columns={limits.RG_LINE_MAX_CHARS}"
    fixed = ("--no-config", "--color=never", "--no-heading", "--with-filename", "-n", "--sort=path", columns)
    return (program, *fixed, "--max-columns-preview", "-e", pattern, "--", target)


def _target(path: Path, workdir: Path) -> str:
    # "./" keeps a name that begins with "-" a name.
    text = os.path.normpath(path)
    base = os.path.normpath(workdir)
    if text == base:
        return "./"
    return f"./{text[len(base) + 1 :]}" if text.startswith(f"{base}/") else text


def _render(captured: Captured) -> str:
    if not captured.left_out_bytes:
        content = captured.head + captured.tail
    else:
        # Whole lines only on both sides of the gap.
        head = captured.head.rpartition(b"\n")[0]
        tail = captured.tail.partition(b"\n")[2]
        content = head + "\n[… more matches are left out; narrow pattern or path …]\n".encode() + tail
    lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n")
    return "\n".join(line.removeprefix("./") for line in lines)
