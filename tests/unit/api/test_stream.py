"""`GET /v1/events`: frames, order, heartbeats, live items, and the end."""

from __future__ import annotations

from typing import Any

import pytest

from aura.errors import StoreUnavailable
from aura.events import Delta, Spinner, ToolOutput
from aura.store.protocol import EventRow
from tests.unit.api.parts import Api, a_row, fails_with

OPENING = b":\n\n"
HEARTBEAT = b"event: heartbeat\ndata: {}\n\n"


def frame(row: EventRow) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.seq, row.type.encode(), row.line)


def live(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {data}\n\n".encode()


def content(message_id: str, text: str) -> bytes:
    return live("delta.content", f'{{"message_id":"{message_id}","text":"{text}"}}')


def assistant(seq: int, message_id: str) -> EventRow:
    return a_row(seq, "message.assistant", {"message_id": message_id, "content": "x", "tool_calls": []})


def read(api: Api, path: str, *steps: Any, **headers: str) -> bytes:
    """Return the whole stream; each step runs when the reader waits, and after the last one the server ends."""
    api.signal.steps = [*steps, api.streams.end]
    response = api.get(path, **headers)
    assert response.status_code == 200, response.get_data()
    data: bytes = response.get_data()
    response.close()
    assert api.service.open_feeds == 0
    return data


def test_the_headers_are_those_of_an_unbuffered_stream(api: Api) -> None:
    api.signal.steps = [api.streams.end]
    response = api.get("/v1/events")
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert "Content-Length" not in response.headers


def test_stored_events_are_replayed_from_the_start_and_then_followed(api: Api) -> None:
    api.store(a_row(1), a_row(2))
    data = read(api, "/v1/events", lambda: api.commit(a_row(3)), lambda: api.commit(a_row(4), a_row(5)))
    assert data == OPENING + b"".join(frame(a_row(seq)) for seq in range(1, 6))


@pytest.mark.requirement("sse.last-event-id-wins")
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/events?after=2", {}),
        ("/v1/events", {"Last-Event-ID": "2"}),
        ("/v1/events?after=1", {"Last-Event-ID": "2"}),
        ("/v1/events?after=999", {"Last-Event-ID": "2"}),
        ("/v1/events?after=2", {"Last-Event-ID": ""}),
    ],
)
def test_the_cursor_comes_from_after_or_from_the_header_which_wins(
    api: Api, path: str, headers: dict[str, str]
) -> None:
    api.store(a_row(1), a_row(2), a_row(3))
    assert read(api, path, **headers) == OPENING + frame(a_row(3))


def test_a_header_that_is_no_number_is_a_bad_request_and_one_beyond_the_end_a_conflict(api: Api) -> None:
    fails_with(api.get("/v1/events", **{"Last-Event-ID": "x"}), 400, "bad_request")
    fails_with(api.get("/v1/events", **{"Last-Event-ID": "-1"}), 409, "cursor_out_of_range")
    fails_with(api.get("/v1/events", **{"Last-Event-ID": "1"}), 409, "cursor_out_of_range")


def test_a_long_history_is_read_in_pages_and_sent_whole(api: Api) -> None:
    rows = [a_row(seq) for seq in range(1, 1501)]
    api.commit(*rows)
    assert read(api, "/v1/events") == OPENING + b"".join(map(frame, rows))
    limits = [call[2] for call in api.service.calls if call[0] == "read_journal"]
    assert max(limits) == 256


def test_large_events_are_sent_in_several_pieces(api: Api) -> None:
    rows = [a_row(seq, data={"level": "info", "source": "t", "message": "x" * 40_000}) for seq in range(1, 9)]
    api.commit(*rows)
    api.signal.steps = [api.streams.end]
    pieces = _pieces(api)
    assert b"".join(pieces) == OPENING + b"".join(map(frame, rows))
    assert max(map(len, pieces)) < 130_000


def _pieces(api: Api) -> list[bytes]:
    response = api.get("/v1/events")
    pieces = [bytes(piece) for piece in response.response]
    response.close()
    return pieces


def test_a_quiet_stream_beats_every_interval_of_silence(api: Api) -> None:
    data = read(api, "/v1/events?heartbeat=3", None, None, lambda: api.commit(a_row(1)), None)
    assert data == OPENING + HEARTBEAT + HEARTBEAT + frame(a_row(1)) + HEARTBEAT
    assert api.signal.waits_ms == [3000] * 5


@pytest.mark.requirement("sse.heartbeat")
def test_the_heartbeat_is_every_fifteen_seconds_unless_asked_for(api: Api) -> None:
    read(api, "/v1/events", None)
    assert api.signal.waits_ms == [15_000, 15_000]


