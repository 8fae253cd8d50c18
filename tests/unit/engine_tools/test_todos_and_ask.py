"""The todo tools and Ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.engine.lane import Answer
from aura.events import Option
from aura.jsontypes import JsonValue
from tests.support.bench import Bench
from tests.support.lane import RecordingLane

ITEMS = [{"content": "first"}, {"content": "second"}, {"content": "third"}]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench in an empty directory."""
    return Bench(tmp_path)


def test_a_new_list_starts_with_its_first_item(bench: Bench) -> None:
    assert bench.ok("TodoList") == "There are no todos."
    text = bench.ok("TodoCreate", summary="plan", items=ITEMS)
    assert text == (
        "plan\n3 todos: 2 pending, 1 in_progress, 0 completed\n"
        "1. [in_progress] first\n2. [pending] second\n3. [pending] third"
    )
    assert bench.ok("TodoList") == text
    assert bench.history.todos == {
        "summary": "plan",
        "items": [
            {"content": "first", "status": "in_progress"},
            {"content": "second", "status": "pending"},
            {"content": "third", "status": "pending"},
        ],
    }


def test_a_summary_alone_keeps_the_items(bench: Bench) -> None:
    bench.ok("TodoCreate", items=ITEMS)
    assert bench.ok("TodoCreate", summary="new").startswith("new\n3 todos")


def test_progress_promotes_the_next_item(bench: Bench) -> None:
    bench.ok("TodoCreate", items=ITEMS)
    text = bench.ok("TodoProgress", updates=[{"index": 1, "status": "completed"}])
    assert "1. [completed] first\n2. [in_progress] second" in text


@pytest.mark.parametrize(
    ("updates", "error"),
    [
        ([{"index": 2, "status": "in_progress"}], "items 1, 2 would be in_progress"),
        ([{"index": 1, "status": "completed"}, {"index": 4, "status": "pending"}], "there is no item 4"),
        ([{"index": 0, "status": "pending"}], "at least 1"),
        ([{"index": 1, "status": "done"}], "one of pending, in_progress, completed"),
        ([], "at least 1 item"),
    ],
)
def test_one_wrong_update_changes_nothing(bench: Bench, updates: list[JsonValue], error: str) -> None:
    before = bench.ok("TodoCreate", items=ITEMS)
    assert error in bench.error("TodoProgress", updates=updates)
    assert bench.ok("TodoList") == before


def test_a_list_needs_something_in_it(bench: Bench) -> None:
    assert "items, a summary" in bench.error("TodoCreate")
    assert "no content" in bench.error("TodoCreate", items=[{"content": " "}])


@pytest.mark.parametrize(
    ("given", "multi_select", "expected"),
    [
        ("red", False, "red"),
        ("2", False, "blue"),
        (2, False, "blue"),
        ("7", False, "7"),
        ("something else", False, "something else"),
        (["1", "blue"], True, '["red", "blue"]'),
        ("1", True, '["red"]'),
    ],
)
def test_an_answer_may_be_a_label_a_number_or_anything(
    tmp_path: Path, given: JsonValue, multi_select: bool, expected: str
) -> None:
    bench = Bench(tmp_path, lane=RecordingLane(answers=[Answer(given)]))
    options = [{"label": "red", "description": "warm"}, {"label": "blue"}]
    assert bench.ok("Ask", question="Which?", options=options, multi_select=multi_select) == expected
    asked = bench.lane.questions[0]
    assert (asked.kind, asked.options) == ("ask", (Option("red", "warm"), Option("blue")))


@pytest.mark.parametrize("given", [None, "", "  ", []])
def test_no_answer_is_an_error(tmp_path: Path, given: JsonValue) -> None:
    bench = Bench(tmp_path, lane=RecordingLane(answers=[Answer(given)]))
    assert "dismissed" in bench.error("Ask", question="Which?")
