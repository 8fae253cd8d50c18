"""`aura run` as people and scripts use it: the answer on standard output, all else on standard error."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.serving import WAIT_S, Site, bash, calls, until


@dataclass(frozen=True)
class Done:
    """How a process ended."""

    exit_code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def run(site: Site, *words: str, text: str | None = None, flags: Sequence[str] = ()) -> Done:
    options: dict[str, Any] = {} if text is None else {"stdin": subprocess.PIPE}
    process = site.spawn("run", *words, flags=flags, **options)
    out, err = process.communicate(None if text is None else text.encode(), timeout=WAIT_S)
    return Done(process.returncode, out.decode(), err.decode())


def session_of(done: Done) -> str:
    found = re.search(r"session (\S+), revision ([0-9a-f]{12})", done.err)
    assert found, done.err
    return found[1]


def test_the_answer_goes_to_standard_output_and_the_work_to_standard_error(site: Site) -> None:
    site.script(calls(bash("echo working"), content="Let me look."), {"content": "All is\nwell."})
    done = run(site, "how is it?")
    assert (done.exit_code, done.out) == (0, "Let me look.\nAll is\nwell.\n")
    assert '▸ Bash {"command":"echo working"}' in done.err
    assert "ok: working" in done.err
    assert done.err.splitlines()[-1].startswith("completed; session ")
    summary = site.store.show(session_of(done))
    assert summary.messages == 4
    assert summary.revision[:12] in done.err


@pytest.mark.requirement("process.same-engine.run")
def test_json_prints_every_event_of_the_run_as_it_is_stored(site: Site) -> None:
    site.script(calls(bash("echo hi"), thinking="hm"), {"content": "done"})
    done = run(site, "go", "--json")
    assert done.exit_code == 0
    assert done.err == ""
    kinds = [event["type"] for event in done.events if event["type"] != "status"]
    assert (kinds[0], kinds[-1]) == ("run.accepted", "run.persisted")
    assert kinds.count("message.assistant") == 2
    seqs = [event["seq"] for event in done.events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert done.events[-1]["data"]["run"]["outcome"] == "completed"
    assert "hm" not in done.out


def test_a_prompt_is_read_from_standard_input(site: Site) -> None:
    site.script({"content": "you said: {{user}}"})
    done = run(site, text="from a pipe, ünïcode\n")
    assert (done.exit_code, done.out) == (0, "you said: from a pipe, ünïcode\n")


def test_without_any_prompt_it_says_so_and_makes_no_session(site: Site) -> None:
    done = run(site, text=" \n")
    assert (done.exit_code, done.out) == (1, "")
    assert done.err.startswith("error: there is no prompt\nhint: ")
    assert not site.sessions.exists()


def test_several_prompts_run_one_after_another_in_one_session(site: Site) -> None:
    site.script({"content": "[{{user}}]", "repeat": "forever"})
    done = run(site, "one", "two", "three")
    assert (done.exit_code, done.out) == (0, "[one]\n[two]\n[three]\n")
    assert site.store.show(session_of(done)).messages == 6


def test_the_first_prompt_that_fails_ends_it_with_exit_code_1(site: Site) -> None:
    error = {"kind": "http", "status": 503, "message": "the engine is not running"}
    site.script({"content": "fine"}, {"error": error}, {"content": "never"})
    done = run(site, "one", "two", "three")
    assert (done.exit_code, done.out) == (1, "fine\n")
    assert "error: provider_server:" in done.err
    assert "the engine is not running" in done.err
    assert "failed; session " in done.err
    assert site.store.show(session_of(done)).messages == 3


def test_a_question_that_nobody_can_answer_blocks_the_run(site: Site) -> None:
    site.script(calls({"id": "a", "name": "Ask", "arguments": {"question": "Why?"}}))
    done = run(site, "go")
    assert done.exit_code == 1
    assert "blocked; session" in done.err
    assert "input_required" in done.err


def test_ctrl_c_cancels_saves_and_exits_130(site: Site) -> None:
    site.script(calls(bash("trap '' TERM; echo up > up; while :; do sleep 0.1; done")), {"content": "never"})
    process = site.spawn("run", "go")
    until(lambda: site.lines("up"), "the command's start")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    done = Done(process.returncode, out.decode(), err.decode())
    assert (done.exit_code, done.out) == (130, "")
    assert "cancelled; session " in done.err
    assert "Traceback" not in done.err
    assert site.store.show(session_of(done)).messages == 3
    assert site.strays() == []
    assert site.rows("SELECT state, outcome FROM run") == [("persisted", "cancelled")]


def test_ctrl_c_in_the_middle_of_several_prompts_stops_them_all(site: Site) -> None:
    site.script({"content": "slow", "chunk_delay_ms": 0, "delay_ms": 60_000}, {"content": "never"})
    process = site.spawn("run", "one", "two", "--json")
    assert process.stdout is not None
    while b'"run.started"' not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert site.rows("SELECT outcome FROM run") == [("cancelled",)]


def test_a_second_ctrl_c_ends_it_at_once_and_loses_nothing_that_was_saved(site: Site) -> None:
    site.script({"content": "saved"}, calls(bash("trap '' TERM; echo up > up; while :; do sleep 0.1; done")))
    process = site.spawn("run", "one", "two")
    until(lambda: site.lines("up"), "the command's start")
    process.send_signal(signal.SIGINT)
    until(lambda: site.rows("SELECT 1 FROM event WHERE type = 'run.cancel_requested'"), "the cancellation")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert b"Traceback" not in err
    until(lambda: not site.strays(), "the end of the command")
    ((session_id,),) = site.rows("SELECT id FROM session")
    assert site.store.show(session_id).messages == 2
    site.script({"content": "on we go"})
    again = run(site, "three", flags=["--resume", session_id])
    assert again.exit_code == 0
    assert sorted(site.rows("SELECT state FROM run")) == [("lost",), ("persisted",), ("persisted",)]


def test_a_session_is_resumed_by_a_unique_beginning_of_its_id(site: Site) -> None:
    site.script({"content": "again", "repeat": "forever"})
    session_id = session_of(run(site, "one"))
    done = run(site, "two", flags=["--resume", session_id[:6]])
    assert (done.exit_code, session_of(done)) == (0, session_id)
    assert site.store.show(session_id).messages == 4
    assert len(site.store.list().sessions) == 1
    missing = run(site, "two", flags=["--resume", "nothing"])
    assert (missing.exit_code, missing.out) == (1, "")
    assert missing.err.startswith("error: there is no session nothing\nhint: ")


@pytest.mark.requirement("serve.output.transcript")
def test_the_transcript_has_the_thinking_that_the_journal_has_not(site: Site) -> None:
    site.script(calls(bash("echo hi"), thinking="I wonder."), {"content": "Done."})
    path = site.root / "transcript.txt"
    path.write_text("of an earlier process")
    done = run(site, "please", flags=["--output", str(path)])
    assert done.exit_code == 0
    text = path.read_text()
    position = -1
    for part in ("--- user\nplease", "--- thinking\nI wonder.", "--- call Bash", "--- ok Bash\nhi", "assistant\nDone."):
        assert text.find(part) > position, text
        position = text.find(part)
    assert "earlier process" not in text
    assert "I wonder." not in str(site.rows("SELECT data FROM event"))
    assert run(site, "more", flags=["--output", str(site.root / "new.txt")]).exit_code == 0
    assert (site.root / "new.txt").stat().st_mode & 0o777 == 0o600
    refused = run(site, "go", flags=["--output", str(site.root / "no" / "file")])
    assert refused.exit_code == 1
    assert "--output" in refused.err
    assert "Traceback" not in refused.err


def test_a_broken_pipe_ends_it_quietly_and_the_session_is_saved(site: Site) -> None:
    site.script(calls(bash("echo hi")), {"content": "x" * 200_000})
    process = site.spawn("run", "go")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(WAIT_S) in (0, 141)
    assert b"Traceback" not in err
    ((state, outcome),) = site.rows("SELECT state, outcome FROM run")
    assert (state, outcome) in {("persisted", "completed"), ("persisted", "cancelled")}


@pytest.mark.parametrize(
    ("flags", "hint"),
    [(["--agent", "nobody"], "main"), (["--model", "other"], ""), (["--workdir", "/nowhere"], "--workdir")],
)
def test_bad_flags_are_one_clear_line(site: Site, flags: list[str], hint: str) -> None:
    done = run(site, "go", flags=flags)
    assert done.exit_code == 1
    assert "Traceback" not in done.err
    assert "error: " in done.err
    assert hint in done.err


def test_at_a_terminal_an_approval_is_asked_for_and_ctrl_c_cancels_the_question(site: Site) -> None:
    site.agent(tools={"policy": {"confirm": ["Bash:*"]}})
    site.script(calls(bash("touch made", "a")), calls(bash("touch other", "b")), {"content": "never"})
    terminal = Terminal(site, "run", "go")
    terminal.wait_for("deny]:")
    terminal.type("allow\n")
    until((site.work / "made").exists, "the allowed command")
    terminal.wait_for("deny]:", count=2)
    terminal.type("\x03")
    assert terminal.wait() == 130, terminal.text
    assert "Traceback" not in terminal.text
    assert not (site.work / "other").exists()
    assert site.rows("SELECT state, outcome FROM run") == [("persisted", "cancelled")]


class Terminal:
    """A process at a pseudo-terminal of its own."""

    def __init__(self, site: Site, *words: str) -> None:
        self._master, slave = pty.openpty()
        self.text = ""
        command = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self._process = site.spawn(
            *words, prefix=[sys.executable, "-c", command], stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str, count: int = 1) -> None:
        until(lambda: self._read() and self.text.count(text) >= count, f"{text!r} on the terminal: {self.text}")

    def wait(self) -> int:
        until(lambda: self._read() and self._process.poll() is not None, f"the end; {self.text}")
        os.close(self._master)
        return self._process.returncode

    def _read(self) -> bool:
        try:
            while select.select([self._master], [], [], 0)[0]:
                self.text += os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # the other side is closed
            return True
        return True
