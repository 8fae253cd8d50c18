"""Ls: lists a directory, to a depth (engine.md 6.2)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from aura import limits
from aura.engine.scope import Scope
from aura.engine.tools import paths, schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue

_DEPTH_MAX = 50


class LsTool:
    """Lists names only; links to directories are shown and not entered."""

    spec = ToolSpec(
        name="Ls",
        description=(
            "List a directory: directories first, marked with `/`, then files, as paths relative to it. depth 2 also "
            "lists what is in its directories, and so on."
        ),
        parameters=schema.declare(
            {
                "path": {"type": "string", "description": "The directory; the working directory when left out."},
                "depth": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": _DEPTH_MAX,
                    "description": "Levels; 1 if absent.",
                },
            }
        ),
        read_only=True,
        path_parameter="path",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return one entry per line, at most `limits.LISTING_MAX_COUNT`."""
        shown = (schema.find_text(arguments, "path") or ".").strip()
        root = paths.resolve(shown, context.workdir, context.environment)
        if root.is_file():
            raise ToolError(f"{shown} is a file; use Read")
        walk = _Walk(root, schema.find_integer(arguments, "depth") or 1, context.scope)
        try:
            lines = list(walk.lines(os.fspath(root), "", 1))
        except OSError as error:
            raise paths.explain(error, shown) from error
        if walk.left_out:
            lines.append(f"[… more entries are left out after {len(lines)}; list a smaller directory or depth …]")
        return "\n".join(lines) if lines else "Empty directory"


class _Walk:
    """One listing, with its bounds."""

    def __init__(self, root: Path, depth: int, scope: Scope) -> None:
        self._root = root
        self._depth = depth
        self._scope = scope
        self._shown = 0
        self._seen = 0
        self.left_out = False

    def lines(self, directory: str, prefix: str, level: int) -> Iterator[str]:
        """Yield the lines of one directory and of those below it."""
        self._scope.check()
        folders, files = self._scan(directory)
        for entry in folders:
            if self._full():
                return
            name = prefix + paths.show(entry.name) + "/"
            yield name
            if level < self._depth and not entry.is_symlink():
                yield from self._lines_below(entry.path, name, level + 1)
        for entry in files:
            if self._full():
                return
            yield prefix + paths.show(entry.name)

    def _lines_below(self, directory: str, prefix: str, level: int) -> Iterator[str]:
        try:
            yield from self.lines(directory, prefix, level)
        except OSError as error:
            yield f"{prefix}… (cannot be listed: {error.strerror})"

    def _scan(self, directory: str) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]]]:
        folders: list[os.DirEntry[str]] = []
        files: list[os.DirEntry[str]] = []
        with os.scandir(directory) as entries:
            for entry in entries:
                self._seen += 1
                if self._seen > limits.WALK_MAX_COUNT:
                    self.left_out = True
                    break
                (folders if _is_directory(entry) else files).append(entry)
        return sorted(folders, key=lambda entry: entry.name), sorted(files, key=lambda entry: entry.name)

    def _full(self) -> bool:
        self._shown += 1
        if self._shown <= limits.LISTING_MAX_COUNT:
            return False
        self.left_out = True
        return True


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads round in a circle is listed like a file.
        return False
