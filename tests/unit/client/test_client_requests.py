"""Each method of the client: what it sends, how it reads the answer, when and for how long it tries again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import client_documents as documents
import httpx
import pytest
from client_documents import RUN, SESSION, TOKEN, Document

from aura_automation import (
    BadRequest,
    Busy,
    Client,
    ContractDrift,
    NetworkError,
    NotPending,
    Overloaded,
    Run,
    ShuttingDown,
    Unauthorized,
)
from aura_automation._retry import Timing

URL = "http://127.0.0.1:8123"
Answer = httpx.Response | Exception


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.naps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now_s += seconds

    def timing(self) -> Timing:
        return Timing(lambda: self.now_s, self.sleep)


class Wire:
    """Gives the listed answers in order, the last one for ever, and remembers the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


Make = Callable[..., Client]


@pytest.fixture
def clock() -> FakeTime:
    return FakeTime()


@pytest.fixture
def make(clock: FakeTime) -> Iterator[Make]:
    """Return a maker of clients on a wire."""
    clients: list[Client] = []

    def build(wire: Wire, url: str = URL, **options: object) -> Client:
        client = Client(url, TOKEN, transport=httpx.MockTransport(wire), timing=clock.timing(), **options)  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield build
    for client in clients:
        client.close()


def ok(document: Document, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=document)


