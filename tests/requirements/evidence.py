"""Reads from the test files which tests name which requirements. It imports and runs none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TESTS = Path(__file__).resolve().parents[1]
MARKER = "requirement"
NEVER_RUN = frozenset({"skip", "xfail"})
Servers = Literal["both", "either", ""]

# Tests that start HTTP servers: on both kinds in every run (a fixture's parameters), or on the kind that
# AURA_TEST_SERVER names (tests/support/serving.py).
BOTH = ("contract/api/", "contract/api_schema/")
EITHER = ("contract/serve/", "contract/commands/", "contract/mcp/test_served.py", "crash/serve/")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A test that names requirements. `file` is relative to the folder of all tests."""

    file: str
    test: str
    ids: tuple[str, ...]
    runs: bool

    @property
    def servers(self) -> Servers:
        """Which HTTP servers it runs on; empty where it starts none."""
        if self.file.startswith(BOTH):
            return "both"
        return "either" if self.file.startswith(EITHER) else ""


class BadMarker(Exception):
    """A marker that cannot be read, with its file and line."""


def read_evidence(root: Path = TESTS) -> list[Evidence]:
    """Return the tests below `root` that name requirements, by file and position.

    Raises BadMarker where a marker has no ids or other arguments than literal ids, or stands elsewhere than on a test
    function.
    """
    found: list[Evidence] = []
    for path in sorted(root.rglob("test_*.py")):
        found += read_module(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    return found


def read_module(text: str, file: str) -> list[Evidence]:
    """Return the tests of one module that name requirements. Raises BadMarker as `read_evidence` does."""
    tree = ast.parse(text, file)
    found = []
    on_tests = set()
    for function in _tests(tree):
        markers = [mark for mark in map(_marker, function.decorator_list) if mark is not None]
        ours = [call for name, call in markers if name == MARKER]
        if not ours:
            continue
        on_tests |= {id(_reference(call)) for call in ours}
        ids = tuple(one for call in ours for one in _ids(call, file))
        found.append(Evidence(file, function.name, ids, not NEVER_RUN & {name for name, _ in markers}))
    for node in ast.walk(tree):
        if _mark_name(node) == MARKER and id(node) not in on_tests:
            raise BadMarker(f"{file}:{node.lineno}: a requirement is named elsewhere than on a test function")  # type: ignore[attr-defined]
    return found


def _tests(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def _marker(decorator: ast.expr) -> tuple[str, ast.expr] | None:
    name = _mark_name(_reference(decorator))
    return None if name is None else (name, decorator)


def _reference(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _mark_name(node: ast.AST) -> str | None:
    """Return `name` of an expression `pytest.mark.name`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark":
        return node.attr
    return None


def _ids(call: ast.expr, file: str) -> Iterator[str]:
    arguments = call.args if isinstance(call, ast.Call) and not call.keywords else []
    if not arguments:
        raise BadMarker(f"{file}:{call.lineno}: the marker takes one or more ids and nothing else")
    for argument in arguments:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise BadMarker(f"{file}:{argument.lineno}: an id is a literal string")
        yield argument.value
