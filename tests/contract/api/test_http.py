"""HTTP itself: bodies in every framing, bounds, keep-alive, pipelining, what is not HTTP, and the answer times."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator

import pytest

from aura import limits
from tests.support.raw_server import Served, exchange, wait_for


def chunked(served: Served, pieces: Iterator[bytes]) -> tuple[int, dict[str, object]]:
    connection = served.connect()
    headers = {**served.headers, "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    connection.request("POST", "/v1/runs", body=pieces, headers=headers, encode_chunked=True)
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    return response.status, body


def raw(served: Served, line: str, *headers: str, body: bytes = b"") -> bytes:
    head = [line, "Host: x", *(f"{name}: {value}" for name, value in served.headers.items()), *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def test_a_chunked_body_is_a_body(served: Served) -> None:
    text = json.dumps({"request_id": "chunked", "prompt": "brief x"}).encode()
    status, run = chunked(served, iter([text[:7], text[7:]]))
    assert status in (200, 202)
    served.finish(run)


@pytest.mark.parametrize("size_bytes", [limits.BODY_MAX_BYTES + 1, 2 * limits.BODY_MAX_BYTES + 1])
def test_a_body_over_the_limit_is_a_bad_request_in_both_framings(served: Served, size_bytes: int) -> None:
    served.post("/v1/runs", b" " * size_bytes).failure(400, "bad_request")
    status, body = chunked(served, (b" " * 65536 for _ in range(size_bytes // 65536 + 1)))
    assert (status, body["error"]["code"]) == (400, "bad_request")  # type: ignore[index]


def test_a_body_of_exactly_the_limit_is_read_in_both_framings(served: Served) -> None:
    text = json.dumps({"request_id": "", "prompt": "x"}).encode()
    padded = text + b" " * (limits.BODY_MAX_BYTES - len(text))
    assert "request_id" in served.post("/v1/runs", padded).failure(400, "bad_request")["message"]
    status, body = chunked(served, iter([padded]))
    assert status == 400
    assert "request_id" in str(body)


def test_a_connection_is_usable_after_a_refused_body(served: Served) -> None:
    connection = served.connect()
    body = b" " * (limits.BODY_MAX_BYTES + 1)
    served.request_on(connection, "POST", "/v1/runs", body).failure(400, "bad_request")
    assert served.request_on(connection, "GET", "/v1/server").status == 200
    connection.close()


def test_broken_chunks_are_a_bad_request_and_end_the_connection(served: Served) -> None:
    request = raw(served, "POST /v1/runs HTTP/1.1", "Transfer-Encoding: chunked", body=b"zz\r\nhello\r\n0\r\n\r\n")
    answer = exchange(served.port, request + raw(served, "GET /v1/server HTTP/1.1"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"bad_request"' in answer
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "data",
    [b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/runs HTTP/1.1\r\nContent-Length: x\r\n\r\n"],
)
def test_what_is_not_http_is_a_bad_request_in_the_error_shape_or_is_cut_off(served: Served, data: bytes) -> None:
    answer = exchange(served.port, data)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0] or b" 401 " in head.splitlines()[0]
    assert set(json.loads(body)) == {"error"}
    assert b"Traceback" not in answer
    assert served.get("/v1/server").status == 200


def test_an_endless_request_line_is_refused(served: Served) -> None:
    answer = exchange(served.port, b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n")
    assert answer == b"" or b'"code":"bad_request"' in answer


def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    requests = raw(served, "GET /v1/runs/run_a HTTP/1.1") + raw(served, "GET /v1/runs/run_b HTTP/1.1")
    answer = exchange(served.port, requests + raw(served, "GET /v1/server HTTP/1.1", "Connection: close"))
    assert answer.count(b"HTTP/1.1 404") == 2
    assert answer.index(b"run_a") < answer.index(b"run_b") < answer.index(b'"aura_version"')


def test_a_client_that_expects_100_continue_is_told_to_go_on(served: Served) -> None:
    body = b'{"request_id":"","prompt":"x"}'
    request = raw(
        served,
        "POST /v1/runs HTTP/1.1",
        "Expect: 100-continue",
        f"Content-Length: {len(body)}",
        "Connection: close",
        body=body,
    )
    answer = exchange(served.port, request)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 ")


def test_a_keep_alive_get_does_not_wait_for_delayed_acknowledgements(served: Served) -> None:
    connection = served.connect()
    times_ms = []
    for _ in range(50):
        started = time.perf_counter()
        assert served.request_on(connection, "GET", "/v1/server").status == 200
        times_ms.append((time.perf_counter() - started) * 1000)
    connection.close()
    assert statistics.median(times_ms) < 20  # the trap costs 44 ms each


@pytest.mark.requirement("longpoll.wait")
def test_a_long_poll_wakes_with_the_commit(served: Served) -> None:
    connection, times_ms = served.connect(), []
    for _ in range(15):
        after = served.last_seq()
        connection.request("GET", f"/v1/journal?after={after}&wait=30", headers=served.headers)
        time.sleep(0.03)  # not a wait for anything: it lets the poll be at rest, which is what is measured
        started = time.perf_counter()
        run = served.submit("brief x")
        page = json.loads(connection.getresponse().read())
        times_ms.append((time.perf_counter() - started) * 1000)
        assert page["events"][0]["type"] == "run.accepted"
        assert page["events"][0]["seq"] == after + 1
        served.finish(run)
    connection.close()
    assert statistics.median(times_ms) < 100


@pytest.mark.requirement("longpoll.wait")
def test_a_quiet_long_poll_answers_an_empty_page_when_its_time_is_over(served: Served) -> None:
    after = served.last_seq()
    started = time.monotonic()
    answer = served.get(f"/v1/journal?after={after}&wait=1")
    assert answer.json == {"events": [], "last_seq": after}
    assert 0.9 <= time.monotonic() - started < 10


def test_the_log_has_no_token_no_prompt_and_no_traceback(served: Served) -> None:
    served.finish(served.submit("brief secretword"))
    log = wait_for(lambda: served.log() or "-", "the log can be read")
    for secret in (served.token, "secretword", "Traceback"):
        assert secret not in log