def failure(status: int, code: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": documents.error(code=code)}, headers=named)


def body(request: httpx.Request) -> object:
    return json.loads(request.content)


def test_every_request_carries_the_token_and_no_proxy_of_the_environment_is_used(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    wire = Wire(ok(documents.server_info()))
    assert make(wire).server().session_id == SESSION
    assert wire.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert str(wire.requests[0].url) == f"{URL}/v1/server"


def test_a_redirect_is_drift_and_is_not_followed(make: Make) -> None:
    wire = Wire(httpx.Response(302, headers={"Location": "http://elsewhere.invalid/"}))
    with pytest.raises(ContractDrift, match="302"):
        make(wire).server()
    assert len(wire.requests) == 1


def test_session_and_messages_are_read(make: Make) -> None:
    assert make(Wire(ok(documents.session_info()))).session().status.agent == "main"
    wire = Wire(ok({"messages": [documents.message(thinking="hm")], "total": 1}))
    page = make(wire).messages(4, thinking=True)
    assert page.messages[0].thinking == "hm"
    assert dict(wire.requests[0].url.params) == {"after": "4", "thinking": "true"}


@pytest.mark.requirement("process.prompts-in-bodies")
def test_submit_sends_a_prompt_or_a_command_and_takes_a_new_run_and_a_replay(make: Make) -> None:
    wire = Wire(ok(documents.run(), 202), ok(documents.persisted_run(), 200))
    client = make(wire)
    assert client.submit("r:1", prompt="/not a command ü").state == "running"
    assert client.submit("r:2", command="/help", on_input="wait").terminal
    assert body(wire.requests[0]) == {"request_id": "r:1", "prompt": "/not a command ü", "on_input": "block"}
    assert body(wire.requests[1]) == {"request_id": "r:2", "command": "/help", "on_input": "wait"}
    assert wire.requests[0].headers["content-type"] == "application/json"


def test_submit_refuses_both_neither_and_text_that_is_not_unicode_before_sending(make: Make) -> None:
    wire = Wire(ok(documents.run(), 202))
    client = make(wire)
    with pytest.raises(BadRequest, match="exactly one"):
        client.submit("r")
    with pytest.raises(BadRequest, match="exactly one"):
        client.submit("r", prompt="a", command="/b")
    with pytest.raises(BadRequest, match="surrogates"):
        client.submit("r", prompt="\ud800")
    assert wire.requests == []


def test_find_run_returns_none_for_an_unknown_request(make: Make) -> None:
    wire = Wire(failure(404, "not_found"), ok(documents.run()))
    client = make(wire)
    assert client.find_run("a b&c") is None
    found = client.find_run("a b&c")
    assert found is not None
    assert found.id == RUN
    assert wire.requests[0].url.params["request_id"] == "a b&c"


def test_ids_cannot_change_the_path(make: Make) -> None:
    wire = Wire(ok(documents.run()))
    make(wire).run("../shutdown?x=1")
    assert wire.requests[0].url.raw_path == b"/v1/runs/..%2Fshutdown%3Fx%3D1"
    with pytest.raises(BadRequest, match="empty"):
        make(wire).run("")


def test_cancel_answer_decide_and_shutdown_post_what_the_contract_says(make: Make) -> None:
    wire = Wire(ok(documents.run(cancel_requested=True), 202), ok({}), ok({}), ok({}, 202))
    client = make(wire)
    assert client.cancel(RUN).cancel_requested
    client.answer(RUN, "inp_1", answer="2")
    client.decide(RUN, "inp_1", action="allow_session")
    client.shutdown()
    sent = [(request.method, request.url.path) for request in wire.requests]
    inputs = f"/v1/runs/{RUN}/inputs/inp_1"
    assert sent == [("POST", f"/v1/runs/{RUN}/cancel"), ("POST", inputs), ("POST", inputs), ("POST", "/v1/shutdown")]
    assert body(wire.requests[1]) == {"answer": "2"}
    assert body(wire.requests[2]) == {"action": "allow_session"}


def test_journal_asks_for_its_page_and_checks_its_bounds(make: Make) -> None:
    wire = Wire(ok({"events": [documents.notice(8)], "last_seq": 8}))
    client = make(wire)
    assert client.journal(7, limit=10, wait_s=2).last_seq == 8
    assert dict(wire.requests[0].url.params) == {"after": "7", "limit": "10", "wait": "2"}
    for wrong in ({"limit": 0}, {"limit": 5001}, {"wait_s": -1}, {"wait_s": 61}):
        with pytest.raises(BadRequest):
            client.journal(0, **wrong)


def test_an_http_error_is_raised_as_its_typed_error_without_another_try(make: Make) -> None:
    wire = Wire(failure(409, "busy"))
    with pytest.raises(Busy, match="something broke"):
        make(wire).submit("r", prompt="p")
    assert len(wire.requests) == 1


def test_an_unexpected_success_status_and_a_foreign_error_page_are_drift(make: Make) -> None:
    with pytest.raises(ContractDrift, match="201"):
        make(Wire(ok(documents.server_info(), 201))).server()
    with pytest.raises(ContractDrift, match="502"):
        make(Wire(httpx.Response(502, text="<h1>Bad gateway</h1>"))).server()


def test_a_server_that_echoes_the_request_cannot_put_the_token_into_an_error(make: Make) -> None:
    for status in (200, 302, 500):
        with pytest.raises(ContractDrift) as caught:
            make(Wire(httpx.Response(status, text=f"you sent Bearer {TOKEN}"))).server()
        assert TOKEN not in f"{caught.value}{caught.value!r}"
        assert "[token]" in str(caught.value)


def test_idempotent_calls_are_repeated_after_a_lost_connection(make: Make, clock: FakeTime) -> None:
    calls: list[Callable[[Client], Run | None]] = [
        lambda client: client.submit("r", prompt="p"),
        lambda client: client.run(RUN),
        lambda client: client.find_run("r"),
        lambda client: client.cancel(RUN),
    ]
    for call in calls:
        wire = Wire(httpx.ConnectError("refused"), httpx.ReadError("reset"), ok(documents.run(), 200))
        found = call(make(wire))
        assert found is not None
        assert found.id == RUN
        assert len(wire.requests) == 3
    assert all(nap > 0 for nap in clock.naps)


def test_the_pauses_double_up_to_their_bound_and_the_call_gives_up_within_its_budget(
    make: Make, clock: FakeTime
) -> None:
    wire = Wire(httpx.ConnectError("refused"))
    with pytest.raises(NetworkError, match="refused") as caught:
        make(wire, retry_s=10.0).server()
    assert clock.naps[:4] == [0.05, 0.1, 0.2, 0.4]
    assert max(clock.naps) == 2.0
    assert 8.0 < sum(clock.naps) <= 10.0
    assert len(wire.requests) == len(clock.naps) + 1
    assert "attempts" in caught.value.__notes__[0]
    assert caught.value.may_have_arrived is False


def test_no_retry_budget_means_one_attempt(make: Make, clock: FakeTime) -> None:
    wire = Wire(httpx.ReadTimeout("slow"))
    with pytest.raises(NetworkError) as caught:
        make(wire, retry_s=0).server()
    assert (len(wire.requests), clock.naps) == (1, [])
    assert caught.value.may_have_arrived
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_503_with_retry_after_is_repeated_when_it_says_and_one_without_is_not(make: Make, clock: FakeTime) -> None:
    wire = Wire(failure(503, "overloaded", Retry_After="3"), ok(documents.server_info()))
    make(wire).server()
    assert clock.naps == [3.0]
    wire = Wire(failure(503, "shutting_down"), ok(documents.run(), 202))
    with pytest.raises(ShuttingDown):
        make(wire).submit("r", prompt="p")
    assert len(wire.requests) == 1


def test_a_retry_after_beyond_the_budget_is_not_waited_for(make: Make, clock: FakeTime) -> None:
    wire = Wire(failure(503, "overloaded", Retry_After="3600"))
    with pytest.raises(Overloaded) as caught:
        make(wire, retry_s=20.0).server()
    assert caught.value.retry_after_s == 30.0
    assert clock.naps == []


def test_an_answer_is_repeated_only_when_it_certainly_did_not_arrive(make: Make) -> None:
    wire = Wire(httpx.ConnectError("refused"), ok({}))
    make(wire).answer(RUN, "inp_1", answer="yes")
    assert len(wire.requests) == 2
    wire = Wire(httpx.ReadError("reset"), failure(409, "not_pending"))
    with pytest.raises(NetworkError):
        make(wire).decide(RUN, "inp_1", action="deny")
    assert len(wire.requests) == 1
    with pytest.raises(NotPending):
        make(wire).answer(RUN, "inp_1", answer="yes")


def test_shutdown_is_never_repeated(make: Make) -> None:
    wire = Wire(httpx.ConnectError("refused"))
    with pytest.raises(NetworkError):
        make(wire).shutdown()
    assert len(wire.requests) == 1


def test_a_lost_connection_makes_the_client_look_into_the_ready_file(make: Make, tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    ready_file.write_text(json.dumps(documents.ready(url="http://127.0.0.1:9999")))
    wire = Wire(httpx.ConnectError("refused"), ok(documents.server_info()))
    make(wire, ready_file=ready_file, session_id=SESSION).server()
    assert [request.url.port for request in wire.requests] == [8123, 9999]


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "{",
        json.dumps(documents.ready(url="http://127.0.0.1:9999", session_id="other")),
        json.dumps(documents.ready(url="file:///etc/passwd")),
        json.dumps({"api": 1, "error": documents.error(code="session_locked")}),
    ],
)
def test_a_ready_file_that_is_not_of_this_session_is_not_followed(
    make: Make, tmp_path: Path, content: str | None
) -> None:
    ready_file = tmp_path / "ready.json"
    if content is not None:
        ready_file.write_text(content)
    wire = Wire(httpx.ConnectError("refused"), ok(documents.server_info()))
    make(wire, ready_file=ready_file, session_id=SESSION).server()
    assert [request.url.port for request in wire.requests] == [8123, 8123]


def test_a_wrong_token_is_unauthorized(make: Make) -> None:
    with pytest.raises(Unauthorized):
        make(Wire(failure(401, "unauthorized"))).server()
