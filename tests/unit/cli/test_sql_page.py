"""docs/sql.md says what is true: its views, its questions and their answers, and docs/datasette.yaml made from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from aura.cli.sql_view import table_text
from aura.runtime.sql import Questions, opened
from tests.support.sql_page import DATASETTE, PAGE, Question, ask, datasette_metadata, read_questions, read_views
from tests.support.sql_store import make_sql_store

QUESTIONS = read_questions()

# What the story of tests/support/sql_store.py says, counted by hand; the page shows the same and more.
KNOWN = {
    1: {("name", "WebFetch"): ("longest_ms", 6000), ("name", "Bash"): ("mean_ms", 1433)},
    2: {("name", "WebFetch"): ("error_percentage", 50), ("name", "Bash"): ("error_percentage", 33.3)},
    3: {("day", "2026-01-05"): ("model_calls", 7), ("day", "2026-01-06"): ("input_tokens", 4500)},
    4: {("model", "large-1"): ("cost_usd", 0.0625), ("model", "qwen-coder"): ("without_price", 4)},
    5: {("run_id", "run-5"): ("found_at", "2026-01-07T02:01:00.720Z")},
    6: {("run_id", "run-5"): ("args", '{"command":"make links"}')},
    7: {("input_id", "in-1"): ("detail", "git push origin v2")},
    8: {("what", "src/login.py"): ("calls", 1), ("what", "pytest tests/test_login.py"): ("errors", 1)},
    9: {("kind", "run.accepted"): ("seq", 17), ("kind", "run.persisted"): ("what", "cancelled")},
    10: {("session_id", "api"): ("messages", 12), ("session_id", "nightly"): ("runs", 2)},
    11: {("hour", "09"): ("runs", 3), ("hour", "14"): ("mean_s", 5.2)},
    12: {("day", "2026-01-06"): ("times", 2)},
    13: {("session_id", "nightly"): ("new_messages", 6), ("session_id", "docs"): ("new_messages", 3)},
    14: {("text", "Fix the login test"): ("runs", 2), ("text", "Check the links"): ("completed", 1)},
    15: {("ended", "completed"): ("runs", 3), ("ended", "cancelled"): ("week", "2026-02")},
    16: {("model", "large-1"): ("mean_ms", 1250), ("model", "qwen-coder"): ("longest_ms", 700)},
    17: {("error_code", "provider_rate_limit"): ("runs", 1), ("error_code", "server_lost"): ("runs", 1)},
    18: {("run_id", "run-1"): ("cost_usd", 0.05), ("run_id", "run-4"): ("tokens", 4740)},
    19: {("run_id", "run-6"): ("took_ms", 200)},
    20: {("run_id", "run-7"): ("last_event", "input.required")},
}


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Questions]:
    directory = tmp_path_factory.mktemp("small")
    make_sql_store(directory)
    with opened(directory) as found:
        yield found


def test_the_page_describes_every_column_of_every_view_in_order(questions: Questions) -> None:
    described = {view.name: tuple(view.columns) for view in read_views()}
    assert described == {view.name: view.columns for view in questions.views}


def test_there_are_twenty_questions_and_an_answer_is_known_of_each() -> None:
    assert [question.number for question in QUESTIONS] == list(range(1, 21))
    assert KNOWN.keys() == {question.number for question in QUESTIONS}
    assert PAGE.read_text().count("```sql\n") == len(QUESTIONS), "every statement of the page is one of the questions"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_the_answer_on_the_page_is_the_store_s(questions: Questions, question: Question) -> None:
    answer = ask(questions, question.sql, question.parameters)
    assert table_text(answer.columns, answer.rows, None) == question.answer


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_the_answer_is_what_happened(questions: Questions, question: Question) -> None:
    answer = ask(questions, question.sql, question.parameters)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    for (key, value), (column, expected) in KNOWN[question.number].items():
        (row,) = [row for row in rows if row[key] == value]
        assert row[column] == pytest.approx(expected) if isinstance(expected, float) else row[column] == expected


def test_the_metadata_for_datasette_is_made_from_the_page() -> None:
    assert DATASETTE.read_text() == datasette_metadata()


def test_the_metadata_hides_every_table_and_no_view(questions: Questions) -> None:
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    tables = {row[0] for row in ask(questions, sql, {}).rows}
    described = yaml.safe_load(Path(DATASETTE).read_text())["databases"]["aura"]["tables"]
    assert {name for name, fields in described.items() if fields.get("hidden")} == tables
