"""The way down over HTTP: what is still answered, what streams end with, and how signals are taken."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.raw_server import Served, wait_for

Start = Callable[..., Served]


def test_a_stream_ends_well_with_everything_up_to_the_last_save(fresh: Start) -> None:
    served = fresh()
    run = served.submit("hang")
    with served.stream("?heartbeat=60") as stream:
        assert served.post("/v1/shutdown").status == 202
        events = [json.loads(frame["data"]) for frame in stream.frames() if "id" in frame]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    types = [event["type"] for event in events]
    stopping = types.index("server.stopping")
    assert events[stopping]["data"] == {"reason": "request"}
    terminal = next(event for event in events if event["type"] == "run.persisted")
    assert terminal["data"]["run"]["id"] == run["id"]
    assert terminal["data"]["run"]["error"]["details"] == {"reason": "shutdown"}
    assert (types[-1], events[-1]["data"]["reason"]) == ("session.persisted", "shutdown")
    assert served.process.wait(20) == 0
    assert "Traceback" not in served.log()


@pytest.mark.requirement("longpoll.stop")
def test_a_long_poll_ends_with_the_server(fresh: Start) -> None:
    served = fresh()
    with ThreadPoolExecutor(2) as pool:
        after = served.last_seq()
        poll = pool.submit(served.get, f"/v1/journal?after={after}&wait=60")
        assert served.post("/v1/shutdown", {}).status == 202
        page = poll.result(20).json
    assert [event["seq"] for event in page["events"]] == [after + 1 + n for n in range(len(page["events"]))]
    assert served.process.wait(20) == 0


@pytest.mark.requirement("serve.stop.refuses-runs", "http.errors.shutting-down")
def test_a_server_on_its_way_down_answers_reads_and_refuses_runs(fresh: Start) -> None:
    served = fresh()
    run = served.submit_stubborn()
    assert served.post("/v1/shutdown").status == 202
    assert served.get("/v1/server").json["state"] == "stopping"
    served.post("/v1/runs", {"request_id": "late", "prompt": "x"}).failure(503, "shutting_down")
    assert served.get(f"/v1/runs/{run['id']}").json["terminal"] is False
    assert served.post("/v1/shutdown").status == 202
    assert served.process.wait(20) == 0


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGINT, "sigint"), (signal.SIGTERM, "sigterm")])
def test_a_signal_stops_the_server_with_its_reason(fresh: Start, number: signal.Signals, reason: str) -> None:
    served = fresh()
    with served.stream("?heartbeat=60") as stream:
        os.kill(served.process.pid, number)
        frames = stream.until("server.stopping")
    assert json.loads(frames[-1]["data"])["data"] == {"reason": reason}
    assert served.process.wait(20) == 0
    assert "Traceback" not in served.log()


def test_a_second_signal_stops_the_server_at_once(fresh: Start) -> None:
    served = fresh()
    served.submit_stubborn()
    os.kill(served.process.pid, signal.SIGTERM)
    wait_for(lambda: served.get("/v1/server").json["state"] == "stopping", "the server is stopping")
    started = time.monotonic()
    os.kill(served.process.pid, signal.SIGTERM)
    assert served.process.wait(20) == 1
    assert time.monotonic() - started < 1.8, "it did not wait for the run"


def test_a_reader_that_stopped_reading_does_not_keep_the_server(fresh: Start) -> None:
    served = fresh()
    with served.stream("?heartbeat=60"):
        for _ in range(8):
            served.run("brief " + "x" * 900_000)
        started = time.monotonic()
        assert served.post("/v1/shutdown").status == 202
        assert served.process.wait(20) == 0
        assert time.monotonic() - started < 10
    assert "Traceback" not in served.log()
