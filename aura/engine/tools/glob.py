"""Glob: finds files by a pattern with `*`, `**`, `?`, `[…]` and `{a,b}` (engine.md 6.2). It reads no file's content."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from aura import limits
from aura.engine.scope import Scope
from aura.engine.tools import paths, schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue

_MAGIC = re.compile(r"[*?\[]")


class GlobTool:
    """Finds files only. Ignore files are not looked at; `**` does not enter linked directories."""

    spec = ToolSpec(
        name="Glob",
        description=(
            "Find files by a pattern such as `**/*.py` or `src/{a,b}/*.md`. The answer is their absolute paths, "
            "sorted; it is empty when nothing matches."
        ),
        parameters=schema.declare(
            {
                "pattern": {"type": "string", "description": "`**` stands for any number of directories."},
                "path": {"type": "string", "description": "Where to look; the working directory when left out."},
            },
            required=("pattern",),
        ),
        read_only=True,
        path_parameter="path",
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return `Found N matches:` and the paths, at most `limits.LISTING_MAX_COUNT` of them."""
        pattern = schema.get_text(arguments, "pattern").strip()
        shown = (schema.find_text(arguments, "path") or ".").strip()
        root = paths.resolve(shown, context.workdir, context.environment)
        if not root.is_dir():
            raise ToolError(f"{shown} is not a directory")
        if not pattern or "\0" in pattern:
            raise ToolError("the pattern is empty or holds a NUL character")
        search = _Search(context.scope)
        for plain in expand_braces(pattern):
            search.run(root, plain)
        found = sorted(search.found)
        if not found:
            return ""
        lines = [f"Found {len(found)} {'match' if len(found) == 1 else 'matches'}:"]
        lines += [paths.show(path) for path in found[: limits.LISTING_MAX_COUNT]]
        if len(found) > limits.LISTING_MAX_COUNT:
            lines.append(f"[… {len(found) - limits.LISTING_MAX_COUNT} more are left out; use a narrower pattern …]")
        if search.gave_up:
            lines.append("[… the search stopped early: too many files; use a narrower path …]")
        return "\n".join(lines)


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns that `pattern`'s braces stand for; nesting is allowed, an unclosed brace is literal.

    Raises `ToolError` when there are more than `limits.GLOB_BRACES_MAX_COUNT`.
    """
    done: list[str] = []
    open_patterns = [pattern]
    while open_patterns:
        current = open_patterns.pop()
        group = _find_group(current)
        if group is None:
            done.append(current)
        else:
            start, end = group
            choices = _split_choices(current[start + 1 : end])
            open_patterns += [current[:start] + choice + current[end + 1 :] for choice in choices]
        if len(done) + len(open_patterns) > limits.GLOB_BRACES_MAX_COUNT:
            raise ToolError(f"the braces stand for more than {limits.GLOB_BRACES_MAX_COUNT} patterns")
    return done


class _Search:
    """All matches of some patterns, with one bound on the work."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._visited = 0
        self.found: set[str] = set()
        self.gave_up = False

    def run(self, root: Path, pattern: str) -> None:
        """Add the files below `root`, or below `/` for an absolute pattern, that match."""
        segments = _segments(pattern)
        start = "/" if pattern.startswith("/") else os.path.normpath(root)
        states = [(start, 0)]
        known = set(states)
        while states and not self.gave_up:
            self._scope.check()
            directory, index = states.pop()
            for state in self._step(directory, segments, index):
                if state not in known:
                    known.add(state)
                    states.append(state)

    def _step(self, directory: str, segments: list[str], index: int) -> Iterator[tuple[str, int]]:
        segment, last = segments[index], index == len(segments) - 1
        if segment == "**":
            yield directory, index + 1
            yield from ((entry.path, index) for entry in self._scan(directory) if _is_directory(entry, follow=False))
            return
        if not _MAGIC.search(segment):
            path = os.path.normpath(os.path.join(directory, segment))
            if last and os.path.isfile(path):
                self.found.add(path)
            elif not last and os.path.isdir(path):
                yield path, index + 1
            return
        matches = re.compile(fnmatch.translate(segment.replace("[^", "[!"))).match
        for entry in self._scan(directory):
            if not matches(entry.name):
                continue
            if last and _is_file(entry):
                self.found.add(entry.path)
            elif not last and _is_directory(entry, follow=True):
                yield entry.path, index + 1

    def _scan(self, directory: str) -> Iterator[os.DirEntry[str]]:
        try:
            entries = os.scandir(directory)
        except OSError:
            return  # unreadable or gone: a search shows what it can see
        with entries:
            for entry in entries:
                self._visited += 1
                if self._visited > limits.WALK_MAX_COUNT:
                    self.gave_up = True
                    return
                yield entry


def _segments(pattern: str) -> list[str]:
    segments: list[str] = []
    for segment in pattern.split("/"):
        if segment in ("", ".") or (segment == "**" and segments[-1:] == ["**"]):
            continue
        segments.append(segment)
    if not segments:
        raise ToolError("the pattern names no file")
    return [*segments, "*"] if segments[-1] == "**" else segments


def _find_group(pattern: str) -> tuple[int, int] | None:
    start = pattern.find("{")
    while start != -1:
        depth = 0
        for position in range(start, len(pattern)):
            depth += {"{": 1, "}": -1}.get(pattern[position], 0)
            if depth == 0:
                return start, position
        start = pattern.find("{", start + 1)
    return None


def _split_choices(body: str) -> list[str]:
    choices, depth, begin = [], 0, 0
    for position, character in enumerate(body):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            choices.append(body[begin:position])
            begin = position + 1
    return [*choices, body[begin:]]


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _is_directory(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False
