"""The process executor with real processes: whatever happens, the group ends with the call."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aura.engine.executors import groups, process
from aura.engine.scope import Cancelled, Scope
from tests.support.lane import StillAlarm

ROOT = Path(__file__).resolve().parents[3]


def command(text: str, tmp_path: Path, *, timeout_ms: int = 60_000, cap_bytes: int = 1_000_000) -> process.Command:
    """A bash command in the test's directory."""
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    return process.Command(
        ("/bin/bash", "-c", text), tmp_path, environment, timeout_ms, cap_bytes, tmp_path / "spill", "test"
    )


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie that nobody reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def members(group: int) -> list[int]:
    """The living processes of a group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_alive(int(entry.name)):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group:
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
    """Wait for a condition of the operating system, which rings no bell."""
    end = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        pause.wait(0.01)


def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    finished = process.run(command("echo out; echo err >&2; exit 7", tmp_path), Scope(StillAlarm()))
    assert (finished.exit_code, finished.stdout.tail, finished.stderr.tail) == (7, b"", b"")
    assert (finished.stdout.head, finished.stderr.head) == (b"out\n", b"err\n")


def test_the_command_leads_its_own_session_and_sees_no_extra_descriptor_or_child(tmp_path: Path) -> None:
    started: list[tuple[int, str]] = []
    look = "ls /proc/$$/fd >fds; tr '\\n' ' ' <fds; readlink /proc/$$/fd/0; cut -d' ' -f1,5,6 /proc/$$/stat"
    text = f"{look}; read x || echo eof; wait"
    finished = process.run(
        command(text, tmp_path), Scope(StillAlarm()), on_started=lambda pid, at: started.append((pid, at))
    )
    (pid, start_time) = started[0]
    assert finished.stdout.head.decode().splitlines() == ["0 1 2 /dev/null", f"{pid} {pid} {pid}", "eof"]
    assert start_time.isdigit()


def test_a_command_that_waits_for_all_its_children_ends(tmp_path: Path) -> None:
    text = f"exec {sys.executable} -c 'import os\ntry:\n os.wait()\nexcept ChildProcessError:\n print(\"none\")'"
    assert process.run(command(text, tmp_path), Scope(StillAlarm())).stdout.head == b"none\n"


def test_a_background_process_does_not_hold_the_call_and_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    finished = process.run(command("sleep 1000 & echo $! $$", tmp_path), Scope(StillAlarm()))
    assert time.monotonic() - began < 10
    background, group = (int(word) for word in finished.stdout.head.split())
    wait_until(lambda: not is_alive(background), "the background process is gone")
    assert members(group) == []


def test_a_command_that_closes_its_output_is_still_waited_for(tmp_path: Path) -> None:
    finished = process.run(command("exec >&- 2>&-; sleep 0.2; touch late; exit 3", tmp_path), Scope(StillAlarm()))
    assert finished.exit_code == 3
    assert (tmp_path / "late").exists()


def test_a_timeout_ends_the_group_and_keeps_the_output(tmp_path: Path) -> None:
    text = "echo before; trap 'echo asked; exit 5' TERM; sleep 1000 & wait"
    finished = process.run(command(text, tmp_path, timeout_ms=300), Scope(StillAlarm()))
    assert finished.timed_out
    assert (finished.exit_code, finished.stdout.head) == (5, b"before\nasked\n")


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    text = "trap '' TERM; sleep 1000 & echo $$; while :; do sleep 0.05; done"
    finished = process.run(command(text, tmp_path, timeout_ms=200), Scope(StillAlarm()), kill_grace_ms=300)
    assert (finished.timed_out, finished.exit_code) == (True, -signal.SIGKILL)
    assert members(int(finished.stdout.head)) == []


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
def test_a_cancel_ends_the_whole_tree_within_three_seconds(tmp_path: Path, stubborn: str) -> None:
    scope = Scope(StillAlarm())
    ready = threading.Event()
    raised: list[BaseException] = []
    seen: list[str] = []

    def show(text: str) -> None:
        seen.append(text)
        ready.set()

    def work() -> None:
        try:
            process.run(
                command(f"{stubborn}(sleep 1000 & sleep 1000) & echo $$; wait", tmp_path), scope, on_output=show
            )
        except Cancelled as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(20)
    group = int(seen[0])
    assert len(members(group)) > 1
    began = time.monotonic()
    scope.cancel("request")
    thread.join(20)
    assert not thread.is_alive()
    assert time.monotonic() - began < 3
    assert [type(error) for error in raised] == [Cancelled]
    wait_until(lambda: members(group) == [], "the tree is gone")


def test_a_scope_cancelled_before_starts_nothing(tmp_path: Path) -> None:
    scope = Scope(StillAlarm())
    scope.cancel("shutdown")
    with pytest.raises(Cancelled):
        process.run(command("touch started", tmp_path), scope)
    assert not (tmp_path / "started").exists()


def test_the_whole_group_gets_its_grace_after_its_leader_ended(tmp_path: Path) -> None:
    text = "(trap 'sleep 0.3; touch cleaned; exit' TERM; while :; do sleep 0.05; done) & sleep 1000"
    process.run(command(text, tmp_path, timeout_ms=300), Scope(StillAlarm()))
    assert (tmp_path / "cleaned").exists()


def test_a_flood_is_read_to_its_end_in_bounded_memory(tmp_path: Path) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = "echo first; head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo last"
    finished = process.run(command(text, tmp_path), Scope(StillAlarm()))
    kept = len(finished.stdout.head) + len(finished.stdout.tail)
    assert kept == 1_000_000
    assert finished.stdout.left_out_bytes == 100_000_000 + len("first\n\nlast\n") - kept
    assert finished.stdout.head.startswith(b"first\n")
    assert finished.stdout.tail.endswith(b"\nlast\n")
    assert finished.stdout.spill is not None
    assert finished.stdout.spill.stat().st_size == 64 * 1024 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    scope = Scope(StillAlarm())
    with pytest.raises(process.StartFailed, match="No such file"):
        process.run(command("true", tmp_path / "missing"), scope)
    with pytest.raises(process.StartFailed, match="no command line"):
        process.run(command("echo \0", tmp_path), scope)
    with pytest.raises(process.StartFailed, match="too long"):
        process.run(command("x" * 10_000_000, tmp_path), scope)


def test_a_fault_while_noting_the_process_ends_it(tmp_path: Path) -> None:
    pids: list[int] = []

    def note(pid: int, start_time: str) -> None:
        pids.append(pid)
        raise RuntimeError("the store is gone")

    with pytest.raises(RuntimeError):
        process.run(command("sleep 1000", tmp_path), Scope(StillAlarm()), on_started=note)
    assert members(pids[0]) == []


def test_no_descriptor_and_no_child_is_left_behind(tmp_path: Path) -> None:
    scope = Scope(StillAlarm())
    process.run(command("true", tmp_path), scope)
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        process.run(command("sleep 100 & true", tmp_path), scope)
    with pytest.raises(process.StartFailed):
        process.run(command("true", tmp_path / "missing"), scope)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text().split()
    assert [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() in ("sh", "bash", "sleep")] == []


def test_many_commands_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    scope = Scope(StillAlarm())
    jobs = [lambda inner, n=n: process.run(command(f"echo {n}; exit {n}", tmp_path), inner) for n in range(24)]
    results = scope.gather(jobs, 8)
    for number, finished in enumerate(results):
        assert isinstance(finished, process.Finished)
        assert (finished.exit_code, finished.stdout.head) == (number, b"%d\n" % number)


PARENT = """
import os, sys
from pathlib import Path
from aura.engine.executors import process
from aura.engine.scope import Scope
from tests.support.lane import StillAlarm
text, directory = sys.argv[1:]
command = process.Command(("/bin/bash", "-c", text), Path(directory), dict(os.environ), 600_000, 1000)
show = lambda text: print(text, flush=True)
process.run(command, Scope(StillAlarm()), on_output=show, kill_grace_ms=1000)
"""


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
def test_kill_9_of_the_server_ends_the_whole_group(tmp_path: Path, stubborn: str) -> None:
    text = f"{stubborn}(sleep 1000 & sleep 1000) & echo $$; while :; do sleep 0.1; done"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, text, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        assert len(members(group)) > 1
        parent.send_signal(signal.SIGKILL)
        parent.wait(20)
        wait_until(lambda: members(group) == [], "the guard ended the group")
    finally:
        parent.kill()
        parent.communicate()


def test_recovery_ends_a_group_that_is_still_the_same(tmp_path: Path) -> None:
    text = "trap '' TERM; echo ready; sleep 1000 & wait"
    leader = subprocess.Popen(["/bin/bash", "-c", text], start_new_session=True, stdout=subprocess.PIPE)
    try:
        assert leader.stdout is not None
        assert leader.stdout.readline() == b"ready\n"
        start_time = groups.find_start_time(leader.pid)
        assert start_time is not None
        assert not groups.end_group(leader.pid, str(int(start_time) + 1), 200)
        assert leader.poll() is None
        assert groups.end_group(leader.pid, start_time, 200)
        assert leader.wait(20) == -signal.SIGKILL
        wait_until(lambda: members(leader.pid) == [], "the group is gone")
        assert not groups.end_group(leader.pid, start_time, 200)
    finally:
        leader.kill()
        leader.communicate()


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**70])
def test_recovery_touches_no_process_that_is_not_there(pid: int) -> None:
    assert groups.find_start_time(pid) is None
    assert not groups.end_group(pid, "1", 100)


def test_recovery_never_ends_its_own_group_or_one_that_the_pid_does_not_lead() -> None:
    own = os.getpid()
    assert not groups.end_group(os.getpgrp(), groups.find_start_time(os.getpgrp()) or "", 100)
    follower = subprocess.Popen(["/bin/sleep", "1000"])
    try:
        assert not groups.end_group(follower.pid, groups.find_start_time(follower.pid) or "", 100)
        assert is_alive(follower.pid)
        assert is_alive(own)
    finally:
        follower.kill()
        follower.wait(20)
