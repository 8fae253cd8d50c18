"""Writes to standard output and standard error: bytes in UTF-8 whatever the locale, flushed, with clear failures."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.wire import canonical


def write_stdout(data: bytes | str) -> None:
    """Write to standard output and flush it.

    Raises `BrokenPipeError` when nobody reads it any more, and `BadRequest` when it is closed or cannot be written.
    """
    if sys.stdout is None:
        raise BadRequest("standard output is closed")
    try:
        _write(sys.stdout, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_stdout()
        raise BadRequest(f"standard output cannot be written: {error.strerror}") from error


def write_stderr(data: bytes | str) -> None:
    """Write to standard error and flush it. A standard error that nobody can read is no reason to fail."""
    if sys.stderr is None:
        return
    try:
        _write(sys.stderr, data)
    except OSError:
        _discard(sys.stderr)


def discard_stdout() -> None:
    """Send what is left for standard output nowhere, so that the interpreter's own flush at exit does not fail."""
    if sys.stdout is not None:
        _discard(sys.stdout)


def json_line(value: JsonValue) -> bytes:
    """Return a value as one line of canonical JSON."""
    return canonical.encode(value) + b"\n"


def _discard(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null, stream.fileno())
    os.close(null)


def _write(stream: TextIO, data: bytes | str) -> None:
    stream.flush()
    left = memoryview(data if isinstance(data, bytes) else canonical.encode_text(data))
    while left:
        left = left[stream.buffer.write(left) :]  # an unbuffered stream may take less than all
    stream.buffer.flush()
