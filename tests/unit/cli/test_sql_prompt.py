"""The prompt of `aura sql`, typed at through a pipe: statements, dot commands, history, completion, mistakes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from aura.cli.sql import answer
from aura.cli.sql_prompt import SqlCompleter, converse, is_finished, open_history
from aura.cli.sql_view import Settings
from aura.runtime.sql import Questions, opened
from tests.support.sql_store import make_sql_store

SETTINGS = Settings("table", 30_000, 100)
Type = Callable[[str], tuple[str, str]]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Questions]:
    directory = tmp_path_factory.mktemp("small")
    make_sql_store(directory)
    with opened(directory) as found:
        yield found


@pytest.fixture
def type_(questions: Questions, capfd: pytest.CaptureFixture[str]) -> Type:
    """Types keys, then Ctrl-D; returns what was written to standard output and standard error."""

    def type_keys(keys: str) -> tuple[str, str]:
        with create_pipe_input() as keyboard:
            keyboard.send_text(keys + "\x04")
            converse(
                questions,
                lambda statement, values: answer(questions, statement, values, SETTINGS),
                {"who": "api"},
                history=InMemoryHistory(),
                keyboard=keyboard,
                screen=DummyOutput(),
            )
        captured = capfd.readouterr()
        return captured.out, captured.err

    return type_keys


def completions(questions: Questions, text: str) -> list[str]:
    found = SqlCompleter(questions.views).get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_a_statement_over_two_lines_is_answered(type_: Type) -> None:
    out, err = type_("SELECT run_id FROM v_run\rWHERE session_id = :who ORDER BY 1;\r")
    assert out.endswith("run_id\n------\nrun-1\nrun-3\nrun-7\n")
    assert err.startswith("(") and err.endswith(" ms)\n")


def test_a_mistake_is_explained_and_the_prompt_goes_on(type_: Type) -> None:
    out, err = type_("SELECT nope FROM v_run;\rSELECT 40 + 2;\r")
    assert "error: no such column: nope\nhint: " in err
    assert out.endswith("42\n")


def test_nothing_can_be_written_at_the_prompt(type_: Type) -> None:
    _, err = type_("DELETE FROM run;\r")
    assert "error: only reading is allowed here" in err


def test_ctrl_c_gives_up_what_is_typed(type_: Type) -> None:
    out, err = type_("SELECT 1\r\x03SELECT 2;\r")
    assert "stopped\n" in err and out.endswith("2\n-\n2\n")


def test_dot_commands(type_: Type) -> None:
    out, err = type_(".help\r.views\r.schema v_usage\r.nonsense\r.quit\rSELECT 'never';\r")
    assert ".schema NAME  columns of a view or table\n" in out
    assert "v_usage      session_id, run_id, seq, " in out
    assert "\ninput_tokens   INTEGER\n" in out
    assert "there is no .nonsense" in err
    assert "never" not in out, ".quit leaves"


@pytest.mark.parametrize(
    ("text", "finished"),
    [("", True), ("  ", True), (".help", True), ("SELECT 1", False), ("SELECT ';", False), ("SELECT 1;", True)],
)
def test_enter_sends_a_whole_statement_only(text: str, finished: bool) -> None:
    assert is_finished(text) == finished


def test_views_are_completed_after_from(questions: Questions) -> None:
    assert completions(questions, "SELECT * FROM v_r") == ["v_revision", "v_run"]
    assert completions(questions, "SELECT * FROM v_run r JOIN v_t") == ["v_tool_call"]


def test_columns_of_the_views_that_are_named_are_completed(questions: Questions) -> None:
    assert completions(questions, "SELECT * FROM v_usage WHERE inp") == ["input_tokens"]
    assert completions(questions, "SELECT * FROM v_usage u WHERE u.prov") == ["provider"]
    assert "input_id" in completions(questions, "SELECT inp"), "no view is named yet: any column may be meant"


def test_keywords_and_dot_commands_are_completed(questions: Questions) -> None:
    assert completions(questions, "SEL") == ["SELECT"]
    assert completions(questions, ".sc") == [".schema"]
    assert completions(questions, ".schema v_u") == ["v_usage"]


def test_the_history_is_the_person_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    history = open_history()
    assert isinstance(history, FileHistory)
    history.append_string("SELECT 1;")
    path = tmp_path / "state" / "aura" / "sql_history"
    assert "SELECT 1;" in path.read_text()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert list(open_history().load_history_strings()) == ["SELECT 1;"]  # type: ignore[attr-defined]


def test_without_a_place_for_it_the_history_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert isinstance(open_history(), InMemoryHistory)
