"""Exit codes and streams of the offline commands (interfaces.md section 3), and what a shell does to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

USAGE_MISTAKES = [
    ("fork", "task-1"),
    ("list", "extra"),
    ("list", "--bogus"),
    ("bogus",),
    ("export", "task-1"),
    ("import",),
    ("freeze", "task-1", "--expect-revision"),
]


@pytest.mark.parametrize("words", USAGE_MISTAKES, ids=" ".join)
def test_a_usage_error_is_clicks_text_and_exit_code_2(program, words):
    done = program.run(*words)
    assert (done.exit_code, done.out) == (2, b"")
    assert done.error_lines[-1].startswith("Error: ")


@pytest.mark.requirement("session.json.failure")
@pytest.mark.parametrize("words", USAGE_MISTAKES[:-1], ids=" ".join)
def test_a_usage_error_with_json_is_a_bad_request(program, words):
    done = program.run(*words, "--json")
    assert (done.exit_code, done.out) == (1, b"")
    error = json.loads(done.err)["error"]
    assert (error["code"], error["retryable"], error["details"]) == ("bad_request", False, {})


@pytest.mark.parametrize("flag", ["--bogus", "--max-steps=0", "--max-steps=x", "--think=much", "--token-budget=-1"])
def test_a_bad_root_flag_is_a_usage_error(program, flag):
    assert program.run_command(program.plain(flag, "session", "list")).exit_code == 2
    done = program.run_command(program.plain(flag, "session", "list", "--json"))
    assert (done.exit_code, json.loads(done.err)["error"]["code"]) == (1, "bad_request")


def test_a_bad_variable_is_a_usage_error_that_names_it(program):
    done = program.run("list", env=program.environment(AURA_MAX_STEPS="many"))
    assert done.exit_code == 2 and b"AURA_MAX_STEPS" in done.err


def test_a_root_flag_after_the_command_is_a_usage_error(program):
    assert program.run("list", "--home", "").exit_code == 2


def test_help_and_version_succeed_on_standard_output(program):
    for words in (["--help"], ["session", "--help"], ["session", "fork", "--help"]):
        done = program.run_command(program.plain(*words))
        assert (done.exit_code, done.err) == (0, b"") and done.text.startswith("Usage: aura")
    done = program.run_command(program.plain("--version"))
    assert (done.exit_code, done.text.split()[0]) == (0, "aura")


def test_homes_come_from_variables_too(program, document, imported):
    env = program.environment(AURA_HOME="", AURA_CONFIG=f"{program.cwd},{program.home}")
    done = program.run_command(program.plain("session", "list", "--json"), env=env)
    assert [session["id"] for session in json.loads(done.out)["sessions"]] == ["task-1"]


def test_without_any_home_there_is_a_hint(program):
    done = program.run_command(program.plain("--home", "", "session", "list"))
    assert (done.exit_code, done.out) == (1, b"")
    assert done.error_lines[0].startswith("error: ") and "--config" in done.error_lines[1]
    done = program.run_command(program.plain("--home", "", "session", "list", "--json"))
    assert json.loads(done.err)["error"]["code"] == "bad_request"


def test_an_earlier_home_that_is_missing_is_a_bad_request(program):
    done = program.run_command(program.plain("--config", "none", "--config", "home", "session", "list", "--json"))
    assert (done.exit_code, json.loads(done.err)["error"]["code"]) == (1, "bad_request")


def test_a_directory_that_is_gone_is_a_bad_request(program):
    gone = program.cwd / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    done = program.run_command(["sh", "-c", script, "sh", *program.command("list", "--json")])
    assert done.exit_code == 1 and json.loads(done.err)["error"]["code"] == "bad_request"


def test_a_reader_that_went_away_is_no_error_message(program, imported):
    for words in (("list",), ("list", "--json"), ("export", "task-1", "--output", "-"), ("--help",)):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = program.run(*words, stdout=writer)
        finally:
            os.close(writer)
        assert (done.exit_code, done.err) == (141, b""), words


def test_head_gets_its_line(program, document, imported):
    script = '"$@" | head -1'
    done = program.run_command(["sh", "-c", script, "sh", *program.command("list")])
    assert (done.exit_code, done.err) == (0, b"") and done.text.startswith("ID ")


def test_a_full_device_is_one_clear_line(program, imported):
    with open("/dev/full", "wb") as full:
        done = program.run("list", stdout=full)
    assert done.exit_code == 1
    assert done.error_lines == ["error: standard output cannot be written: No space left on device"]


def test_a_closed_standard_output_is_one_clear_line(program, imported):
    done = program.run_command(["sh", "-c", 'exec "$@" >&-', "sh", *program.command("list")])
    assert (done.exit_code, done.error_lines) == (1, ["error: standard output is closed"])


def test_ctrl_c_ends_quietly_with_130(program):
    os.mkfifo(program.cwd / "pipe")
    process = subprocess.Popen(
        program.command("import", "pipe"), cwd=program.cwd, env=program.environment(), stderr=subprocess.PIPE
    )
    writer = open_when_read(program.cwd / "pipe", 60)
    try:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        os.close(writer)
    assert (process.returncode, err) == (130, b"")
    assert not program.home.exists()


def test_words_after_two_dashes_are_no_flags(program):
    done = program.run("show", "--", "--json")
    assert done.exit_code == 1 and done.error_lines[0].startswith("error: '--json' is not a session id")


def test_output_is_utf_8_whatever_the_locale(program, document):
    plain = program.environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    program.json("import", "-", input=document(title="Zürich ✓"))
    assert "Zürich ✓" in program.text("list", env=plain)
    assert program.json("show", "task-1", env=plain)["title"] == "Zürich ✓"


def test_a_fault_of_the_program_shows_a_traceback_with_debug_only(program, imported):
    broken = program.cwd / "broken"
    broken.mkdir()
    (broken / "apsw.py").write_text("raise ZeroDivisionError('secret')\n")
    env = program.environment()
    env["PYTHONPATH"] = f"{broken}:{env['PYTHONPATH']}"
    done = program.run("list", env=env)
    assert (done.exit_code, done.out, len(done.error_lines)) == (1, b"", 2)
    assert done.error_lines[0].startswith("error: internal error ") and "secret" not in done.err.decode()
    told = program.run("list", env=env | {"AURA_DEBUG": "1"})
    assert "Traceback" in told.err.decode() and "secret" in told.err.decode()
    machine = program.run("list", "--json", env=env | {"AURA_DEBUG": "1"})
    assert json.loads(machine.error_lines[-1])["error"]["code"] == "internal"


def open_when_read(path, timeout_s):
    """Open a named pipe for writing as soon as somebody reads it."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    raise AssertionError("nobody opened the pipe")
