"""`aura journal tail`: what it selects, and how it follows a server of another process until it is told to end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from typing import IO

import pytest

from tests.contract.journal.conftest import Program
from tests.support.serving import WAIT_S, Site, until


def seqs(out: bytes) -> list[int]:
    return [json.loads(line)["seq"] for line in out.splitlines()]


def follow(site: Site, *words: str) -> subprocess.Popen[bytes]:
    return site.spawn("journal", "tail", *words, "--follow")


def read_until(stream: IO[bytes], condition: Callable[[dict[str, object]], bool]) -> list[bytes]:
    """Return lines up to the first one that fits; the process is ended by the site if it never comes."""
    lines: list[bytes] = []
    while line := stream.readline():
        lines.append(line)
        if condition(json.loads(line)):
            return lines
    raise AssertionError(f"the stream ended after {len(lines)} lines")


def test_a_tail_begins_and_selects_as_it_is_told(program: Program, session_id: str) -> None:
    text = program.export(session_id)
    lines = text.splitlines(keepends=True)
    run_id = json.loads(lines[2])["run_id"]

    def tail(*words: str) -> bytes:
        done = program.run("journal", "tail", session_id, *words)
        assert (done.exit_code, done.err) == (0, b""), done
        return done.out

    assert tail() == b"".join(lines[-10:])
    assert tail("--after", "0") == text
    assert tail("--after", str(len(lines))) == b""
    assert tail("--last", "3") == b"".join(lines[-3:])
    assert tail("-n", "0") == b""
    assert tail("-n", "99999") == text
    of_run = [line for line in lines if json.loads(line)["run_id"] == run_id]
    assert tail("--run", run_id, "--after", "0") == b"".join(of_run)
    assert tail("--run", run_id, "-n", "2") == b"".join(of_run[-2:])
    saves = [line for line in lines if json.loads(line)["type"] in ("session.persisted", "run.persisted")]
    assert tail("--type", "session.persisted", "--type", "run.persisted", "--after", "0") == b"".join(saves)


def test_a_tail_of_what_is_not_there_fails(program: Program, session_id: str) -> None:
    program.fails("not_found", "journal", "tail", "nobody")
    program.fails("not_found", "journal", "tail", session_id, "--run", "run_x")
    program.fails("cursor_out_of_range", "journal", "tail", session_id, "--after", "9999")
    program.fails("bad_request", "journal", "tail", session_id, "--after", "1", "--last", "2")
    program.fails("bad_request", "journal", "tail", session_id, "--type", "delta.content")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_follower_gets_every_event_of_another_process_once_and_ends_by_a_signal(
    site: Site, program: Program, session_id: str, number: signal.Signals, code: int
) -> None:
    tail = follow(site, session_id, "--after", "0")
    assert tail.stdout is not None
    server = site.launch(session_id)
    run = server.run("more", "r2")
    lines = read_until(tail.stdout, lambda e: e["type"] == "run.persisted" and e["run_id"] == run.id)
    server.stop()
    lines += read_until(tail.stdout, lambda e: e["type"] == "session.persisted" and e["run_id"] is None)
    assert b"".join(lines) == program.export(session_id)
    tail.send_signal(number)
    out, err = tail.communicate(timeout=WAIT_S)
    assert (tail.returncode, out, err) == (code, b"", b"")


def test_a_follower_shows_only_what_was_selected(site: Site, session_id: str) -> None:
    tail = follow(site, session_id, "-n", "0", "--type", "message.assistant")
    assert tail.stdout is not None
    server = site.launch(session_id)
    server.run("more", "r2")
    server.run("more", "r3")
    first = json.loads(tail.stdout.readline())
    second = json.loads(tail.stdout.readline())
    assert first["type"] == second["type"] == "message.assistant"
    assert first["seq"] < second["seq"]
    server.end()


def test_a_follower_whose_reader_is_gone_ends_though_nothing_happens(site: Site, session_id: str) -> None:
    tail = follow(site, session_id, "-n", "1")
    assert tail.stdout is not None and tail.stderr is not None
    tail.stdout.readline()
    tail.stdout.close()
    until(lambda: tail.poll() is not None, "the end of the follower")
    assert tail.returncode == 141
    assert tail.stderr.read() == b""


def test_a_follower_disturbs_no_server_and_makes_no_file(site: Site, session_id: str) -> None:
    before = sorted(path.name for path in site.sessions.iterdir())
    tail = follow(site, session_id, "-n", "1")
    assert tail.stdout is not None
    tail.stdout.readline()
    names = {path.name for path in site.sessions.iterdir()} - {"aura.db-wal", "aura.db-shm"}
    assert names == set(before) - {"aura.db-wal", "aura.db-shm"}
    server = site.launch(session_id)
    assert server.stop() == 0
