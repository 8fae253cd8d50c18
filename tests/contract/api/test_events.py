"""`GET /v1/events` against a real server: replay, live items, heartbeats, slow readers, lost readers, limits."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from aura import limits
from tests.support.raw_server import Served, Stream, wait_for


def frames_of(events: list[dict[str, object]], lines: list[bytes]) -> bytes:
    pairs = zip(events, lines, strict=True)
    return b"".join(b"id: %d\nevent: %s\ndata: %s\n\n" % (e["seq"], str(e["type"]).encode(), line) for e, line in pairs)


def stored_stream(served: Served, after: int) -> bytes:
    """Return the bytes that a stream must have, made from the journal's own bytes."""
    body = served.get(f"/v1/journal?after={after}&limit=5000").body
    events = json.loads(body)["events"]
    lines = [json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() for event in events]
    assert b'{"events":[' + b",".join(lines) + b"]" in body, "the journal's JSON is canonical"
    return frames_of(events, lines)


@pytest.mark.requirement("http.events", "sse.same-events", "sse.replay")
def test_a_stream_replays_from_a_cursor_and_goes_on_live(served: Served) -> None:
    after = served.last_seq()
    first = served.run("hello")
    with served.stream(f"?after={after}") as stream:
        assert stream.response.headers["Content-Type"] == "text/event-stream"
        assert stream.response.headers["X-Accel-Buffering"] == "no"
        assert stream.response.headers["Cache-Control"] == "no-store"
        replayed = stream.until("run.persisted")
        second = served.submit("again")
        followed = stream.until("run.persisted")
    frames = replayed + followed
    assert [int(frame["id"]) for frame in frames] == list(range(after + 1, after + 1 + len(frames)))
    for frame in frames:
        event = json.loads(frame["data"])
        assert (event["type"], event["seq"]) == (frame["event"], int(frame["id"]))
    assert json.loads(replayed[-1]["data"])["data"]["run"] == first
    assert json.loads(followed[-1]["data"])["data"]["run"]["id"] == second["id"]


@pytest.mark.requirement("sse.last-event-id", "sse.last-event-id-wins")
def test_last_event_id_wins_over_after(served: Served) -> None:
    served.run("hello")
    last_seq = served.last_seq()
    with served.stream("?after=0", **{"Last-Event-ID": str(last_seq - 1)}) as stream:
        assert next(stream.frames())["id"] == str(last_seq)
    served.get("/v1/events", **{"Last-Event-ID": str(last_seq + 5)}).failure(409, "cursor_out_of_range")


@pytest.mark.requirement("sse.heartbeat")
def test_headers_come_at_once_and_a_quiet_stream_beats(served: Served) -> None:
    after = served.last_seq()
    started = time.monotonic()
    with served.stream(f"?after={after}&heartbeat=1") as stream:
        assert time.monotonic() - started < 0.9, "the headers wait for no event"
        frames = stream.frames()
        assert [next(frames), next(frames)] == [{"event": "heartbeat", "data": "{}"}] * 2
        assert 1.8 <= time.monotonic() - started < 10


@pytest.mark.requirement(
    "journal.no-thinking",
    "sse.transient.opt-in",
    "sse.transient.content",
    "sse.transient.thinking",
    "sse.transient.spinner",
)
def test_live_items_come_without_ids_before_their_message_and_only_on_request(served: Served) -> None:
    after = served.last_seq()
    query = f"?after={after}"
    with (
        served.stream(query) as plain,
        served.stream(f"{query}&transient=true") as live,
        served.stream(f"{query}&transient=true&thinking=true") as thinking,
    ):
        served.submit("slow")
        seen = {name: s.until("run.persisted") for name, s in (("p", plain), ("l", live), ("t", thinking))}
    assert all("id" in frame for frame in seen["p"])
    deltas = {name: {f["event"] for f in frames if "id" not in f} for name, frames in seen.items()}
    assert deltas == {
        "p": set(),
        "l": {"spinner", "delta.content"},
        "t": {"spinner", "delta.content", "delta.thinking"},
    }
    for name in ("l", "t"):
        kinds = [frame["event"] for frame in seen[name]]
        end = kinds.index("message.assistant")
        assert not any(kind.startswith(("delta", "spinner")) for kind in kinds[end:])
        waits = [json.loads(f["data"])["text"] for f in seen[name] if f["event"] == "spinner"]
        assert waits == ["waiting for scripted", ""], "until the first piece of the answer"
        message = json.loads(seen[name][end]["data"])["data"]
        pieces = [json.loads(f["data"]) for f in seen[name] if f["event"] == "delta.content"]
        assert {piece["message_id"] for piece in pieces} == {message["message_id"]}
        assert message["content"].endswith("".join(piece["text"] for piece in pieces))
    durable = [[frame for frame in frames if "id" in frame] for frames in seen.values()]
    assert durable[0] == durable[1] == durable[2]
    assert "let me think" not in json.dumps(served.journal(after))


@pytest.mark.requirement("sse.same-events")
def test_fifty_readers_get_the_same_bytes(served: Served) -> None:
    after = served.last_seq()
    streams = [served.stream(f"?after={after}&heartbeat=60") for _ in range(50)]
    try:
        for _ in range(8):
            served.run("slow and many")
        expected = b":\n\n" + stored_stream(served, after)
        with ThreadPoolExecutor(10) as pool:
            digests = list(pool.map(lambda s: hashlib.sha256(s.read_bytes(len(expected))).digest(), streams))
    finally:
        for stream in streams:
            stream.close()
    assert digests == [hashlib.sha256(expected).digest()] * 50


@pytest.mark.requirement("journal.slow-readers")
def test_a_reader_that_stops_reading_holds_up_nobody_and_loses_nothing(served: Served) -> None:
    after = served.last_seq()
    prompt = "brief " + "x" * 900_000
    with served.stream(f"?after={after}&heartbeat=60") as stalled:
        for _ in range(20):  # some 18 MB: far above what sockets and buffers hold
            run = served.run(prompt)
            assert run["outcome"] == "completed"
        with served.stream(f"?after={after}") as other:
            other.until("run.persisted")
        expected = b":\n\n" + stored_stream(served, after)
        assert len(expected) > 10_000_000
        assert stalled.read_bytes(len(expected)) == expected


def test_lost_readers_are_noticed_and_their_places_given_back(served: Served) -> None:
    before = served.open_sockets()
    streams = [served.stream("?heartbeat=1") for _ in range(30)]
    assert served.open_sockets() >= before + 30
    for stream in streams:
        stream.close()
    wait_for(lambda: served.open_sockets() <= before, "the connections of lost readers are closed")
    assert served.get("/v1/server").status == 200


@pytest.mark.parametrize("kind", ["waitress"], indirect=True)
def test_streams_beyond_the_threads_are_overloaded_and_control_calls_keep_a_reserve(
    fresh: Callable[..., Served],
) -> None:
    served = fresh()
    streams: list[Stream] = [served.stream() for _ in range(limits.STREAM_THREADS_COUNT)]
    try:
        answer = served.get("/v1/events")
        answer.failure(503, "overloaded")
        assert int(answer.headers["Retry-After"]) >= 1
        served.get(f"/v1/journal?after={served.last_seq()}&wait=30").failure(503, "overloaded")
        assert served.run("hello")["outcome"] == "completed"
        assert served.get("/v1/journal?wait=30").status == 200
    finally:
        for stream in streams:
            stream.close()
