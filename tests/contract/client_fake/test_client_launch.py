"""Launching, attaching, releasing and stopping, with a stand-in for the program that behaves well and badly."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import client_documents as documents
import pytest
from client_documents import TOKEN, Document

from aura_automation import (
    Aura,
    BadRequest,
    ContractDrift,
    NetworkError,
    NotFound,
    ProgramFailed,
    Server,
    ServerHandle,
    SessionFrozen,
    SessionLocked,
    Unauthorized,
)
from aura_automation._process import Watch, end

FAKE = Path(__file__).with_name("fake_aura.py")


class Place:
    """A directory with a stand-in program, its ready file, its log and its record."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ready = root / "ready.json"
        self.log = root / "serve.log"
        self.started: list[ServerHandle] = []

    def aura(self, mode: str = "ready") -> Aura:
        env = {"FAKE_MODE": mode, "FAKE_RECORD": str(self.root / "record"), "PATH": os.environ["PATH"]}
        return Aura(sys.executable, args=[str(FAKE), "--home", ""], cwd=self.root, env=env)

    def launch(self, mode: str = "ready", **options: object) -> ServerHandle:
        handle = Server.launch(self.aura(mode), ready_file=self.ready, token=TOKEN, log=self.log, **options)  # type: ignore[arg-type]
        self.started.append(handle)
        return handle

    def record(self) -> Document:
        known: Document = json.loads((self.root / "record").read_text())
        return known

    def until(self, what: str) -> Document:
        """Wait until the stand-in has recorded `what`."""
        end_s = time.monotonic() + 10
        while what not in self.record():
            assert time.monotonic() < end_s, f"{what} was not recorded"
            time.sleep(0.01)
        return self.record()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for handle in place.started:
        handle.stop(0.5)


def is_alive(pid: int) -> bool:
    watch = Watch(pid)
    alive = watch.is_running()
    watch.close()
    return alive


@pytest.mark.requirement("client.launch.lease", "client.launch.no-hold")
def test_a_launched_server_is_ready_released_and_stopped(place: Place) -> None:
    handle = place.launch(resume="task-1", bind="127.0.0.1:0", serve_args=["--server", "waitress"])
    given = place.until("released")
    argv = given["argv"]
    assert isinstance(argv, list)
    assert argv[:5] == ["--home", "", "--resume", "task-1", "serve"]
    assert argv[5:9] == ["--ready-file", str(place.ready), "--bind", "127.0.0.1:0"]
    assert (argv[9], argv[11:]) == ("--launcher-fd", ["--server", "waitress"])
    assert (handle.session_id, handle.pid) == ("task-1", given["pid"])
    with handle.client() as client:
        assert client.server().pid == handle.pid
    assert handle.stop() == 0
    assert handle.stop() == 0
    assert place.record()["left"] == "shutdown"


def test_the_token_is_in_the_environment_never_in_arguments_output_or_repr(place: Place) -> None:
    handle = place.launch()
    given = place.record()
    assert given["token"] == TOKEN
    assert TOKEN not in json.dumps(given["argv"])
    assert TOKEN not in repr(handle)
    assert TOKEN not in place.log.read_text()
    assert TOKEN not in place.ready.read_text()


def test_a_launched_server_has_a_process_session_of_its_own(place: Place) -> None:
    place.launch()
    given = place.record()
    assert given["session"] == given["pid"]
    assert given["session"] != os.getsid(0)


@pytest.mark.requirement("client.launch.hold")
def test_with_hold_the_server_is_released_only_when_asked(place: Place) -> None:
    handle = place.launch(hold=True)
    with handle.client() as client:
        assert client.server().state == "ready"
    assert "released" not in place.record()
    handle.release()
    place.until("released")
    handle.release()


