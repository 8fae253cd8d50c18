"""What a chat completions server sends arrives as deltas and one reply."""

from __future__ import annotations

import threading

import pytest

from aura.conversation import Call, Message
from aura.engine.providers.base import ProviderError, Request, ToolDefinition


def chunk(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_an_answer_with_thinking_text_calls_and_usage(server, make, scope):
    server.behave = lambda exchange: exchange.stream(
        ": keep-alive",
        chunk(role="assistant", content=None),
        chunk(reasoning_content="hm"),
        chunk(content="naïve \u2028 日本 😀"),
        chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "Ls", "arguments": '{"path"'}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": ': "."}'}}]),
        chunk(finish="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}},
    )
    seen: list[tuple[str, bool]] = []
    reply = make(server.url).stream(
        Request("m", "Be careful.", [Message("user", "look")], [ToolDefinition("Ls", "Lists.", {"type": "object"})]),
        scope,
        lambda text, thinking: seen.append((text, thinking)),
    )
    assert (reply.content, reply.thinking) == ("naïve \u2028 日本 😀", "hm")
    assert reply.calls == (Call("a", "Ls", {"path": "."}),)
    assert (reply.input_tokens, reply.output_tokens) == (11, 5)
    assert seen == [("hm", True), ("naïve \u2028 日本 😀", False)]


def test_the_request_is_what_the_protocol_wants(server, make, scope, request_of, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
    server.behave = lambda exchange: exchange.stream(chunk(content="a"), chunk(finish="stop"))
    make(server.url).stream(request_of("hi"), scope, lambda text, thinking: None)
    make(server.url, "openai", token="s3cret").stream(request_of("hi"), scope, lambda text, thinking: None)
    without, with_token = server.requests
    assert (without.method, without.path, with_token.path) == ("POST", "/v1/chat/completions", "/chat/completions")
    assert without.headers["authorization"] is None
    assert with_token.headers["authorization"] == "Bearer s3cret"
    assert without.headers["content-type"] == "application/json"
    assert not [value for value in without.headers.values() if "of-the-environment" in value]
    assert without.json["stream_options"] == {"include_usage": True}


def test_every_call_has_its_own_connection_so_that_none_meets_one_that_is_closing(server, make, scope, request_of):
    def behave(exchange):
        data = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
        exchange.answer(200, data, "text/event-stream")

    server.behave = behave
    provider = make(server.url)
    for _ in range(3):
        assert provider.stream(request_of("hi"), scope, lambda text, thinking: None).content == "a"
    assert (len(server.requests), server.connections) == (3, 3)


def test_a_server_that_stays_connected_after_the_end_does_not_hold_the_reply(server, make, scope, request_of):
    gone = threading.Event()

    def behave(exchange):
        exchange.stream(chunk(content="a"), chunk(finish="stop"))
        if exchange.client_has_gone():
            gone.set()

    server.behave = behave
    assert make(server.url, timeout_ms=20_000).stream(request_of("hi"), scope, lambda t, k: None).content == "a"
    assert gone.wait(10)


def test_an_answer_that_was_whole_survives_a_connection_that_breaks_then(server, make, scope, request_of):
    def behave(exchange):
        exchange.head(200, "text/event-stream", content_length="100000")
        exchange.frame(chunk(content="whole", finish="stop"))
        exchange.drop(reset=True)

    server.behave = behave
    assert make(server.url).stream(request_of("hi"), scope, lambda t, k: None).content == "whole"


def test_frames_cut_into_single_bytes_arrive(server, make, scope, request_of):
    def behave(exchange):
        exchange.head(200, "text/event-stream")
        frames = ('{"choices":[{"delta":{"content":"日本"}}]}', '{"choices":[{"finish_reason":"stop"}]}')
        text = "".join(f"data: {frame}\r\n\r\n" for frame in frames)
        for byte in text.encode():
            exchange.write(bytes([byte]))

    server.behave = behave
    assert make(server.url).stream(request_of("hi"), scope, lambda t, k: None).content == "日本"


def test_a_flood_arrives_whole_through_a_slow_consumer_and_delays_nobody(server, make, scope, request_of):
    count = 20_000
    first_seen, other_done = threading.Event(), threading.Event()

    def behave(exchange):
        if exchange.json["messages"][1]["content"] == "short":
            exchange.stream(chunk(content="quick"), chunk(finish="stop"))
            return
        exchange.stream(*[chunk(content=f"{number} ") for number in range(count)], chunk(finish="stop"))

    server.behave = behave
    provider = make(server.url)
    slow: list[str] = []

    def consume(text, thinking):
        slow.append(text)
        first_seen.set()
        assert other_done.wait(20)

    flooded: list[str] = []
    thread = threading.Thread(
        target=lambda: flooded.append(provider.stream(request_of("flood"), scope, consume).content)
    )
    thread.start()
    assert first_seen.wait(20)
    assert provider.stream(request_of("short"), scope, lambda t, k: None).content == "quick"
    other_done.set()
    thread.join(60)
    assert flooded == ["".join(f"{number} " for number in range(count))]
    assert "".join(slow) == flooded[0]


@pytest.mark.parametrize(
    ("type", "paths"), [("llamacpp", ["/props"]), ("llamaswap", ["/upstream/a/b/props"]), ("openai", [])]
)
def test_the_context_window_comes_from_the_metadata_once(server, make, scope, type, paths):
    server.behave = lambda exchange: exchange.answer(200, b'{"default_generation_settings": {"n_ctx": 4096}}')
    provider = make(server.url, type)
    found = [provider.context_tokens("a/b", scope) for _ in range(3)]
    assert found == [4096 if paths else 0] * 3
    assert [exchange.path.split("?")[0] for exchange in server.requests] == paths


def test_a_router_without_upstream_paths_is_asked_by_query(server, make, scope):
    def behave(exchange):
        if exchange.path.startswith("/upstream"):
            exchange.answer(404, b'{"error": {"code": 404, "message": "File Not Found"}}')
        else:
            exchange.answer(200, b'{"default_generation_settings": {"n_ctx": 512}}')

    server.behave = behave
    assert make(server.url, "llamaswap").context_tokens("m", scope) == 512
    assert server.requests[-1].path == "/props?model=m&autoload=true"


def test_metadata_without_a_window_is_unknown(server, make, scope):
    server.behave = lambda exchange: exchange.answer(200, b'{"default_generation_settings": {"n_ctx": "many"}}')
    assert make(server.url).context_tokens("m", scope) == 0


def test_a_failed_metadata_request_is_made_again(server, make, scope):
    server.behave = lambda exchange: exchange.answer(503, b'{"error": {"message": "Loading model"}}')
    provider = make(server.url)
    with pytest.raises(ProviderError, match="Loading model"):
        provider.context_tokens("m", scope)
    server.behave = lambda exchange: exchange.answer(200, b'{"default_generation_settings": {"n_ctx": 512}}')
    assert provider.context_tokens("m", scope) == 512
