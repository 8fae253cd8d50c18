"""Paths as a model writes them: where they point, and how a failure at one of them is told. It opens nothing."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from aura.engine.tools.base import ToolError

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ELOOP: "is a loop of symbolic links",
    errno.ENOTDIR: "leads through something that is not a directory",
    errno.EISDIR: "is a directory",
    errno.EACCES: "may not be accessed (permission denied)",
    errno.EPERM: "may not be changed (not permitted)",
    errno.EROFS: "is on a read-only file system",
    errno.ENAMETOOLONG: "has too long a name",
    errno.ENOSPC: "does not fit: no space is left on the device",
    errno.EDQUOT: "does not fit: the disk quota is used up",
}


def resolve(text: str, workdir: Path, environment: Mapping[str, str]) -> Path:
    """Return the path that `text` names: variables expanded, relative to `workdir` (engine.md 6.1).

    An unknown variable stays as it is written. Raises `ToolError` for an empty path, for `/` alone, and for text that
    no path can have.
    """
    expanded = _VARIABLE.sub(lambda found: environment.get(found[1] or found[2], found[0]), text.strip())
    if not expanded:
        raise ToolError("the path is empty")
    if "\0" in expanded:
        raise ToolError("a path cannot hold a NUL character")
    try:
        expanded.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("a path cannot hold half of a surrogate pair") from None
    path = workdir / expanded
    if os.path.normpath(path) in ("/", "//"):
        raise ToolError("the path / is refused: name a directory below it")
    return path


def show(path: str | Path) -> str:
    """Return `path` as text that every encoder takes: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def show_below(path: str | Path, workdir: Path) -> str:
    """Return `path` relative to `workdir` when it lies in it, else as it is."""
    text, base = os.fspath(path), os.fspath(workdir).rstrip("/") + "/"
    return show(text.removeprefix(base))


def explain(error: OSError, shown: str) -> ToolError:
    """Return the `ToolError` for a failed system call on the path that the model wrote as `shown`."""
    reason = _REASONS.get(error.errno or 0)
    return ToolError(f"{shown} {reason}" if reason else f"{shown}: {error.strerror or error}")
