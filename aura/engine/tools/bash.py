"""Bash: runs a command in the real shell, in its own process group (engine.md 6.5 as interfaces.md 11 amends it)."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path

from aura import limits
from aura.config.spec import BashSpec
from aura.engine.executors import process
from aura.engine.executors.capture import Captured, Spill
from aura.engine.tools import paths, schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue

SHELL = Path("/bin/bash")


class BashTool:
    """Runs one command line. A non-zero exit and a timeout are results, not errors."""

    spec = ToolSpec(
        name="Bash",
        description=(
            "Run a command with /bin/bash, without standard input. The answer is its standard output, then a "
            "`STDERR:` section, then `EXIT CODE: n` when it is not 0. A long output is cut in the middle. Everything "
            "the command leaves running in its process group is ended with it."
        ),
        parameters=schema.declare(
            {
                "command": {"type": "string", "description": "The command line."},
                "workdir": {"type": "string", "description": "Where to run it; the working directory if left out."},
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": limits.BASH_TIMEOUT_MAX_MS,
                    "description": f"The command is ended after this time; {limits.BASH_TIMEOUT_MS} if left out.",
                },
            },
            required=("command",),
        ),
        path_parameter="command",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Run the command to its end. Raises `ToolError` when it cannot be started, `Cancelled` when it was ended."""
        text = schema.get_text(arguments, "command")
        timeout_ms = schema.find_integer(arguments, "timeout_ms") or limits.BASH_TIMEOUT_MS
        _check(text)
        name = re.sub(r"[^A-Za-z0-9_-]", "_", context.call_id)[:40] or "call"
        command = process.Command(
            argv=(str(SHELL), "-c", text),
            cwd=_directory(schema.find_text(arguments, "workdir"), context),
            environment=context.environment,
            timeout_ms=timeout_ms,
            cap_bytes=context.bash.max_output_bytes,
            spill_dir=context.spill_dir,
            name=name,
        )
        try:
            finished = process.run(command, context.scope, on_output=context.output, on_started=context.process_started)
        except process.StartFailed as error:
            raise ToolError(str(error)) from error
        stdout = shorten(finished.stdout, context.bash, context.spill_dir, f"{name}-stdout")
        stderr = shorten(finished.stderr, context.bash, context.spill_dir, f"{name}-stderr")
        return _render(stdout, stderr, _ending(finished, timeout_ms))


def shorten(captured: Captured, spec: BashSpec, spill_dir: Path, name: str) -> str:
    """Return a stream as the model sees it: cut in the middle, by bytes and then by lines (engine.md 6.5).

    Each cut leaves a marker that says how much is missing and which file has all of it.
    """
    head, tail = captured.head.decode("utf-8", "replace"), captured.tail.decode("utf-8", "replace")
    spill = captured.spill
    if captured.left_out_bytes:
        text = f"{_end_line(head)}[… {captured.left_out_bytes} bytes left out{_pointer(spill)} …]\n{tail}"
    else:
        text = (captured.head + captured.tail).decode("utf-8", "replace")
    lines = text.split("\n")
    shown = spec.head_lines + spec.tail_lines
    # The piece after a final line break is no line.
    count = len(lines) - (lines[-1] == "")
    if count <= max(spec.max_lines, shown):
        return text
    if spill is None and not captured.left_out_bytes:
        spill = _write_spill(captured, spill_dir, name)
    marker = f"[… {count - shown} lines left out{_pointer(spill)} …]"
    tail_lines = lines[count - spec.tail_lines :]
    return "\n".join([*lines[: spec.head_lines], marker, *tail_lines])


def _check(command: str) -> None:
    if not command.strip():
        raise ToolError("the command is empty")
    if not SHELL.exists():
        raise ToolError(f"{SHELL} is not installed")
    size_bytes = len(command.encode("utf-8", "replace"))
    if size_bytes > limits.BASH_COMMAND_MAX_BYTES:
        raise ToolError(
            f"the command has {size_bytes} bytes, more than the {limits.BASH_COMMAND_MAX_BYTES} that Linux takes; "
            "write it to a file first"
        )


def _directory(workdir: str | None, context: ToolContext) -> Path:
    if workdir is None:
        return context.workdir
    directory = paths.resolve(workdir, context.workdir, context.environment)
    if not directory.is_dir():
        raise ToolError(f"workdir {workdir} is not a directory")
    return directory


def _ending(finished: process.Finished, timeout_ms: int) -> str:
    code = finished.exit_code
    if finished.timed_out:
        return f"EXIT CODE: TIMEOUT after {timeout_ms} ms"
    if code is None:
        return "EXIT CODE: unknown, the command could not be ended"
    if code < 0:
        return f"EXIT CODE: {128 - code} ({_signal_name(-code)})"
    return f"EXIT CODE: {code}" if code else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _render(stdout: str, stderr: str, ending: str) -> str:
    text = stdout
    if stderr:
        text = f"{_end_line(text)}STDERR:\n{stderr}"
    if ending:
        text = f"{_end_line(text)}{ending}"
    return text


def _end_line(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _pointer(spill: Path | None) -> str:
    return f"; the full output is in {paths.show(spill)}" if spill is not None else ""


def _write_spill(captured: Captured, directory: Path, name: str) -> Path | None:
    spill = Spill(directory, name)
    spill.write(captured.head + captured.tail)
    return spill.close()
