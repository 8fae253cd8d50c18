"""The contract's main points on the other HTTP server, `--server waitress`."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from aura_automation import Unauthorized
from tests.support.serving import Running, Site, bash, calls, until


@pytest.fixture
def server(site: Site) -> Running:
    site.script(
        calls(bash("echo hi > up; sleep 60"), when={"last": "^sleep"}), {"content": "Hello.", "repeat": "forever"}
    )
    return site.launch(serve_args=["--server", "waitress"])


def test_runs_events_and_idempotency_are_the_same(server: Running) -> None:
    with ThreadPoolExecutor(20) as pool:
        runs = list(pool.map(lambda _: server.client.submit("one", prompt="hello"), range(20)))
    assert len({run.id for run in runs}) == 1
    seen = []
    done = server.client.wait(runs[0].id, on_event=seen.append)
    assert done.outcome == "completed"
    assert [event.seq for event in seen] == list(range(3, server.client.server().last_seq + 1))
    streamed = []
    for event in server.client.events():
        streamed.append(event)
        if event.type == "run.persisted":
            break
    assert streamed == server.events()


def test_a_cancel_and_a_signal_reach_a_command(site: Site, server: Running) -> None:
    run = server.client.submit("r1", prompt="sleep")
    until(lambda: site.lines("up"), "the command's start")
    server.client.cancel(run.id)
    assert server.wait(run.id).outcome == "cancelled"
    (site.work / "up").unlink()
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert site.strays() == []


def test_a_wrong_token_is_refused(server: Running) -> None:
    with pytest.raises(Unauthorized):
        type(server.client)(server.handle.url, "x" * 40, retry_s=0).server()
