"""Error answers are classified as contract.md and engine.md 5.3 say."""

from __future__ import annotations

import json

import pytest

from aura import limits
from aura.engine.providers.classify import classify, classify_frame, excerpt, find_retry_after_ms, unexpected

NOW_MS = 1_750_000_000_000  # 2025-06-15T15:06:40Z


def body(message: str, **more: object) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


@pytest.mark.requirement("runs.provider.status")
@pytest.mark.parametrize("provider", ["openai", "llamacpp", "llamaswap"])
@pytest.mark.parametrize(
    ("status", "kind", "code", "retryable"),
    [
        (400, "unclassified", "internal", False),
        (401, "auth", "provider_auth", False),
        (402, "credit", "provider_credit", False),
        (403, "auth", "provider_auth", False),
        (404, "model_unavailable", "provider_model_unavailable", False),
        (409, "unclassified", "internal", False),
        (422, "unclassified", "internal", False),
        (429, "rate_limit", "provider_rate_limit", True),
        (500, "server", "provider_server", True),
        (503, "server", "provider_server", True),
        (599, "server", "provider_server", True),
    ],
)
def test_the_status_decides(provider, status, kind, code, retryable):
    error = classify(status, body("it broke"), {}, provider, NOW_MS)
    run_error = error.run_error()
    assert (error.kind, run_error.code, run_error.retryable) == (kind, code, retryable)
    assert (run_error.message, run_error.details) == ("it broke", {"status": status, "provider": provider})


@pytest.mark.requirement("runs.provider.context-error")
@pytest.mark.parametrize("provider", ["openai", "llamacpp", "llamaswap"])
@pytest.mark.parametrize("names", [{"type": "exceed_context_size_error"}, {"code": "context_length_exceeded"}])
def test_a_structured_overflow_is_context_exhausted(provider, names):
    assert classify(400, body("too big", **names), {}, provider, NOW_MS).kind == "context_exhausted"


def test_overflow_and_filter_texts_count_for_openai_only():
    overflow = body("This model's maximum context length is 4096 tokens.")
    refusal = body("The content was stopped by a filter.")
    assert classify(400, overflow, {}, "openai", NOW_MS).kind == "context_exhausted"
    assert classify(400, refusal, {}, "openai", NOW_MS).kind == "content_filter"
    for text in (overflow, refusal):
        assert classify(400, text, {}, "llamacpp", NOW_MS).kind == "unclassified"
        assert classify(500, text, {}, "openai", NOW_MS).kind == "server"


def test_a_content_filter_code_is_content_filter_everywhere():
    assert classify(400, body("no", code="content_filter"), {}, "llamaswap", NOW_MS).kind == "content_filter"


@pytest.mark.requirement("runs.provider.message")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"error": "model not loaded"}', "model not loaded"),
        (b'{"message": "down"}', "down"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'"plain text"', "plain text"),
        (b"the engine is not running\n", "the engine is not running"),
        (b"<html><h1>502</h1></html>", "<html><h1>502</h1></html>"),
        (b"", "HTTP 503 without a message"),
        (b"  \n", "HTTP 503 without a message"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"error": null}', '{"error": null}'),
        (b"[" * 5000, "[" * 2048),
    ],
)
def test_the_message_is_the_servers_own(data, message):
    assert classify(503, data, {}, "llamaswap", NOW_MS).message == message


def test_a_long_body_is_cut_at_a_character():
    error = classify(502, ("é" * 5000).encode(), {}, "llamacpp", NOW_MS)
    assert error.message == "é" * (limits.MESSAGE_EXCERPT_BYTES // 2)
    assert excerpt("a" + "é" * 5000) == "a" + "é" * 1023


@pytest.mark.parametrize(
    ("headers", "expected_ms"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7_000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "1e300"}, limits.RETRY_AFTER_MAX_MS),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Sun, 15 Jun 2025 15:07:10 GMT"}, 30_000),
        ({"retry-after": "Sun, 15 Jun 2025 15:06:10 GMT"}, 0),
        ({"retry-after": "Sun, 99 Jun 2025 15:06:10 GMT"}, None),
        ({"retry-after-ms": "1500"}, 1_500),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1_500),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9_000),
    ],
)
def test_every_form_of_retry_after_is_read(headers, expected_ms):
    assert find_retry_after_ms(headers, NOW_MS) == expected_ms
    assert classify(429, b"", headers, "openai", NOW_MS).run_error().details.get("retry_after_ms") == expected_ms


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 500, "message": "m", "type": "server_error"}, "server", 500),
        ({"code": 503, "message": "m", "type": "unavailable_error"}, "server", 503),
        ({"code": "429", "message": "m"}, "rate_limit", 429),
        ({"code": 400, "type": "exceed_context_size_error", "message": "m"}, "context_exhausted", 400),
        ({"type": "server_error", "message": "m"}, "server", None),
        ({"type": "rate_limit_error", "message": "m"}, "rate_limit", None),
        ({"code": 200, "message": "m"}, "unclassified", None),
        ({"error": {"code": 401, "message": "m"}}, "auth", 401),
        ("m", "unclassified", None),
    ],
)
def test_an_error_inside_a_stream_is_classified_by_what_it_says(error, kind, status):
    found = classify_frame(error, "llamacpp")
    assert (found.kind, found.status, found.message) == (kind, status, "m")


def test_an_error_frame_without_a_message_is_quoted():
    assert classify_frame({"x": 1}, "openai").message == '{"x":1}'
    assert classify_frame([1], "openai").message == "[1]"


@pytest.mark.requirement("runs.provider.unexpected-success")
def test_a_page_instead_of_an_answer_is_quoted_and_unclassified():
    error = unexpected(200, b"<html>Please log in</html>", "llamaswap").run_error()
    assert (error.code, error.message, error.retryable) == ("internal", "<html>Please log in</html>", False)
    assert error.details == {"status": 200, "provider": "llamaswap"}
