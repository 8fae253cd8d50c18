"""Every way in which a model server can fail becomes the contract's error, from the call and from metadata alike."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from aura.config.spec import RetrySpec
from aura.engine.providers.base import ProviderError
from aura.engine.retry import stream_with_retry

TYPES = ("openai", "llamacpp", "llamaswap")
CHUNK = {"choices": [{"index": 0, "delta": {"content": "a"}}]}
M = "slot failed"
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.fixture
def fail_call(scope, request_of):
    def fail(provider):
        with pytest.raises(ProviderError) as caught:
            provider.stream(request_of("hi"), scope, lambda text, thinking: None)
        return caught.value

    return fail


@pytest.fixture
def fail_metadata(scope):
    def fail(provider):
        with pytest.raises(ProviderError) as caught:
            provider.context_tokens("m", scope)
        return caught.value

    return fail


def drop(exchange):
    exchange.drop()


def reset(exchange):
    exchange.drop(reset=True)


@pytest.mark.requirement("runs.provider.status")
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "internal"),
        (401, "provider_auth"),
        (402, "provider_credit"),
        (403, "provider_auth"),
        (404, "provider_model_unavailable"),
        (422, "internal"),
        (429, "provider_rate_limit"),
        (500, "provider_server"),
        (503, "provider_server"),
    ],
)
def test_error_statuses(server, make, fail_call, fail_metadata, type, status, code):
    body = json.dumps({"error": {"message": "the engine is not running", "type": "whatever"}}).encode()
    server.behave = lambda exchange: exchange.answer(status, body)
    provider = make(server.url, type)
    errors = [fail_call(provider)] + ([fail_metadata(provider)] if type != "openai" else [])
    for error in errors:
        found = error.run_error()
        assert (found.code, found.message) == (code, "the engine is not running")
        assert found.retryable == (code in ("provider_network", "provider_server", "provider_rate_limit"))
        assert found.details == {"status": status, "provider": type}
        assert not error.streamed


@pytest.mark.requirement("runs.provider.context-error")
def test_a_context_overflow_is_context_exhausted(server, make, fail_call):
    error = {"code": 400, "type": "exceed_context_size_error", "message": "too big", "n_prompt_tokens": 9, "n_ctx": 4}
    server.behave = lambda exchange: exchange.answer(400, json.dumps({"error": error}).encode())
    assert fail_call(make(server.url)).run_error().code == "context_exhausted"


def test_a_filtered_answer_is_content_filter(server, make, fail_call):
    server.behave = lambda exchange: exchange.stream(
        CHUNK, {"choices": [{"delta": {}, "finish_reason": "content_filter"}]}
    )
    assert fail_call(make(server.url)).run_error().code == "content_filter"


@pytest.mark.requirement("runs.provider.details")
@pytest.mark.parametrize(
    ("name", "value", "low_ms", "high_ms"),
    [
        ("retry-after", "7", 7_000, 7_000),
        ("retry-after-ms", "1500", 1_500, 1_500),
        ("Retry-After", "an HTTP date in two hours", 6_900_000, 7_200_000),
    ],
)
def test_retry_after_is_read_from_the_wire(server, make, fail_call, name, value, low_ms, high_ms):
    if "date" in value:
        value = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    server.behave = lambda exchange: exchange.answer(429, b"slow down", "text/plain", **{name: value})
    error = fail_call(make(server.url))
    assert (error.kind, error.message) == ("rate_limit", "slow down")
    assert low_ms <= (error.retry_after_ms or 0) <= high_ms


@pytest.mark.requirement("runs.provider.message")
def test_a_proxys_error_page_is_quoted_up_to_2_kib(server, make, fail_call, fail_metadata):
    page = b"<html><title>502 Bad Gateway</title>" + b"x" * 1_000_000
    server.behave = lambda exchange: exchange.answer(502, page, "text/html")
    for error in (fail_call(make(server.url)), fail_metadata(make(server.url))):
        assert error.run_error().code == "provider_server"
        assert error.message == page[:2048].decode()


@pytest.mark.requirement("runs.provider.unexpected-success")
def test_a_login_page_with_200_is_internal_and_verbatim(server, make, fail_call, fail_metadata):
    server.behave = lambda exchange: exchange.answer(
        200, b"<html>Please <b>log in</b></html>", "text/html; charset=utf-8"
    )
    for error in (fail_call(make(server.url)), fail_metadata(make(server.url))):
        found = error.run_error()
        assert (found.code, found.message) == ("internal", "<html>Please <b>log in</b></html>")
        assert (found.details["status"], found.retryable) == (200, False)


def test_a_redirect_to_a_login_page_is_the_same(server, make, fail_call):
    def behave(exchange):
        if exchange.path == "/login":
            exchange.answer(200, b"<html>log in</html>", "text/html")
        else:
            exchange.answer(302, b"", location="/login")

    server.behave = behave
    error = fail_call(make(server.url, token="s3cret"))
    assert (error.kind, error.status, error.message) == ("unclassified", 200, "<html>log in</html>")


def test_redirects_without_end_are_internal(server, make, fail_call):
    server.behave = lambda exchange: exchange.answer(302, b"", location=exchange.path)
    error = fail_call(make(server.url))
    assert (error.kind, "redirects without end" in error.message) == ("unclassified", True)


@pytest.mark.parametrize("body", [b"hello", b"", b'{"object": "chat.completion", "choices": []}'])
def test_a_body_without_frames_is_internal_and_quoted(server, make, fail_call, body):
    server.behave = lambda exchange: exchange.answer(200, body, "text/event-stream")
    error = fail_call(make(server.url))
    assert (error.kind, error.status, error.message) == (
        "unclassified",
        200,
        body.decode() or "HTTP 200 with an empty body",
    )


@pytest.mark.parametrize(
    ("frame", "code", "status"),
    [
        ({"error": {"code": 500, "message": M, "type": "server_error"}}, "provider_server", 500),
        (f'error: {{"code": 503, "message": "{M}", "type": "unavailable_error"}}', "provider_server", 503),
        ('event: error\ndata: {"message": "slot failed", "type": "rate_limit_error"}', "provider_rate_limit", None),
        ({"error": {"code": 400, "type": "exceed_context_size_error", "message": M}}, "context_exhausted", 400),
        ({"error": M}, "internal", None),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_classified(server, make, fail_call, frame, code, status):
    server.behave = lambda exchange: exchange.stream(CHUNK, frame)
    error = fail_call(make(server.url))
    found = error.run_error()
    assert (found.code, found.message, found.details.get("status")) == (code, M, status)
    assert error.streamed


@pytest.mark.parametrize("text", ["data: {broken", "data: nonsense", "data: [1, 2]", "data: \ndata: "])
def test_a_malformed_stream_is_internal(server, make, fail_call, text):
    server.behave = lambda exchange: exchange.stream(CHUNK, text, END)
    error = fail_call(make(server.url))
    assert (error.kind, error.run_error().code, error.streamed) == ("malformed", "internal", True)


def test_a_line_without_end_is_cut_off(server, make, fail_call):
    def behave(exchange):
        exchange.head(200, "text/event-stream")
        exchange.write(b"data: ")
        while exchange.write(b"x" * 65536):
            pass

    server.behave = behave
    error = fail_call(make(server.url))
    assert (error.kind, "is longer than" in error.message) == ("malformed", True)


def test_broken_tool_arguments_are_malformed(server, make, fail_call):
    call = {"index": 0, "id": "a", "function": {"name": "Ls", "arguments": '{"path": '}}
    server.behave = lambda exchange: exchange.stream({"choices": [{"delta": {"tool_calls": [call]}}]}, END)
    error = fail_call(make(server.url))
    assert (error.kind, error.run_error().code) == ("malformed", "internal")
    assert "'Ls'" in error.message


@pytest.mark.parametrize("leave", [drop, reset])
def test_a_connection_lost_before_the_answer_is_a_network_failure(server, make, fail_call, leave):
    server.behave = leave
    error = fail_call(make(server.url))
    assert (error.run_error().code, error.streamed) == ("provider_network", False)
    assert server.url in error.message


@pytest.mark.parametrize("length", [{}, {"content_length": "100000"}])
@pytest.mark.parametrize("leave", [drop, reset])
def test_a_connection_lost_in_the_answer_is_a_network_failure(server, make, fail_call, leave, length):
    def behave(exchange):
        exchange.head(200, "text/event-stream", **length)
        exchange.frame(CHUNK)
        leave(exchange)

    server.behave = behave
    error = fail_call(make(server.url))
    assert error.run_error().code == "provider_network"


def test_garbage_instead_of_http_is_a_network_failure(server, make, fail_call):
    server.behave = lambda exchange: (exchange.write(b"SSH-2.0-OpenSSH\r\n\r\n"), exchange.drop())
    assert fail_call(make(server.url)).kind == "network"


@pytest.mark.requirement("runs.outcome.provider-network", "runs.provider.unreachable")
def test_a_port_where_nobody_listens_is_a_network_failure(make, fail_call, fail_metadata):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        provider = make(f"http://127.0.0.1:{unused.getsockname()[1]}")
        for error in (fail_call(provider), fail_metadata(provider)):
            assert (error.kind, error.status) == ("network", None)
            assert "Connection refused" in error.message


@pytest.mark.requirement("runs.provider.unreachable")
def test_a_host_that_does_not_resolve_is_a_network_failure(make, fail_call):
    assert fail_call(make("http://no-such-host.invalid", timeout_ms=10_000)).run_error().code == "provider_network"


def test_a_server_that_does_not_speak_tls_is_a_network_failure(server, make, fail_call):
    assert fail_call(make(server.url.replace("http", "https"))).kind == "network"


def test_headers_that_do_not_come_in_time_are_a_network_failure(server, make, fail_call):
    server.behave = lambda exchange: exchange.client_has_gone()
    error = fail_call(make(server.url, timeout_ms=100))
    assert (error.kind, "within 100 ms" in error.message) == ("network", True)


def test_a_stream_that_falls_silent_is_a_network_failure(server, make, fail_call):
    def behave(exchange):
        exchange.stream(CHUNK, done=False)
        exchange.client_has_gone()

    server.behave = behave
    error = fail_call(make(server.url, idle_ms=100))
    assert (error.kind, error.streamed, "sent nothing for 100 ms" in error.message) == ("network", True, True)


def test_the_header_timeout_does_not_bound_the_answer(server, make, scope, request_of):
    def behave(exchange):
        exchange.stream(CHUNK, done=False)
        time.sleep(0.4)
        exchange.frame(END)

    server.behave = behave
    assert make(server.url, timeout_ms=300).stream(request_of("hi"), scope, lambda t, k: None).content == "a"


def test_an_error_body_that_drips_is_classified_by_its_status(server, make, fail_call):
    def behave(exchange):
        exchange.head(503, "text/plain", content_length="100000")
        exchange.write(b"starting")
        exchange.client_has_gone()

    server.behave = behave
    error = fail_call(make(server.url))
    assert (error.kind, error.status, error.message) == ("server", 503, "starting")


def test_an_error_body_without_end_is_read_only_so_far(server, make, fail_call):
    def behave(exchange):
        exchange.head(500, "text/plain")
        while exchange.write(b"x" * 65536):
            pass

    server.behave = behave
    error = fail_call(make(server.url))
    assert (error.kind, error.message) == ("server", "x" * 2048)


@pytest.mark.parametrize("status", [200, 401])
def test_a_token_that_the_server_repeats_is_not_shown(server, make, fail_call, fail_metadata, status):
    server.behave = lambda exchange: exchange.answer(
        status, b"x" * 2040 + exchange.headers["authorization"].encode(), "text/html"
    )
    provider = make(server.url, token="s3cret-s3cret-s3cret")
    for error in (fail_call(provider), fail_metadata(provider)):
        assert len(error.message) > 2000
        assert "s3" not in error.message


def test_no_failure_shows_the_token_in_its_causes(server, make, fail_call):
    server.behave = reset
    error: BaseException | None = fail_call(make(server.url, token="s3cret"))
    while error is not None:
        assert "s3cret" not in repr(error)
        error = error.__cause__ or error.__context__


def test_a_busy_server_is_asked_again_and_answers(server, make, scope, request_of):
    def behave(exchange):
        if len(server.requests) < 3:
            exchange.answer(503, b'{"error": {"message": "Loading model"}}')
        else:
            exchange.stream(CHUNK, END)

    server.behave = behave
    retry = RetrySpec(max_attempts=5, base_delay_ms=1, max_delay_ms=2)
    reply = stream_with_retry(make(server.url), request_of("hi"), scope, lambda text, thinking: None, retry)
    assert (reply.content, len(server.requests)) == ("a", 3)


def test_an_answer_that_had_begun_is_not_asked_for_again(server, make, scope, request_of):
    server.behave = lambda exchange: exchange.stream(CHUNK, {"error": {"code": 500, "message": "m"}})
    retry = RetrySpec(max_attempts=5, base_delay_ms=1, max_delay_ms=2)
    with pytest.raises(ProviderError):
        stream_with_retry(make(server.url), request_of("hi"), scope, lambda text, thinking: None, retry)
    assert len(server.requests) == 1
