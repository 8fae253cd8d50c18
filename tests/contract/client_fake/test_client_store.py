"""The store's methods against a stand-in for the program: arguments, answers, errors, and what is no answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import client_documents as documents
import pytest
from client_documents import TOKEN, Document

from aura_automation import (
    Aura,
    ContractDrift,
    Exists,
    InvalidId,
    ProgramFailed,
    RevisionMismatch,
    SessionLocked,
    Store,
)
from aura_automation.codes import BY_CODE

FAKE = Path(__file__).with_name("fake_aura.py")
Make = Callable[..., Aura]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a maker of a program that gives one answer."""

    def build(stdout: str = "", stderr: str = "", exit: int = 0, mode: str = "ready") -> Aura:
        answer = json.dumps({"stdout": stdout, "stderr": stderr, "exit": exit})
        env = {
            "FAKE_ANSWER": answer,
            "FAKE_RECORD": str(tmp_path / "record"),
            "FAKE_MODE": mode,
            "AURA_SERVE_TOKEN": TOKEN,
        }
        return Aura(sys.executable, args=[str(FAKE), "--home", ""], cwd=tmp_path, env=env)

    return build


Given = Callable[[], dict[str, list[str]]]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Return a reader of what the program was given."""
    return lambda: json.loads((tmp_path / "record").read_text())


def answer(**document: object) -> str:
    return json.dumps(document) + "\n"


@pytest.mark.requirement("session.list")
def test_list_and_show_read_summaries(make: Make, given: Given) -> None:
    listed = Store(make(answer(sessions=[documents.summary()], warnings=["odd"]))).list()
    assert (listed.sessions[0].id, listed.warnings) == ("task-1", ("odd",))
    assert Store(make(json.dumps(documents.summary(messages=7)))).show("task-1").messages == 7
    assert given()["argv"] == ["--home", "", "session", "show", "task-1", "--json"]


@pytest.mark.requirement("client.store")
def test_fork_passes_its_options(make: Make, given: Given) -> None:
    made = answer(session=documents.summary(), parent=documents.summary(id="baseline"), created=True)
    forked = Store(make(made)).fork("baseline", "task-1", title="-- a title", expect_revision="a" * 64)
    assert (forked.parent.id, forked.created) == ("baseline", True)
    words = ["fork", "baseline", "--id", "task-1", "--title", "-- a title", "--expect-revision", "a" * 64, "--json"]
    assert given()["argv"] == ["--home", "", "session", *words]


@pytest.mark.requirement("client.store")
def test_import_export_and_freeze_pass_absolute_paths_and_flags(
    make: Make, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    made = answer(session=documents.summary(), created=False, frozen_now=True, source_sha256="e" * 64)
    assert Store(make(made)).import_("in.json", id="task-1", freeze=True).frozen_now
    assert given()["argv"][4:] == [str(elsewhere / "in.json"), "--id", "task-1", "--freeze", "--json"]
    made = answer(session=documents.summary(), path="/x", sha256="e" * 64, written=False)
    assert not Store(make(made)).export("task-1", Path("-")).written
    assert given()["argv"][4:] == ["task-1", "--output", str(elsewhere / "-"), "--json"]
    assert Store(make(answer(session=documents.summary(frozen=True), changed=True))).freeze("task-1").changed
    assert str(given()["cwd"]) == str(tmp_path)


def test_the_servers_token_is_not_given_to_offline_commands(make: Make, given: Given) -> None:
    Store(make(answer(sessions=[], warnings=[]))).list()
    assert not given()["token"]


@pytest.mark.parametrize("code", ["not_found", "exists", "revision_mismatch", "session_locked", "store_unavailable"])
def test_an_error_object_on_stderr_is_its_typed_error(make: Make, code: str) -> None:
    error = documents.error(code=code, hint="do this", details={"last_seq": 1})
    with pytest.raises(BY_CODE[code], match="do this") as caught:
        Store(make(stderr=answer(error=error), exit=1)).freeze("task-1")
    assert caught.value.details == {"last_seq": 1}


def test_a_warning_before_the_error_object_does_not_hide_it(make: Make) -> None:
    with pytest.raises(SessionLocked):
        Store(make(stderr="warning: old\n" + answer(error=documents.error(code="session_locked")), exit=1)).show("a")


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (documents.error(code="on_fire"), "error.code"),
        (documents.error(colour="red"), "error.colour"),
        ({"code": "exists"}, "error.message"),
    ],
)
def test_an_error_object_that_does_not_fit_is_drift(make: Make, error: Document, field: str) -> None:
    with pytest.raises(ContractDrift) as caught:
        Store(make(stderr=answer(error=error), exit=1)).show("a")
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("stdout", "field"),
    [
        ("", ""),
        ("task-1  a title\n", ""),
        (json.dumps(documents.summary()) * 2, ""),
        (json.dumps(documents.summary(size=3)), "size"),
        (json.dumps({"id": "task-1"}), "title"),
    ],
)
def test_an_answer_that_is_not_the_one_object_is_drift(make: Make, stdout: str, field: str) -> None:
    with pytest.raises(ContractDrift) as caught:
        Store(make(stdout)).show("task-1")
    assert field in (caught.value.field, *caught.value.fields)
    assert "aura session show" in str(caught.value)


def test_a_failure_without_an_error_object_says_how_it_ended(make: Make) -> None:
    with pytest.raises(ProgramFailed, match="No such option") as caught:
        Store(make(stderr="Error: No such option: --json\n", exit=2)).list()
    assert caught.value.details == {"reason": "exited", "exit_code": 2}


def test_a_program_that_takes_too_long_is_ended(make: Make) -> None:
    with pytest.raises(ProgramFailed, match=r"longer than 0\.5 s") as caught:
        Store(make(mode="slow"), timeout_s=0.5).list()
    assert caught.value.details == {"reason": "timeout"}


def test_a_program_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    for aura in (
        Aura(tmp_path / "no-aura"),
        Aura("no-such-program-at-all"),
        Aura(sys.executable, cwd=tmp_path / "none"),
    ):
        with pytest.raises(ProgramFailed, match="could not be started") as caught:
            Store(aura).list()
        assert caught.value.details == {"reason": "not_started"}


@pytest.mark.parametrize("session_id", ["", "-x", "--help", "a\0b"])
def test_an_id_that_would_be_taken_for_something_else_never_reaches_the_program(
    tmp_path: Path, session_id: str
) -> None:
    with pytest.raises(InvalidId):
        Store(Aura(tmp_path / "no-aura")).show(session_id)


@pytest.mark.requirement("session.codes")
def test_the_errors_of_the_store_are_the_ones_that_are_exported() -> None:
    assert (BY_CODE["exists"], BY_CODE["revision_mismatch"]) == (Exists, RevisionMismatch)
