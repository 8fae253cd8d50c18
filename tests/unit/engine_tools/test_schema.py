"""The strict check of arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.engine.tools import schema
from aura.engine.tools.registry import BUILT_IN
from aura.jsontypes import JsonValue
from tests.support.bench import Bench

SCHEMA = schema.declare(
    {
        "name": {"type": "string", "enum": ["a", "b"]},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number"},
        "on": {"type": "boolean"},
        "items": {"type": "array", "maxItems": 2, "items": schema.declare({"x": {"type": "string"}}, required=("x",))},
    },
    required=("name",),
)


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "a"},
        {"name": "b", "size": 9, "share": 0.5, "on": False, "items": []},
        {"name": "a", "size": 2.0, "share": 1, "items": [{"x": ""}]},
        {"name": "a", "size": None, "items": None},
    ],
)
def test_arguments_that_fit_have_no_problem(arguments: JsonValue) -> None:
    assert schema.find_problem(SCHEMA, arguments) is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, '"name" is required'),
        ({"name": None}, '"name" is required'),
        ({"name": "c"}, '"name" must be one of a, b'),
        ({"name": 1}, '"name" must be a string, not a number'),
        ({"name": "a", "sizes": 1}, 'unknown parameter "sizes"'),
        ({"name": "a", "size": True}, '"size" must be an integer, not a boolean'),
        ({"name": "a", "size": 1.5}, '"size" must be an integer, not a number'),
        ({"name": "a", "size": "1"}, '"size" must be an integer, not a string'),
        ({"name": "a", "size": 0}, '"size" must be at least 1'),
        ({"name": "a", "size": 10}, '"size" must be at most 9'),
        ({"name": "a", "share": float("nan"), "on": "yes"}, '"on" must be a boolean, not a string'),
        ({"name": "a", "items": "x"}, '"items" must be an array, not a string'),
        ({"name": "a", "items": [{}, {"x": "", "y": 1}]}, '"items[0].x" is required; unknown parameter "items[1].y"'),
        ({"name": "a", "items": [1]}, '"items[0]" must be an object, not a number'),
        ({"name": "a", "items": [{"x": ""}] * 3}, '"items" takes at most 2 items'),
        ([], "the arguments must be an object, not an array"),
        ("text", "the arguments must be an object, not a string"),
    ],
)
def test_a_problem_is_told_with_the_valid_parameters(arguments: JsonValue, problem: str) -> None:
    expected = f"{problem}; valid parameters: name (required), size, share, on, items"
    assert schema.find_problem(SCHEMA, arguments) == expected


def test_many_problems_are_not_all_listed() -> None:
    problem = schema.find_problem(SCHEMA, {f"p{number}": 1 for number in range(100)})
    assert problem is not None
    assert problem.count("unknown parameter") == 5


def test_every_tool_declares_a_closed_schema_and_a_description() -> None:
    names = " ".join(tool.spec.name for tool in BUILT_IN)
    assert names == "Read Write Edit Ls Glob Rg Bash TodoCreate TodoList TodoProgress Ask"
    for tool in BUILT_IN:
        assert tool.spec.parameters["additionalProperties"] is False
        assert tool.spec.description
        assert tool.spec.path_parameter is None or tool.spec.path_parameter in str(tool.spec.parameters["properties"])


def test_a_call_with_bad_arguments_never_reaches_the_tool(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert "valid parameters: path (required), content (required)" in bench.error("Write", path="a", text="x")
    assert not list(tmp_path.iterdir())
