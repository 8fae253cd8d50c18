"""Waiting without a network: order, exactly once, stop, restarts, and the places where it must give up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import client_documents as documents
import httpx
import pytest
from client_documents import RUN, TOKEN, Document

from aura_automation import BadRequest, Client, ContractDrift, CursorOutOfRange, Event, NetworkError, Run, StopRequested
from aura_automation._retry import Timing


@dataclass
class World:
    """A journal that grows as time passes, behind a mock transport. `down` says when the server is away."""

    events: list[Document]
    first_run: Document
    visible: int = 0
    grow: int = 2
    now_s: float = 0.0
    down: Callable[[float], bool] = lambda now_s: False
    requests: list[httpx.Request] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.down(self.now_s):
            raise httpx.ReadError("reset") if len(self.requests) % 2 else httpx.ConnectError("refused")
        if request.url.path == f"/v1/runs/{RUN}":
            return httpx.Response(200, json=self.first_run)
        return self._page(int(request.url.params["after"]), int(request.url.params["wait"]))

    def _page(self, after: int, wait_s: int) -> httpx.Response:
        first = int(str(self.events[0]["seq"])) if self.events else 1
        last_seq = first - 1 + self.visible
        if after > last_seq:
            error = documents.error(code="cursor_out_of_range", details={"last_seq": last_seq})
            return httpx.Response(409, json={"error": error})
        if after == last_seq and wait_s:
            self.now_s += wait_s
            self.visible = min(self.visible + self.grow, len(self.events))
            last_seq = first - 1 + self.visible
        page = [event for event in self.events[: self.visible] if int(str(event["seq"])) > after]
        return httpx.Response(200, json={"events": page, "last_seq": last_seq})

    def wait(self, **options: object) -> Run:
        timing = Timing(lambda: self.now_s, self.sleep)
        with Client("http://h", TOKEN, transport=httpx.MockTransport(self.answer), timing=timing) as client:
            return client.wait(RUN, **options)  # type: ignore[arg-type]


def world(notices: int = 6, **changes: object) -> World:
    return World(documents.run_story(3, notices), documents.run(accepted_seq=3), **changes)  # type: ignore[arg-type]


@pytest.mark.requirement("client.wait.exactly-once", "client.wait.terminal")
def test_every_event_comes_once_and_in_order_and_the_terminal_run_is_returned() -> None:
    seen: list[Event] = []
    final = world().wait(on_event=seen.append)
    assert [event.seq for event in seen] == list(range(3, 11))
    assert (seen[0].type, seen[-1].type) == ("run.accepted", "run.persisted")
    assert final.terminal
    assert final.result is not None
    assert final.result.content == "done"


def test_waiting_works_without_a_listener() -> None:
    assert world().wait().state == "persisted"


def test_a_given_cursor_starts_the_mirror_there() -> None:
    seen: list[Event] = []
    story = world(visible=5)
    story.wait(on_event=seen.append, after=6)
    assert [event.seq for event in seen] == [7, 8, 9, 10]


def test_a_run_that_is_over_is_mirrored_without_long_polls() -> None:
    story = world(visible=8)
    story.first_run = documents.persisted_run(accepted_seq=3)
    seen: list[Event] = []
    assert story.wait(on_event=seen.append).terminal
    assert [event.seq for event in seen] == list(range(3, 11))
    assert story.now_s == 0


def test_a_cursor_behind_the_end_of_a_settled_run_gives_its_record_at_once() -> None:
    story = world(visible=8)
    story.first_run = documents.persisted_run(accepted_seq=3)
    seen: list[Event] = []
    assert story.wait(on_event=seen.append, after=10).terminal
    assert seen == []


def test_events_of_other_runs_are_delivered_but_do_not_end_the_wait() -> None:
    other = documents.event(
        4, "run.lost", {"run": documents.run(id="run_2", state="lost", terminal=True)}, run_id="run_2"
    )
    story = world()
    story.events[1] = other
    seen: list[Event] = []
    assert story.wait(on_event=seen.append).id == RUN
    assert seen[1].run_id == "run_2"


def test_a_run_whose_server_was_killed_comes_back_lost() -> None:
    story = world()
    lost = documents.run(state="lost", terminal=True, error=documents.error(code="server_lost"))
    story.events[-1] = documents.event(10, "run.lost", {"run": lost})
    assert story.wait().state == "lost"


def test_an_outage_shorter_than_the_bound_loses_and_repeats_nothing() -> None:
    story = world(down=lambda now_s: 1.5 < now_s < 100)
    seen: list[Event] = []
    assert story.wait(on_event=seen.append, reconnect_s=120.0).terminal
    assert [event.seq for event in seen] == list(range(3, 11))
    assert story.now_s > 100


def test_an_outage_longer_than_the_bound_is_the_typed_network_error() -> None:
    story = world(down=lambda now_s: now_s > 1.5)
    seen: list[Event] = []
    with pytest.raises(NetworkError) as caught:
        story.wait(on_event=seen.append, reconnect_s=30.0)
    assert [event.seq for event in seen] == [3, 4, 5, 6]
    assert 28.0 < story.now_s < 33.0
    assert "given up after" in caught.value.__notes__[0]


def test_two_outages_have_a_budget_each() -> None:
    story = world(notices=20, down=lambda now_s: 1.5 < now_s < 21 or 24.5 < now_s < 44)
    assert story.wait(reconnect_s=25.0).terminal
    assert story.now_s > 44


def test_stop_is_honoured_within_the_poll_interval_and_says_where_it_was() -> None:
    story = world(notices=100)
    seen: list[Event] = []
    with pytest.raises(StopRequested) as caught:
        story.wait(on_event=seen.append, stop=lambda: story.now_s >= 5, poll_s=2)
    assert 5 <= story.now_s <= 7
    assert (caught.value.run_id, caught.value.after) == (RUN, seen[-1].seq)
    assert all(request.method == "GET" for request in story.requests)


def test_stop_is_honoured_during_an_outage() -> None:
    story = world(down=lambda now_s: now_s > 1.5)
    with pytest.raises(StopRequested):
        story.wait(stop=lambda: story.now_s >= 20)
    assert story.now_s < 20.5


def test_a_stop_that_is_already_true_sends_nothing() -> None:
    story = world()
    with pytest.raises(StopRequested):
        story.wait(stop=lambda: True)
    assert story.requests == []


def test_stop_is_asked_between_the_events_of_one_page() -> None:
    story = world(visible=8)
    seen: list[Event] = []
    with pytest.raises(StopRequested) as caught:
        story.wait(on_event=seen.append, stop=lambda: len(seen) == 3)
    assert caught.value.after == 5


def test_what_the_listener_raises_ends_the_wait() -> None:
    def refuse(event: Event) -> None:
        raise LookupError(event.type)

    with pytest.raises(LookupError, match=r"run\.accepted"):
        world().wait(on_event=refuse)


def test_a_hole_in_the_journal_is_drift() -> None:
    story = world(visible=8)
    del story.events[2]
    with pytest.raises(ContractDrift, match="6 follows 4"):
        story.wait()


def test_a_cursor_beyond_the_journal_is_the_servers_error() -> None:
    with pytest.raises(CursorOutOfRange) as caught:
        world().wait(after=99)
    assert caught.value.details == {"last_seq": 2}


@pytest.mark.parametrize("poll_s", [0, -1, 61])
def test_a_poll_interval_outside_its_bounds_is_refused(poll_s: int) -> None:
    with pytest.raises(BadRequest, match="poll_s"):
        world().wait(poll_s=poll_s)


def stream(*frames: str) -> httpx.Response:
    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content="".join(frames))


def frame(document: Document, **changes: str) -> str:
    fields = {"id": str(document["seq"]), "event": str(document["type"]), "data": json.dumps(document)} | changes
    return "".join(f"{name}: {value}\n" for name, value in fields.items()) + "\n"


def events_of(*answers: httpx.Response, **options: object) -> tuple[list[object], list[httpx.Request]]:
    """Return what `events` yields until it gives up on the connection, and the requests."""
    left = list(answers)
    requests: list[httpx.Request] = []
    now = [0.0]

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if not left:
            raise httpx.ConnectError("refused")
        return left.pop(0)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    items: list[object] = []
    timing = Timing(lambda: now[0], sleep)
    client = Client("http://h", TOKEN, transport=httpx.MockTransport(answer), timing=timing)
    with client, pytest.raises(NetworkError):
        for item in client.events(**options):  # type: ignore[arg-type]
            items.append(item)
    assert now[0] <= 120
    return items, requests


def test_the_stream_goes_on_from_its_last_durable_event_and_gives_up_after_its_bound() -> None:
    items, requests = events_of(
        stream(frame(documents.notice(3)), "event: heartbeat\ndata: {}\n\n", frame(documents.notice(4))),
        stream(": keep-alive\n\n", frame(documents.notice(5)), "id: 6\nevent: notice\ndata: {"),
        after=2,
        heartbeat=7,
    )
    assert [item.seq for item in items if isinstance(item, Event)] == [3, 4, 5]
    assert [request.url.params["after"] for request in requests[:3]] == ["2", "4", "5"]
    assert dict(requests[0].url.params) == {"after": "2", "transient": "false", "thinking": "false", "heartbeat": "7"}


@pytest.mark.requirement("sse.transient.sticky-id")
def test_live_events_are_told_by_their_type_although_the_last_id_sticks_to_them() -> None:
    delta = 'event: delta.content\ndata: {"message_id":"msg_1","text":"he"}\n\n'
    items, _ = events_of(stream(frame(documents.notice(1)), delta, frame(documents.notice(2))), transient=True)
    assert [getattr(item, "seq", None) for item in items] == [1, None, 2]


@pytest.mark.parametrize(
    ("frames", "problem"),
    [
        ([frame(documents.notice(2))], "seq: 2 follows 0"),
        ([frame(documents.notice(1), id="7")], "id: '7'"),
        ([frame(documents.notice(1), event="status")], "event: 'status'"),
        (["event: run.paused\ndata: {}\n\n"], "run.paused"),
        (["event: notice\ndata: nonsense\n\n"], "not a JSON document"),
    ],
)
def test_a_stream_that_breaks_the_contract_is_drift(frames: list[str], problem: str) -> None:
    with pytest.raises(ContractDrift, match=problem):
        events_of(stream(*frames))


def test_a_stream_of_another_media_type_is_drift() -> None:
    with pytest.raises(ContractDrift, match="Content-Type"):
        events_of(httpx.Response(200, text="hello"))


def test_a_refused_cursor_is_raised_before_any_event() -> None:
    with pytest.raises(CursorOutOfRange):
        events_of(httpx.Response(409, json={"error": documents.error(code="cursor_out_of_range")}))
