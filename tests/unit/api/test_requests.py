"""Every route: what it passes on, what it answers, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from aura import limits
from aura.errors import (
    Busy,
    NotFound,
    NotPending,
    Overloaded,
    RequestConflict,
    ShuttingDown,
    StoreUnavailable,
)
from tests.unit.api.parts import AUTH, RUN_ID, TOKEN, Api, a_row, fails_with

GETS = [
    "/v1/server",
    "/v1/session",
    "/v1/session/messages",
    f"/v1/runs/{RUN_ID}",
    "/v1/runs?request_id=a",
    "/v1/journal",
    "/v1/events",
]
POSTS = ["/v1/runs", f"/v1/runs/{RUN_ID}/cancel", f"/v1/runs/{RUN_ID}/inputs/inp_1", "/v1/shutdown"]


@pytest.mark.requirement("http.auth")
@pytest.mark.parametrize("path", [*GETS, "/v1/nothing", "/", "/v1"])
@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer ü"],
)
def test_a_request_without_the_token_is_unauthorized_on_every_path(api: Api, path: str, header: str | None) -> None:
    response = api.client.get(path, headers={} if header is None else {"Authorization": header})
    fails_with(response, 401, "unauthorized")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert api.service.calls == []


@pytest.mark.parametrize("path", POSTS)
def test_a_post_without_the_token_does_nothing(api: Api, path: str) -> None:
    fails_with(api.client.post(path, data=b"{}"), 401, "unauthorized")
    assert api.service.calls == []


def test_the_scheme_is_not_case_sensitive(api: Api) -> None:
    assert api.client.get("/v1/server", headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/v1/server/", "//v1/server", "/v1/runs/a/b", "/V1/server"])
def test_an_unknown_path_is_not_found(api: Api, path: str) -> None:
    fails_with(api.get(path), 404, "not_found")


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/v1/runs"), ("POST", "/v1/server"), ("OPTIONS", "/v1/runs")])
def test_a_wrong_method_is_named_in_the_error_shape(api: Api, method: str, path: str) -> None:
    response = api.client.open(path, method=method, headers=AUTH)
    fails_with(response, 405, "bad_request")
    assert "GET" in response.headers["Allow"]


def test_get_server_and_session_answer_what_the_service_says(api: Api) -> None:
    assert api.get("/v1/server").get_json() == {"api": 1}
    response = api.get("/v1/session")
    assert response.get_json() == {"run": None}
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.requirement("http.messages")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (-1, False)),
        ("?after=-1&thinking=true", (-1, True)),
        ("?after=7&thinking=false", (7, False)),
        ("?after=99999999999999999999999", (2**63 - 1, False)),
    ],
)
def test_messages_are_read_after_an_index(api: Api, query: str, expected: tuple[int, bool]) -> None:
    assert api.get(f"/v1/session/messages{query}").get_json() == {"messages": [], "total": 0}
    assert api.service.calls == [("read_messages", *expected)]


@pytest.mark.requirement("http.journal.bounds", "http.events", "http.errors.bad-request", "sse.heartbeat.bounds")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/session/messages?after=-2",
        "/v1/session/messages?after=",
        "/v1/session/messages?after=1.0",
        "/v1/session/messages?after=+1",
        "/v1/session/messages?after=1_0",
        "/v1/session/messages?after=%D9%A1",
        "/v1/session/messages?thinking=yes",
        "/v1/session/messages?thinking=True",
        "/v1/journal?limit=0",
        "/v1/journal?limit=5001",
        "/v1/journal?limit=-1",
        "/v1/journal?wait=61",
        "/v1/journal?wait=-1",
        "/v1/journal?wait=1.5",
        "/v1/journal?after=abc",
        "/v1/journal?after=--1",
        "/v1/journal?after=1&after=2",
        "/v1/journal?limt=5",
        "/v1/events?heartbeat=0",
        "/v1/events?heartbeat=61",
        "/v1/events?transient=1",
        "/v1/events?thinking=",
        "/v1/events?after=x",
        "/v1/server?verbose=true",
        "/v1/runs",
        "/v1/runs?request_id=",
        "/v1/runs?request_id=%00",
        "/v1/runs?request_id=" + "a" * 257,
    ],
)
def test_a_query_that_is_not_exact_is_a_bad_request(api: Api, path: str) -> None:
    fails_with(api.get(path), 400, "bad_request")
    assert api.service.calls == []


@pytest.mark.requirement("http.runs.submit")
def test_a_new_run_is_202_and_a_known_one_200_with_the_replay_header(api: Api) -> None:
    body = {"request_id": "job:1", "prompt": "go", "on_input": "wait"}
    response = api.post("/v1/runs", body)
    assert response.status_code == 202
    assert "Idempotent-Replay" not in response.headers
    assert response.get_json()["request_id"] == "job:1"
    assert api.service.calls == [("submit", "job:1", "prompt", "go", "wait")]
    api.service.created = False
    response = api.post("/v1/runs", body)
    assert response.status_code == 200
    assert response.headers["Idempotent-Replay"] == "true"


@pytest.mark.requirement("http.runs.on-input-default")
def test_a_command_is_passed_on_as_a_command_and_block_is_the_default(api: Api) -> None:
    assert api.post("/v1/runs", {"request_id": "1", "command": "/help"}).status_code == 202
    assert api.service.calls == [("submit", "1", "command", "/help", "block")]


@pytest.mark.requirement("http.unknown-fields", "http.errors.bad-request")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"request_id": "1"},
        {"prompt": "x"},
        {"request_id": "1", "prompt": "x", "command": "/help"},
        {"request_id": "1", "prompt": None},
        {"request_id": "1", "prompt": 5},
        {"request_id": "1", "prompt": ["x"]},
        {"request_id": "", "prompt": "x"},
        {"request_id": "a" * 257, "prompt": "x"},
        {"request_id": "a\nb", "prompt": "x"},
        {"request_id": "\ud800", "prompt": "x"},
        {"request_id": 1, "prompt": "x"},
        {"request_id": "1", "prompt": "x", "on_input": "ask"},
        {"request_id": "1", "prompt": "x", "on_input": None},
        {"request_id": "1", "prompt": "x", "model": "other"},
        [],
        "text",
        None,
        12,
        True,
    ],
)
def test_a_run_body_that_is_not_exact_is_a_bad_request(api: Api, body: Any) -> None:
    import json

    fails_with(api.post("/v1/runs", json.dumps(body).encode()), 400, "bad_request")
    assert api.service.calls == []


@pytest.mark.requirement("http.json-bodies")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{'request_id': 1}",
        b'{"request_id":"1","prompt":"\xff"}',
        b'{"request_id":"1","prompt":NaN}',
        b'{"request_id":"1","prompt":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"request_id":"1","prompt":' + b"[" * 201 + b"]" * 201 + b"}",
        b"\x00",
        b'{"request_id":"1","prompt":"x"} trailing',
    ],
)
def test_a_body_that_is_not_json_is_a_bad_request(api: Api, data: bytes) -> None:
    fails_with(api.post("/v1/runs", data), 400, "bad_request")


def test_the_message_of_a_bad_body_names_the_field(api: Api) -> None:
    error = fails_with(api.post("/v1/runs", {"request_id": "1", "prompt": "x", "modle": 1}), 400, "bad_request")
    assert "modle" in error["message"]


@pytest.mark.parametrize("content_type", [None, "application/json", "application/json; charset=UTF-8"])
def test_json_types_and_no_type_are_taken_as_json(api: Api, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    assert api.post("/v1/runs", {"request_id": "1", "prompt": "x"}, headers=headers).status_code == 202


@pytest.mark.requirement("http.json-bodies")
@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "application/xml", "json"],
)
def test_another_media_type_is_a_bad_request(api: Api, content_type: str) -> None:
    response = api.post("/v1/runs", {"request_id": "1", "prompt": "x"}, headers={"Content-Type": content_type})
    fails_with(response, 400, "bad_request")


def test_texts_up_to_the_limit_pass_and_longer_ones_are_too_large(api: Api) -> None:
    limit = limits.TEXT_MAX_BYTES
    assert api.post("/v1/runs", {"request_id": "1", "prompt": "é" * (limit // 2)}).status_code == 202
    for body in (
        {"request_id": "1", "prompt": "é" * (limit // 2) + "x"},
        {"request_id": "1", "command": "/" * (limit + 1)},
    ):
        error = fails_with(api.post("/v1/runs", body), 400, "bad_request")
        assert error["details"] == {"reason": "too_large"}
    error = fails_with(api.post(f"/v1/runs/{RUN_ID}/inputs/i", {"answer": "x" * (limit + 1)}), 400, "bad_request")
    assert error["details"] == {"reason": "too_large"}


def test_a_body_over_the_limit_is_refused_before_it_is_parsed(api: Api) -> None:
    padding = b" " * (limits.BODY_MAX_BYTES - 30)
    body = b'{"request_id":"1","prompt":"x"}'
    assert len(body) == 31
    error = fails_with(api.post("/v1/runs", padding + body), 400, "bad_request")
    assert error["details"] == {"reason": "too_large"}
    assert api.post("/v1/runs", padding[1:] + body).status_code == 202


@pytest.mark.requirement("http.runs.get")
def test_a_run_is_found_by_its_id_and_by_its_request(api: Api) -> None:
    assert api.get(f"/v1/runs/{RUN_ID}").get_json()["id"] == RUN_ID
    assert api.get("/v1/runs?request_id=job%3A1+a").get_json()["request_id"] == "job:1 a"
    fails_with(api.get("/v1/runs/run_unknown"), 404, "not_found")


@pytest.mark.requirement("http.runs.cancel")
def test_cancel_answers_202_with_the_run(api: Api) -> None:
    response = api.post(f"/v1/runs/{RUN_ID}/cancel")
    assert response.status_code == 202
    assert response.get_json()["id"] == RUN_ID
    fails_with(api.post("/v1/runs/run_unknown/cancel", {}), 404, "not_found")


@pytest.mark.parametrize("path", [f"/v1/runs/{RUN_ID}/cancel", "/v1/shutdown"])
@pytest.mark.parametrize("data", [b'{"reason":"x"}', b"[]", b"nonsense"])
def test_a_body_where_none_belongs_is_a_bad_request(api: Api, path: str, data: bytes) -> None:
    fails_with(api.post(path, data), 400, "bad_request")
    assert api.service.calls == []


@pytest.mark.requirement("http.runs.inputs")
@pytest.mark.parametrize(
    ("body", "expected"),
    [({"answer": "red"}, ("red", None)), ({"answer": ""}, ("", None)), ({"action": "deny"}, (None, "deny"))],
)
def test_an_input_is_answered(api: Api, body: dict[str, str], expected: tuple[str | None, str | None]) -> None:
    response = api.post(f"/v1/runs/{RUN_ID}/inputs/inp_1", body)
    assert (response.status_code, response.get_json()) == (200, {})
    assert api.service.calls == [("answer_input", RUN_ID, "inp_1", *expected)]


@pytest.mark.requirement("http.unknown-fields")
@pytest.mark.parametrize(
    "body", [{}, {"answer": "a", "action": "deny"}, {"action": "maybe"}, {"answer": 1}, {"answer": "a", "x": 1}]
)
def test_an_input_reply_that_is_not_exact_is_a_bad_request(api: Api, body: dict[str, Any]) -> None:
    fails_with(api.post(f"/v1/runs/{RUN_ID}/inputs/inp_1", body), 400, "bad_request")
    assert api.service.calls == []


@pytest.mark.requirement("http.shutdown")
def test_shutdown_answers_202_and_stops_the_service(api: Api) -> None:
    response = api.post("/v1/shutdown")
    assert (response.status_code, response.get_json()) == (202, {})
    assert api.service.calls == [("stop", "request")]


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Busy("busy", details={"run_id": "run_x"}), 409, "busy"),
        (RequestConflict("conflict"), 409, "request_conflict"),
        (ShuttingDown("bye"), 503, "shutting_down"),
        (StoreUnavailable("disk"), 503, "store_unavailable"),
        (Overloaded("many"), 503, "overloaded"),
    ],
)
def test_refusals_of_the_service_keep_code_and_details(api: Api, failure: Any, status: int, code: str) -> None:
    api.service.failures["submit"] = failure
    response = api.post("/v1/runs", {"request_id": "1", "prompt": "x"})
    error = fails_with(response, status, code)
    assert error["details"] == failure.details
    assert error["retryable"] is False
    assert ("Retry-After" in response.headers) == (code == "overloaded")


@pytest.mark.parametrize(("failure", "status"), [(NotFound("no"), 404), (NotPending("no"), 409)])
def test_an_input_that_cannot_be_answered_says_why(api: Api, failure: Any, status: int) -> None:
    api.service.failures["answer_input"] = failure
    fails_with(api.post(f"/v1/runs/{RUN_ID}/inputs/i", {"answer": "a"}), status, failure.code)


def test_a_fault_is_answered_with_an_id_that_is_in_the_log_and_no_detail(api: Api) -> None:
    api.service.failures["read_server"] = RuntimeError("secret detail")
    error = fails_with(api.get("/v1/server"), 500, "internal")
    fault_id = error["message"].split()[2].rstrip(";")
    assert fault_id in api.service.log_text.getvalue()
    assert "secret" not in error["message"] + api.service.log_text.getvalue()


@pytest.mark.requirement("http.journal")
def test_a_journal_page_is_spliced_from_the_stored_bytes(api: Api) -> None:
    api.store(a_row(1), a_row(2), a_row(3))
    response = api.get("/v1/journal?after=1&limit=1")
    assert response.get_data() == b'{"events":[' + a_row(2).line + b'],"last_seq":3}'


@pytest.mark.requirement("http.errors.cursor-out-of-range")
@pytest.mark.parametrize("path", ["/v1/journal", "/v1/events"])
@pytest.mark.parametrize("after", ["-1", "4", "-99999999999999999999", "99999999999999999999"])
def test_a_cursor_out_of_range_is_a_conflict_that_tells_the_last_seq(api: Api, path: str, after: str) -> None:
    api.store(a_row(1), a_row(2), a_row(3))
    error = fails_with(api.get(f"{path}?after={after}"), 409, "cursor_out_of_range")
    assert error["details"] == {"last_seq": 3}
    assert api.service.open_feeds == 0
