"""How failures end a command line: `aura.cli.errors`."""

from __future__ import annotations

import json

import click
import pytest

from aura import errors as e
from aura.cli.errors import guarded


def failing(error):
    def work():
        raise error

    return work


def test_success_is_exit_code_0(capfd):
    assert guarded(lambda: None, []) == 0
    assert capfd.readouterr() == ("", "")


def test_an_error_is_one_line_and_its_hint_another(capfd):
    assert guarded(failing(e.NotFound("there is\nno\x1b[31m such thing", hint="Look\telsewhere.")), []) == 1
    assert capfd.readouterr() == ("", "error: there is no [31m such thing\nhint: Look elsewhere.\n")


@pytest.mark.requirement("session.json.failure")
def test_an_error_with_json_is_one_object(capfd):
    assert guarded(failing(e.Busy("busy", details={"run_id": "run_1", "reason": None})), ["x", "--json"]) == 1
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    expected = {"code": "busy", "message": "busy", "retryable": False, "details": {"run_id": "run_1"}}
    assert json.loads(err) == {"error": expected}


def test_a_fault_has_an_id_and_no_traceback(capfd, monkeypatch):
    monkeypatch.delenv("AURA_DEBUG", raising=False)
    assert guarded(failing(KeyError("token=hunter2")), []) == 1
    _, err = capfd.readouterr()
    assert err.startswith("error: internal error ") and "KeyError" in err and "hunter2" not in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(("args", "variable"), [(["--debug"], ""), ([], "1")])
def test_debug_shows_the_traceback_of_every_error(capfd, monkeypatch, args, variable):
    monkeypatch.setenv("AURA_DEBUG", variable)
    assert guarded(failing(e.NotFound("nothing here")), args) == 1
    _, err = capfd.readouterr()
    assert err.startswith("Traceback") and err.endswith("error: nothing here\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_130_and_silent(capfd, error):
    assert guarded(failing(error), []) == 130
    assert capfd.readouterr() == ("", "")


def test_clicks_own_exits_keep_their_code():
    assert guarded(failing(click.exceptions.Exit(0)), []) == 0
    assert guarded(failing(click.exceptions.Exit(3)), []) == 3


def test_a_usage_error_is_2_without_json_and_a_bad_request_with_it(capfd):
    assert guarded(failing(click.UsageError("wrong")), []) == 2
    assert "Error: wrong" in capfd.readouterr().err
    assert guarded(failing(click.UsageError("wrong")), ["--json"]) == 1
    assert json.loads(capfd.readouterr().err)["error"]["code"] == "bad_request"


def test_json_after_two_dashes_is_no_flag(capfd):
    assert guarded(failing(e.BadRequest("no")), ["--", "--json"]) == 1
    assert capfd.readouterr().err == "error: no\n"