def test_an_event_starts_the_silence_anew(api: Api) -> None:
    def late() -> None:
        api.waiter.clock.at_ms += 2000
        api.commit(a_row(1))

    read(api, "/v1/events?heartbeat=3", late)
    assert api.signal.waits_ms == [3000, 3000]


@pytest.mark.requirement("sse.transient.thinking")
def test_live_items_are_sent_only_on_request_and_thinking_only_when_asked_for(api: Api) -> None:
    def show() -> None:
        api.feed.show(Delta("m1", 0, "hm", thinking=True))
        api.feed.show(Delta("m1", 0, "Hi"))
        api.feed.show(ToolOutput("Bash", "line"))
        api.feed.show(Spinner("waiting"))

    rest = content("m1", "Hi") + live("tool.output", '{"name":"Bash","line":"line"}')
    rest += live("spinner", '{"text":"waiting"}')
    thinking = live("delta.thinking", '{"message_id":"m1","text":"hm"}')
    assert read(api, "/v1/events", show) == OPENING
    api.streams._ended = False
    assert read(api, "/v1/events?thinking=true", show) == OPENING
    api.streams._ended = False
    assert read(api, "/v1/events?transient=true", show) == OPENING + rest
    api.streams._ended = False
    assert read(api, "/v1/events?transient=true&thinking=true", show) == OPENING + thinking + rest


@pytest.mark.requirement("sse.transient.superseded")
def test_deltas_never_follow_the_message_that_supersedes_them(api: Api) -> None:
    def batch() -> None:
        api.feed.show(Delta("m1", 0, "a"))
        api.feed.show(Delta("m2", 0, "b"))
        api.commit(assistant(1, "m1"), a_row(2))
        api.feed.show(Delta("m1", 1, "late"))

    def later() -> None:
        api.feed.show(Delta("m1", 2, "later"))
        api.feed.show(Delta("m2", 1, "c"))

    data = read(api, "/v1/events?transient=true", batch, later)
    expected = content("m1", "a") + content("m2", "b") + content("m1", "late")
    assert data == OPENING + expected + frame(assistant(1, "m1")) + frame(a_row(2)) + content("m2", "c")


def test_a_delta_that_comes_after_its_message_without_an_earlier_one_is_dropped(api: Api) -> None:
    data = read(
        api,
        "/v1/events?transient=true",
        lambda: api.commit(assistant(1, "m1")),
        lambda: api.feed.show(Delta("m1", 0, "late")),
    )
    assert data == OPENING + frame(assistant(1, "m1"))


@pytest.mark.requirement("sse.transient.tool-output")
def test_tool_output_stands_before_the_end_of_its_call_even_with_an_odd_call_id(api: Api) -> None:
    call_id = 'call "1"\\\n'
    done = a_row(2, "tool.finished", {"call_id": call_id, "name": "Bash", "status": "ok", "result": "", "error": None})

    def batch() -> None:
        api.feed.show(ToolOutput("Bash", "one", call_id))
        api.commit(a_row(1), done)

    output = live("tool.output", '{"name":"Bash","line":"one"}')
    data = read(api, "/v1/events?transient=true", batch, lambda: api.feed.show(ToolOutput("Bash", "late", call_id)))
    assert data == OPENING + frame(a_row(1)) + output + frame(done)


def test_everything_committed_before_the_end_is_sent_though_the_feed_has_not_read_it(api: Api) -> None:
    def end() -> None:
        api.store(a_row(1), a_row(2))
        api.streams.end()

    assert read(api, "/v1/events", end) == OPENING + frame(a_row(1)) + frame(a_row(2))


def test_a_store_that_fails_ends_the_stream_with_a_line_in_the_log(api: Api) -> None:
    def fail() -> None:
        api.service.failures["read_journal"] = StoreUnavailable("disk gone")
        api.feed._head, api.feed._window = 700, ()
        api.signal.ring()

    assert read(api, "/v1/events", fail) == OPENING
    assert "disk gone" in api.service.log_text.getvalue()


def test_streams_beyond_the_limit_are_overloaded_until_one_ends() -> None:
    api = Api(streams_max_count=1)
    api.signal.steps = [api.streams.end]
    first = api.client.get("/v1/events", headers={"Authorization": "Bearer " + "t" * 32}, buffered=False)
    response = api.get("/v1/events")
    fails_with(response, 503, "overloaded")
    assert response.headers["Retry-After"] == "1"
    first.close()
    assert api.service.open_feeds == 0
    assert api.get("/v1/events").status_code == 200


def test_a_stream_that_is_never_read_gives_its_place_back(api: Api) -> None:
    api.get("/v1/events").close()
    assert api.service.open_feeds == 0
    assert api.feed._live == ()


def test_a_head_request_gives_its_place_back(api: Api) -> None:
    response = api.client.head("/v1/events", headers={"Authorization": "Bearer " + "t" * 32})
    assert response.status_code == 200
    response.close()
    assert api.service.open_feeds == 0
