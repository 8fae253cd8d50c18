"""Waiting and streaming over real connections that break, against the fake server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import client_documents as documents
import pytest
from client_documents import RUN, SESSION, TOKEN, Document
from fake_server import FakeServer, Fault, Handler

from aura_automation import Client, Event, NetworkError, NotFound, Run, Server, StopRequested, Unauthorized

JOURNAL = "/v1/journal"


def cut(request: Handler) -> None:
    request.cut()


def cut_in_the_body(request: Handler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b'{"events": [')
    request.wfile.flush()
    request.cut()


def busy(request: Handler) -> None:
    request.fail(503, "overloaded", Retry_After="0")


def once_there_is(event: Document, fault: Fault) -> Fault:
    """Return a fault that strikes a long-poll at the moment when `event` comes."""

    def strike(request: Handler) -> None:
        with request.fake.changed:
            assert request.fake.changed.wait_for(lambda: event in request.fake.events, 10)
        fault(request)

    return strike


@pytest.fixture
def client(server: FakeServer) -> Iterator[Client]:
    with Client(server.url, TOKEN) as client:
        yield client


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.mark.requirement("client.wait.exactly-once")
def test_events_come_exactly_once_over_connections_cut_in_the_middle_of_long_polls(
    server: FakeServer, client: Client, pool: ThreadPoolExecutor
) -> None:
    story = documents.run_story(1, 10)
    server.runs[RUN] = documents.run(accepted_seq=1)
    server.add(story[0])
    seen: list[int] = []
    arrived = threading.Semaphore(0)

    def note(event: Event) -> None:
        seen.append(event.seq)
        arrived.release()

    waiting = pool.submit(client.wait, RUN, on_event=note)
    for number, event in enumerate(story[1:], 1):
        assert arrived.acquire(timeout=10)
        server.fault(JOURNAL, once_there_is(event, (cut, cut_in_the_body, busy)[number % 3]))
        server.wait_faults_met(JOURNAL)
        server.add(event)
    assert waiting.result(20).terminal
    assert seen == list(range(1, 13))


def test_a_restart_of_the_server_in_the_middle_of_a_long_poll_loses_and_repeats_nothing(
    server: FakeServer, client: Client, pool: ThreadPoolExecutor
) -> None:
    story = documents.run_story(1, 4)
    server.runs[RUN] = documents.run(accepted_seq=1)
    server.add(*story[:3])
    seen: list[Event] = []
    third = threading.Event()

    def note(event: Event) -> None:
        seen.append(event)
        if event.seq == 3:
            third.set()

    waiting = pool.submit(client.wait, RUN, on_event=note)
    assert third.wait(10)
    server.wait_asked(JOURNAL, server.asked(JOURNAL) + 1)
    server.stop()
    server.add(*story[3:])
    server.start()
    assert waiting.result(20).terminal
    assert [event.seq for event in seen] == [1, 2, 3, 4, 5, 6]


@pytest.mark.requirement("client.wait.stop")
def test_stop_ends_a_quiet_wait_within_its_poll_interval_and_cancels_nothing(
    server: FakeServer, client: Client, pool: ThreadPoolExecutor
) -> None:
    server.runs[RUN] = documents.run(accepted_seq=1)
    server.add(documents.run_story(1, 0)[0])
    stop = threading.Event()
    waiting = pool.submit(client.wait, RUN, stop=stop.is_set, poll_s=1)
    server.wait_asked(JOURNAL, 2)
    stop.set()
    asked_s = time.monotonic()
    with pytest.raises(StopRequested) as caught:
        waiting.result(20)
    assert time.monotonic() - asked_s < 3  # the interval of 1 s, and room for a busy machine
    assert caught.value.after == 1
    assert not [request for request in server.requests if not request.startswith("GET")]


def test_stop_ends_a_wait_for_a_server_that_is_away(
    server: FakeServer, client: Client, pool: ThreadPoolExecutor
) -> None:
    server.runs[RUN] = documents.run(accepted_seq=1)
    server.add(documents.run_story(1, 0)[0])
    stop = threading.Event()
    waiting = pool.submit(client.wait, RUN, stop=stop.is_set)
    server.wait_asked(JOURNAL, 2)
    server.stop()
    stop.set()
    with pytest.raises(StopRequested):
        waiting.result(20)


def test_a_server_that_stays_away_is_the_typed_network_error(server: FakeServer, client: Client) -> None:
    server.runs[RUN] = documents.run(accepted_seq=1)
    server.stop()
    with pytest.raises(NetworkError, match="/v1/runs/"):
        client.wait(RUN, reconnect_s=0.3)


def test_waiting_for_an_unknown_run_and_with_a_wrong_token_are_typed(server: FakeServer, client: Client) -> None:
    with pytest.raises(NotFound):
        client.wait("run_unknown")
    with Client(server.url, "w" * 40) as stranger, pytest.raises(Unauthorized):
        stranger.wait(RUN)


def test_several_threads_may_share_one_client(server: FakeServer, client: Client, pool: ThreadPoolExecutor) -> None:
    server.runs[RUN] = documents.run(accepted_seq=1)
    server.add(documents.run_story(1, 0)[0])
    waits = [pool.submit(client.wait, RUN) for _ in range(4)]
    server.wait_asked(JOURNAL, 8)
    assert client.server().session_id == SESSION
    server.add(*documents.run_story(1, 0)[1:])
    assert {final.result(20).state for final in waits} == {"persisted"}
    assert all(isinstance(final.result(), Run) for final in waits)


def test_the_stream_goes_on_after_cuts_without_a_repeat(server: FakeServer, client: Client) -> None:
    def cut_after_two(request: Handler) -> None:
        request.begin_stream()
        for event in request.after(int(request.path.partition("after=")[2].partition("&")[0]))[:2]:
            request.send_event(event)
        request.send_text("id: 99\nevent: notice\nda")
        request.cut()

    server.add(*(documents.notice(seq) for seq in range(1, 9)))
    server.fault("/v1/events", cut_after_two, cut, cut_after_two, busy)
    seen = [item.seq for item in islice(client.events(), 8) if isinstance(item, Event)]
    assert seen == list(range(1, 9))
    assert server.asked("/v1/events") == 5


def test_attach_by_url_gives_a_handle_and_checks_that_the_server_answers(server: FakeServer) -> None:
    handle = Server.attach(url=server.url + "/", token=TOKEN)
    assert (handle.session_id, handle.pid) == (SESSION, 4242)
    with handle.client() as client:
        assert client.server().url == server.url
    server.stop()
    with pytest.raises(NetworkError):
        Server.attach(url=server.url, token=TOKEN)
