"""Ways down: signals, the request, the launcher; with a run at work, and with one that does not settle."""

from __future__ import annotations

import os
import signal
import time

import pytest

from aura_automation import ShuttingDown
from tests.support.serving import TOKEN, WAIT_S, Running, Site, bash, calls, until

STUBBORN = "trap '' TERM; echo up > up; while :; do sleep 0.1; done"


def stopping_events(site: Site, server: Running) -> list[tuple[str, object]]:
    sql = "SELECT type, json_extract(data, '$.reason') FROM event WHERE type LIKE '%.%' AND run IS NULL ORDER BY seq"
    assert server.session_id
    return [(kind, reason) for kind, reason in site.rows(sql) if kind in ("server.stopping", "session.persisted")][1:]


@pytest.mark.requirement("store.checkpoints.shutdown", "serve.stop.ways", "events.server.stopping")
@pytest.mark.parametrize("by", ["sigint", "sigterm", "request"])
def test_an_idle_server_stops_and_says_why(site: Site, by: str) -> None:
    server = site.launch()
    if by == "request":
        server.client.shutdown()
    else:
        server.signal(signal.Signals[by.upper()])
    assert server.wait_exit() == 0
    assert not (site.sessions / "aura.db-wal").exists()
    assert stopping_events(site, server) == [("server.stopping", by), ("session.persisted", "shutdown")]


@pytest.mark.requirement("store.checkpoints.turn", "serve.stop.cancels", "runs.outcome.cancelled")
@pytest.mark.parametrize("by", ["sigint", "sigterm", "request"])
def test_a_run_at_work_is_cancelled_saved_and_its_processes_are_ended(site: Site, by: str) -> None:
    site.script(calls(bash(STUBBORN)), {"content": "never"})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    until(lambda: site.lines("up"), "the command's start")
    if by == "request":
        server.client.shutdown()
        with pytest.raises(ShuttingDown):
            server.client.submit("r2", prompt="more")
        assert server.client.submit("r1", prompt="go").id == run.id
        assert server.client.server().state == "stopping"
    else:
        server.signal(signal.Signals[by.upper()])
    assert server.wait_exit() == 0
    assert site.strays() == []
    again = site.launch(server.session_id)
    done = again.client.run(run.id)
    assert done.error is not None
    assert (done.state, done.outcome, done.error.code) == ("persisted", "cancelled", "cancelled")
    assert done.error.details == {"reason": "shutdown"}
    assert done.cancel_requested is False
    kinds = [event.type for event in again.events() if event.type != "status"]
    assert kinds[kinds.index("server.stopping") :] == [
        "server.stopping",
        "tool.finished",
        "session.persisted",
        "run.finished",
        "session.persisted",
        "run.persisted",
        "session.persisted",
        "server.started",
        "session.persisted",
    ]
    assert [message.role for message in again.client.messages().messages] == ["user", "assistant", "tool"]


def test_readers_get_the_last_events_before_their_stream_ends(site: Site) -> None:
    site.script({"content": "slow", "delay_ms": 60_000})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    seen: list[str] = []
    for event in server.client.events(reconnect_s=0.1):
        seen.append(event.type)
        if event.type == "run.started":
            server.client.shutdown()
        if seen[-2:] == ["run.persisted", "session.persisted"]:
            break
    assert server.wait_exit() == 0
    assert seen[-5:] == ["server.stopping", "run.finished", "session.persisted", "run.persisted", "session.persisted"]
    assert run.id


@pytest.mark.requirement("serve.stop.settle-bound", "serve.stop.unsettled-is-lost")
def test_a_run_that_does_not_settle_in_time_is_lost_to_the_next_server(site: Site) -> None:
    site.script(calls(bash(STUBBORN)))
    server = site.launch(serve_args=["--settle-ms", "50"])
    run = server.client.submit("r1", prompt="go")
    until(lambda: site.lines("up"), "the command's start")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 1
    again = site.launch(server.session_id)
    lost = again.client.run(run.id)
    assert lost.error is not None
    assert (lost.state, lost.error.code) == ("lost", "server_lost")
    until(lambda: not site.strays(), "the end of the command")
    site.script({"content": "there"})
    assert again.client.session().run is None


def test_a_second_signal_does_not_wait_for_the_run(site: Site) -> None:
    site.script(calls(bash(STUBBORN)))
    server = site.launch(serve_args=["--settle-ms", "20000"])
    server.client.submit("r1", prompt="go")
    until(lambda: site.lines("up"), "the command's start")
    server.signal(signal.SIGTERM)
    server.event("server.stopping")
    server.signal(signal.SIGTERM)
    begun = time.monotonic()
    assert server.wait_exit() in (0, 1)
    assert time.monotonic() - begun < 10
    until(lambda: not site.strays(), "the end of the command")


# --- the launcher ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("serve.launcher.release", "client.launch.hold")
def test_a_released_server_outlives_its_launcher(site: Site) -> None:
    server = site.launch(hold=True)
    server.handle.release()
    assert server.run("hello").outcome == "completed"
    assert server.client.server().state == "ready"
    assert server.stop() == 0


@pytest.mark.requirement("serve.launcher.lost-late")
def test_the_launchers_death_stops_a_server_that_was_not_released(site: Site) -> None:
    site.script({"content": "slow", "delay_ms": 60_000})
    server = site.launch(hold=True)
    run = server.client.submit("r1", prompt="go")
    server.event("run.started")
    lease = server.handle._lease
    assert lease is not None
    lease.close()
    assert server.wait_exit() == 0
    assert stopping_events(site, server)[0] == ("server.stopping", "launcher_lost")
    assert site.rows("SELECT count(*) FROM event WHERE type = 'run.persisted'") == [(1,)]
    assert run.id


@pytest.mark.requirement("serve.failure.launcher-lost", "serve.launcher.lost-early")
def test_a_launcher_that_dies_during_the_start_is_reported(site: Site) -> None:
    read_end, write_end = os.pipe()
    process = site.spawn(
        "serve",
        "--ready-file",
        str(site.ready_file),
        "--launcher-fd",
        str(read_end),
        environment={"AURA_SERVE_TOKEN": TOKEN},
        pass_fds=(read_end,),
    )
    os.close(read_end)
    os.close(write_end)
    assert process.wait(WAIT_S) == 1
    ready = site.read_ready()
    assert ready is not None
    assert (ready["error"]["code"], ready["error"]["retryable"]) == ("launcher_lost", False)


@pytest.mark.requirement("serve.launcher.inheritance")
def test_the_launchers_pipe_is_inherited_by_no_child(site: Site) -> None:
    site.script(calls(bash("ls -l /proc/$$/fd; ls /proc/$$/fd | wc -l")), {"content": "{{last}}"})
    server = site.launch(hold=True)
    run = server.run("go")
    assert run.result is not None
    assert "socket:" not in run.result.content
    assert "aura.db" not in run.result.content
    pipes = [line for line in run.result.content.splitlines() if "pipe:" in line]
    assert len(pipes) <= 2  # its own output and errors
    server.handle.release()


def test_a_bad_launcher_descriptor_is_refused(site: Site) -> None:
    site.ready_file.write_text("of an earlier server")
    exit_code, document, err = site.serve("--launcher-fd", "99")
    assert exit_code == 1
    assert "--launcher-fd 99" in err
    assert document is not None
    assert document["error"]["code"] == "startup_failed"
