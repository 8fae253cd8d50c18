"""A disk that gets full in the middle of the work: runs end, nothing saved is lost, and the server works again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura_automation import StoreUnavailable
from tests.support.serving import Site, bash, calls, until

DISK_BYTES = 24 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Site]:
    """A site whose store lies on a small disk of its own."""
    if os.geteuid() != 0:
        pytest.skip("a small disk of the test's own needs root")
    site = Site(tmp_path)
    site.sessions.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(site.sessions)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.decode().strip()}")
    try:
        yield site
    finally:
        site.end()
        subprocess.run(["umount", str(site.sessions)], check=True)


def fill(site: Site, name: str = "filler") -> Path:
    """Take all the room that is left; the file gives it back."""
    path = site.sessions / name
    with path.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return path


def test_a_command_whose_start_cannot_be_recorded_is_not_run(small_disk: Site) -> None:
    site = small_disk
    site.script(calls(bash("touch made"), delay_ms=1500), {"content": "after", "repeat": "forever"})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    server.event("status")
    filler = fill(site)
    done = server.wait(run.id)
    assert done.error is not None
    assert (done.state, done.outcome, done.error.code) == ("persist_failed", "failed", "persist_failed")
    assert not (site.work / "made").exists()
    finished = server.event("tool.finished")
    assert finished.data["status"] == "error"
    filler.unlink()
    assert server.run("more", "r2").state == "persisted"
    messages = server.client.messages().messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert messages[2].content == finished.data["result"]
    assert server.stop() == 0


def test_a_start_on_a_full_disk_fails_and_breaks_nothing(small_disk: Site) -> None:
    site = small_disk
    server = site.launch()
    assert server.run("hello").outcome == "completed"
    revision = site.store.show(server.session_id).revision
    server.kill()
    filler = fill(site)
    (site.sessions / ".ballast").unlink()
    fill(site)
    exit_code, document, err = site.serve(flags=["--resume", server.session_id])
    assert (exit_code, "Traceback" in err) == (1, False)
    assert document is not None
    assert document["error"]["code"] == "startup_failed"
    filler.unlink()
    again = site.launch(server.session_id)
    assert again.client.session().session.revision == revision
    assert again.run("more", "r2").outcome == "completed"


@pytest.mark.requirement("store.atomic-writes.failure", "runs.outcome.persist-failed", "events.session.persist-failed")
def test_a_run_on_a_full_disk_ends_persist_failed_and_the_server_works_again(small_disk: Site) -> None:
    site = small_disk
    site.script(
        {"content": "before"},
        calls(bash("echo go > go; until [ -e filled ]; do sleep 0.01; done; head -c 200000 /dev/zero | tr '\\0' x")),
        {"content": "never"},
        {"content": "after", "repeat": "forever"},
    )
    server = site.launch()
    assert server.run("hello", "r0").outcome == "completed"
    saved = server.client.session().session
    run = server.client.submit("r1", prompt="go")
    until(lambda: site.lines("go"), "the command's start")
    filler = fill(site)
    (site.work / "filled").touch()
    done = server.wait(run.id)
    assert (done.state, done.terminal) == ("persist_failed", True)
    assert done.error is not None
    assert done.persist_error is not None
    assert (done.outcome, done.error.code, done.persist_error.code) == ("failed", "persist_failed", "persist_failed")
    assert server.client.session().session.revision == saved.revision
    assert "session.persist_failed" in server.types()
    with pytest.raises(StoreUnavailable):
        server.client.submit("r2", prompt="more")
    assert server.client.find_run("r2") is None
    filler.unlink()
    again = server.run("more", "r3")
    assert (again.state, again.outcome) == ("persisted", "completed")
    messages = server.client.messages().messages
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert messages[4].content is not None
    assert again.persisted is not None
    assert site.store.show(server.session_id).revision == again.persisted.revision
    assert [event.seq for event in server.events()] == list(range(1, server.client.server().last_seq + 1))
    assert server.stop() == 0


@pytest.mark.requirement("serve.stop.exit-code")
def test_a_stop_that_cannot_be_saved_exits_1_and_the_next_server_goes_on(small_disk: Site) -> None:
    site = small_disk
    server = site.launch()
    assert server.run("hello").outcome == "completed"
    revision = site.store.show(server.session_id).revision
    fillers = [fill(site)]
    (site.sessions / ".ballast").unlink()
    fillers.append(fill(site, "second-filler"))
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 1
    for filler in fillers:
        filler.unlink()
    again = site.launch(server.session_id)
    assert again.client.session().session.revision == revision
    assert again.run("more", "r2").outcome == "completed"
    assert again.stop() == 0
