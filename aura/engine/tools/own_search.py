"""A small stand-in for ripgrep, run as a program of its own: a bad expression can keep Python's `re` busy for ever, and
only a process can be ended then.

Usage: own_search.py PATTERN PATH. Prints `path:line:text`; exit 0 with matches, 1 without, 2 for a bad expression. Like
ripgrep it leaves out hidden files, binary files and links; unlike it, it does not read ignore files but leaves out a
few directories that hold no sources. It imports nothing of aura.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import BinaryIO

_FILE_MAX_BYTES = 16 * 1024 * 1024
_LINE_MAX_CHARS = 500
_LEFT_OUT = frozenset(("node_modules", "__pycache__"))


def main(arguments: list[str], output: BinaryIO) -> int:
    """Search and print; return the exit status."""
    pattern, root = arguments
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return 2
    found = False
    for path in [root] if os.path.isfile(root) else _files(root):
        for number, line in _matches(path, expression):
            found = True
            output.write(os.fsencode(path.removeprefix("./")) + f":{number}:{line}\n".encode())
    return 0 if found else 1


def _files(root: str) -> Iterator[str]:
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            path = os.path.join(directory, name)
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):
                yield path


def _matches(path: str, expression: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        with open(path, "rb") as file:
            content = file.read(_FILE_MAX_BYTES + 1)
    except OSError:
        return  # unreadable or gone: a search shows what it can see
    if len(content) > _FILE_MAX_BYTES or b"\0" in content:
        return
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
        text = line.removesuffix("\r")
        if expression.search(text):
            yield number, text if len(text) <= _LINE_MAX_CHARS else f"{text[:_LINE_MAX_CHARS]} [… long line …]"


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:], sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:
        status = 0
    sys.exit(status)
