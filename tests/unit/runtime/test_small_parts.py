"""Answers, commands, the ready file, the launcher's pipe, the transcript's reader: small parts of a served session."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aura.errors import (
    BadRequest,
    LauncherLost,
    NotFound,
    SessionLocked,
    StartupFailed,
    StoreUnavailable,
)
from aura.runtime.answers import read_answer
from aura.runtime.commands.dispatch import check_command
from aura.runtime.commands.table import COMMANDS, REJECTED
from aura.runtime.launcher import Launcher
from aura.runtime.ready import ReadyFile, as_startup_error
from aura.store.protocol import Input
from tests.support.runtime_kit import SESSION

WAIT_S = 10
OPTIONS = [{"label": "red", "description": ""}, {"label": "blue", "description": ""}, {"label": "1", "description": ""}]


def pending(kind: Any = "ask", **question: Any) -> Input:
    return Input("inp_1", SESSION, "run_1", kind, "pending", question, None, None)


@pytest.mark.requirement("inputs.answers")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [("red", "red"), ("2", "blue"), ("3", "1"), ("1", "1"), ("0", "0"), ("4", "4"), ("²", "²"), ("green", "green")],
)
def test_an_answer_is_a_label_a_number_of_one_or_free_text(answer: str, expected: str) -> None:
    assert read_answer(pending(options=OPTIONS), answer, None) == expected


def test_without_options_a_number_is_a_number() -> None:
    assert read_answer(pending(), "1", None) == "1"
    assert read_answer(pending(options=[]), "", None) == ""


def test_several_answers_are_labels_or_numbers_with_commas() -> None:
    question = pending(options=OPTIONS[:2], multi_select=True)
    assert json.loads(str(read_answer(question, "1, blue ,, other", None))) == ["red", "blue", "other"]
    assert json.loads(str(read_answer(question, "", None))) == []


@pytest.mark.parametrize("action", ["allow", "allow_session", "deny"])
def test_an_approval_takes_an_action_and_nothing_else(action: str) -> None:
    assert read_answer(pending("confirm"), None, action) == action
    for answer, wrong in ((action, None), (None, "yes"), (None, None), ("x", action)):
        with pytest.raises(BadRequest):
            read_answer(pending("confirm"), answer, wrong)


def test_a_question_takes_no_action() -> None:
    for answer, action in ((None, None), (None, "allow"), ("red", "allow")):
        with pytest.raises(BadRequest):
            read_answer(pending(), answer, action)


@pytest.mark.requirement("http.command.known")
@pytest.mark.parametrize("command", [*COMMANDS, "/HELP", "/help save", "/save 'a title'", "/save it's", "/stats  "])
def test_known_commands_are_taken(command: str) -> None:
    check_command(command, {})


@pytest.mark.parametrize(
    "command", [*sorted(REJECTED), "/Clear", "/resume x", "help", "", "/", "//help", "/ help", "/unknown"]
)
def test_other_commands_are_refused_before_there_is_a_run(command: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_command(command, {})
    assert caught.value.hint


# --- the ready file --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("serve.ready-file.mode", "serve.ready-file.atomic")
def test_the_ready_file_appears_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ready = ReadyFile(path)
    ready.clear()
    assert list(tmp_path.iterdir()) == []
    ready.announce({"url": "http://127.0.0.1:1", "pid": 7})
    assert json.loads(path.read_bytes()) == {"api": 1, "url": "http://127.0.0.1:1", "pid": 7}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ready.report(SessionLocked("held", details={"run_id": "x"}))
    assert json.loads(path.read_bytes()) == {
        "api": 1,
        "error": {"code": "session_locked", "message": "held", "retryable": False, "details": {"run_id": "x"}},
    }
    ready.clear()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["missing/ready.json", "file/ready.json", "folder"])
def test_a_ready_file_that_cannot_be_written_is_noticed_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StartupFailed) as caught:
        ReadyFile(tmp_path / name).clear()
    assert caught.value.hint


@pytest.mark.requirement("serve.failure.startup-failed")
def test_codes_that_a_start_does_not_have_become_startup_failed() -> None:
    locked = SessionLocked("held")
    assert as_startup_error(locked) is locked
    assert as_startup_error(NotFound("no")).code == "not_found"
    failed = as_startup_error(StoreUnavailable("the disk failed", hint="Check it.", details={"reason": "x"}))
    assert (failed.code, failed.message, failed.hint, failed.details) == (
        "startup_failed",
        "the disk failed",
        "Check it.",
        {"reason": "x"},
    )


# --- the launcher ----------------------------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> Any:
    """A pipe and a function that closes its write end."""
    read_end, write_end = os.pipe()
    os.set_inheritable(read_end, True)
    is_open = [True]

    def close() -> None:
        if is_open:
            is_open.clear()
            os.close(write_end)

    yield read_end, write_end, close
    close()


@pytest.mark.requirement("serve.launcher.inheritance")
def test_a_launcher_that_dies_is_told_once_and_its_pipe_is_no_childs(pipe: tuple[int, int, Callable[[], None]]) -> None:
    read_end, _, close = pipe
    launcher = Launcher(read_end)
    assert os.get_inheritable(read_end) is False
    launcher.check()
    told = threading.Event()
    launcher.call_when_lost(told.set)
    assert not told.is_set()
    close()
    assert told.wait(WAIT_S)
    with pytest.raises(LauncherLost):
        launcher.check()
    again = threading.Event()
    launcher.call_when_lost(again.set)
    assert again.is_set()


def test_a_released_server_does_not_care_for_its_launcher(pipe: tuple[int, int, Callable[[], None]]) -> None:
    read_end, write_end, close = pipe
    launcher = Launcher(read_end)
    told = threading.Event()
    launcher.call_when_lost(told.set)
    os.write(write_end, b"\n")
    close()
    for thread in threading.enumerate():
        if thread.name == "aura-launcher":
            thread.join(WAIT_S)
    assert not told.is_set()
    launcher.check()


def test_a_descriptor_that_is_not_open_is_refused() -> None:
    with pytest.raises(BadRequest):
        Launcher(1 << 20)