def test_dropping_a_held_handle_stops_the_server_and_dropping_a_released_one_does_not(place: Place) -> None:
    handle = Server.launch(place.aura(), ready_file=place.ready, token=TOKEN, hold=True)
    process = handle._process
    assert process is not None
    del handle
    gc.collect()
    assert process.wait(10) == 3
    assert place.record()["left"] == "launcher_lost"

    handle = Server.launch(place.aura(), ready_file=place.ready, token=TOKEN)
    process, pid = handle._process, handle.pid
    assert process is not None
    assert pid is not None
    place.until("released")
    del handle
    gc.collect()
    attached = Server.attach(ready_file=place.ready, token=TOKEN)
    assert attached.pid == pid
    attached.stop(10)
    assert process.wait(10) == 0


@pytest.mark.requirement("client.launch.lease")
def test_the_death_of_the_launcher_stops_a_held_server(place: Place) -> None:
    program = (
        "import os, sys; from aura_automation import Aura, Server\n"
        f"aura = Aura(sys.executable, args=[{str(FAKE)!r}], env=dict(os.environ))\n"
        f"Server.launch(aura, ready_file={str(place.ready)!r}, token={TOKEN!r}, hold=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    env = {**os.environ, "FAKE_RECORD": str(place.root / "record"), "PYTHONPATH": os.pathsep.join(sys.path)}
    launcher = subprocess.run([sys.executable, "-c", program], env=env, timeout=30, check=False)
    assert launcher.returncode == -signal.SIGKILL
    assert place.until("left")["left"] == "launcher_lost"


def test_an_error_ready_file_is_the_typed_error(place: Place) -> None:
    with pytest.raises(SessionFrozen, match="it is frozen"):
        place.launch("error")
    assert not is_alive(int(str(place.record()["pid"])))


def test_a_server_that_dies_before_it_is_ready_is_noticed_at_once(place: Place) -> None:
    begun_s = time.monotonic()
    with pytest.raises(ProgramFailed, match="ended with status 7") as caught:
        place.launch("dies", timeout_s=60)
    assert time.monotonic() - begun_s < 10
    assert caught.value.details == {"reason": "exited", "exit_code": 7}
    assert str(place.log) in str(caught.value)
    assert "cannot go on" in place.log.read_text()


def test_a_server_that_hangs_is_ended_and_told_that_its_launcher_is_lost(place: Place) -> None:
    with pytest.raises(ProgramFailed, match=r"not ready within 0\.5 s") as caught:
        place.launch("hangs", timeout_s=0.5)
    assert caught.value.details == {"reason": "timeout"}
    assert place.record()["left"] == "launcher_lost"
    assert not is_alive(int(str(place.record()["pid"])))


def test_a_ready_file_that_does_not_fit_is_drift_and_leaves_no_process(place: Place) -> None:
    with pytest.raises(ContractDrift, match="address"):
        place.launch("garbage")
    assert not is_alive(int(str(place.record()["pid"])))


def test_a_stale_ready_file_is_not_taken_for_the_new_servers(place: Place) -> None:
    place.ready.write_text(json.dumps(documents.ready(session_id="old")))
    assert place.launch().session_id == "fresh"


def test_a_ready_file_or_log_that_cannot_be_is_a_clear_error_and_starts_nothing(place: Place) -> None:
    place.ready.mkdir()
    with pytest.raises(ProgramFailed, match="ready file"):
        place.launch()
    place.ready.rmdir()
    with pytest.raises(ProgramFailed, match="log file"):
        Server.launch(place.aura(), ready_file=place.ready, token=TOKEN, log=place.root / "no" / "where")
    assert not (place.root / "record").exists()


def test_an_unusable_token_and_a_missing_program_start_nothing(place: Place) -> None:
    with pytest.raises(Unauthorized):
        Server.launch(place.aura(), ready_file=place.ready, token="two words")
    with pytest.raises(ProgramFailed, match="could not be started"):
        Server.launch(Aura(place.root / "none"), ready_file=place.ready, token=TOKEN)
    assert not (place.root / "record").exists()


def test_no_file_descriptor_is_left_open_by_launches(place: Place) -> None:
    def count() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    place.launch().stop()
    place.started.clear()
    before = count()
    for mode in ("error", "dies"):
        with pytest.raises((SessionFrozen, ProgramFailed)):
            place.launch(mode)
    place.launch().stop()
    place.started.clear()
    assert count() <= before


def test_a_server_that_ignores_the_request_to_stop_gets_sigterm(place: Place) -> None:
    handle = place.launch("stubborn")
    assert handle.stop(0.2) == 5
    assert place.record()["left"] == "sigterm"


def test_a_server_that_was_killed_is_stopped_already(place: Place) -> None:
    handle = place.launch()
    assert handle.pid is not None
    os.kill(handle.pid, signal.SIGKILL)
    assert handle.stop() == -signal.SIGKILL


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    program = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
        assert end(process, term_grace_s=0.2) == -signal.SIGKILL


def test_releasing_a_dead_server_says_so(place: Place) -> None:
    handle = place.launch(hold=True)
    assert handle.pid is not None
    os.kill(handle.pid, signal.SIGKILL)
    assert handle._process is not None
    handle._process.wait(10)
    with pytest.raises(ProgramFailed, match="before it was released"):
        handle.release()


@pytest.mark.requirement("client.attach")
def test_attach_finds_a_running_server_and_stops_it(place: Place) -> None:
    launched = place.launch()
    attached = Server.attach(ready_file=place.ready, token=TOKEN)
    assert (attached.url, attached.pid, attached.session_id) == (launched.url, launched.pid, "fresh")
    assert attached.stop(10) is None
    assert place.record()["left"] == "shutdown"
    assert attached.stop(10) is None


def test_an_attached_server_that_does_not_stop_is_never_signalled(place: Place) -> None:
    launched = place.launch("stubborn")
    attached = Server.attach(ready_file=place.ready, token=TOKEN)
    with pytest.raises(ProgramFailed, match="still runs") as caught:
        attached.stop(0.3)
    assert caught.value.details == {"reason": "still_running"}
    assert launched.pid is not None
    assert is_alive(launched.pid)


def test_attach_says_what_is_wrong(place: Place) -> None:
    with pytest.raises(BadRequest, match="exactly one"):
        Server.attach(token=TOKEN)
    with pytest.raises(ProgramFailed) as caught:
        Server.attach(ready_file=place.ready, token=TOKEN)
    assert caught.value.details == {"reason": "no_ready_file"}
    place.ready.write_text(json.dumps({"api": 1, "error": documents.error(code="session_locked")}))
    with pytest.raises(SessionLocked):
        Server.attach(ready_file=place.ready, token=TOKEN)
    handle = place.launch()
    with pytest.raises(Unauthorized):
        Server.attach(ready_file=place.ready, token="w" * 40)
    said = json.loads(place.ready.read_text())
    place.ready.write_text(json.dumps(said | {"session_id": "another"}))
    with pytest.raises(NotFound, match="now serves session fresh"):
        Server.attach(ready_file=place.ready, token=TOKEN)
    handle.stop()
    place.ready.write_text(json.dumps(said))
    with pytest.raises(NetworkError):
        Server.attach(ready_file=place.ready, token=TOKEN)


def test_a_client_follows_its_server_to_another_port(place: Place) -> None:
    first = place.launch(resume="task-1")
    with first.client() as client:
        assert client.server().url == first.url
        first.stop()
        second = place.launch(resume="task-1")
        assert client.server().url == second.url
    assert first.url != second.url


def test_the_snippet_of_the_readme_has_the_names_of_the_package() -> None:
    readme = (Path(__file__).resolve().parents[3] / "clients" / "python" / "README.md").read_text()
    code = [block.partition("```")[0] for block in readme.split("```python\n")[1:]]
    assert code
    for block in code:
        compile(block, "README.md", "exec")
    names: Callable[[str], bool] = lambda name: name in code[0]  # noqa: E731
    assert all(map(names, ("Aura(", "Store(", "Server.launch(", "client.submit(", "client.wait(", "handle.stop()")))
