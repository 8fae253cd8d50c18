"""Reading and replacing whole text files safely. It knows no tool and records no read."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from aura import limits
from aura.engine.tools.base import ToolError
from aura.engine.tools.paths import explain

_SURROGATES = re.compile("[\ud800-\udfff]")


def read_bytes(path: Path, shown: str) -> bytes:
    """Return the content of a regular text file of at most `limits.TOOL_FILE_MAX_BYTES`.

    Raises `ToolError`, naming `shown`, for a missing file, a directory, a device or pipe (which is never waited for), a
    larger file, and one with NUL bytes.
    """
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to must not hang.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check_kind(os.fstat(file.fileno()).st_mode, shown)
            content = file.read(limits.TOOL_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise explain(error, shown) from error
    if len(content) > limits.TOOL_FILE_MAX_BYTES:
        mebibytes = limits.TOOL_FILE_MAX_BYTES // (1024 * 1024)
        raise ToolError(f"{shown} is larger than {mebibytes} MiB; look at parts of it with Rg, or with sed in Bash")
    if b"\0" in content:
        raise ToolError(f"{shown} is a binary file")
    return content


def replace(path: Path, content: bytes, shown: str) -> None:
    """Make `content` the file's content in one step: a reader sees all of the old or all of the new.

    A symbolic link is followed and stays; the mode stays; missing parent directories are made. When this raises
    `ToolError`, naming `shown`, the file is as it was.
    """
    try:
        target = Path(os.path.realpath(path))
        mode = _find_mode(path, shown)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".aura-{secrets.token_hex(8)}.tmp"
        try:
            _write(temporary, content, mode)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise explain(error, shown) from error


def encode(text: str) -> bytes:
    """Return UTF-8; half of a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", text).encode("utf-8")


def _find_mode(path: Path, shown: str) -> int | None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    _check_kind(mode, shown)
    return stat.S_IMODE(mode)


def _check_kind(mode: int, shown: str) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown} is a directory")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{shown} is not a regular file")


def _write(path: Path, content: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
