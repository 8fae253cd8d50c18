"""`GET /v1/journal` with `wait`: when it answers, and with what."""

from __future__ import annotations

from tests.unit.api.parts import Api, a_row, fails_with


def page(*seqs: int, last_seq: int) -> bytes:
    return b'{"events":[' + b",".join(a_row(seq).line for seq in seqs) + b'],"last_seq":%d}' % last_seq


def test_events_that_are_there_are_answered_without_waiting(api: Api) -> None:
    api.store(a_row(1), a_row(2))
    assert api.get("/v1/journal?after=1&wait=60").get_data() == page(2, last_seq=2)
    assert api.signal.waits_ms == []
    assert ("open_feed",) not in api.service.calls


def test_a_quiet_journal_answers_an_empty_page_after_the_wait(api: Api) -> None:
    api.store(a_row(1))
    api.feed.publish([a_row(1)])
    assert api.get("/v1/journal?after=1&wait=7").get_data() == page(last_seq=1)
    assert api.signal.waits_ms == [7000]
    assert api.service.open_feeds == 0


def test_a_commit_ends_the_wait_and_the_page_keeps_its_limit(api: Api) -> None:
    api.signal.steps = [lambda: api.commit(a_row(1), a_row(2), a_row(3))]
    assert api.get("/v1/journal?wait=60&limit=2").get_data() == page(1, 2, last_seq=3)


def test_a_wake_without_events_goes_on_waiting_for_the_rest_of_the_time(api: Api) -> None:
    def idle() -> None:
        api.waiter.clock.at_ms += 4000
        api.signal.ring()

    api.signal.steps = [idle]
    assert api.get("/v1/journal?wait=10").get_data() == page(last_seq=0)
    assert api.signal.waits_ms == [10_000, 6000]


def test_an_event_committed_between_reading_and_watching_is_not_waited_for(api: Api) -> None:
    real_open = api.service.open_feed

    def open_late() -> object:
        api.commit(a_row(1))
        return real_open()

    api.service.open_feed = open_late  # type: ignore[method-assign, assignment]
    assert api.get("/v1/journal?wait=60").get_data() == page(1, last_seq=1)
    assert api.signal.waits_ms == []


def test_events_older_than_the_feed_are_read_from_the_store(api: Api) -> None:
    def commit_much() -> None:
        api.store(*(a_row(seq) for seq in range(1, 700)))
        api.feed.publish([a_row(seq) for seq in range(1, 700)])

    api.signal.steps = [commit_much]
    assert api.get("/v1/journal?wait=60&limit=2").get_data() == page(1, 2, last_seq=699)


def test_the_end_of_the_server_ends_the_wait_with_an_empty_page(api: Api) -> None:
    api.signal.steps = [api.streams.end]
    assert api.get("/v1/journal?wait=60").get_data() == page(last_seq=0)
    assert api.get("/v1/journal?wait=60").get_data() == page(last_seq=0)
    assert len(api.signal.waits_ms) == 1


def test_too_many_waiting_readers_are_told_to_come_back() -> None:
    api = Api(streams_max_count=1)
    api.store(a_row(1))
    with api.streams.watch():
        response = api.get("/v1/journal?after=1&wait=60")
        fails_with(response, 503, "overloaded")
        assert response.headers["Retry-After"] == "1"
        assert api.get("/v1/journal?after=1").status_code == 200
        assert api.get("/v1/journal?after=0&wait=60").status_code == 200
    assert api.get("/v1/journal?after=1&wait=1").status_code == 200
