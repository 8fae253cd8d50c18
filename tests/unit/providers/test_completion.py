"""Frames of a chat completions stream become deltas and one reply, or one typed error."""

from __future__ import annotations

import itertools
import json

import pytest

from aura.conversation import Call
from aura.engine.providers.base import ProviderError
from aura.engine.providers.completion import Completion
from aura.engine.providers.sse import Frame

DONE = Frame("", "[DONE]")


def chunk(finish: str | None = None, index: int = 0, **delta: object) -> Frame:
    return Frame("", json.dumps({"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}))


def piece(index: int | None, arguments: str | None = None, id: str | None = None, name: str | None = None) -> dict:
    whole = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in whole.items() if value is not None}


@pytest.fixture
def complete(deltas):
    numbers = itertools.count(1)

    def run(*frames: Frame, reply_bytes: int = 1 << 20):
        completion = Completion("llamacpp", deltas, lambda: f"call_{next(numbers)}", reply_bytes)
        for frame in frames:
            completion.add(frame)
        return completion.finish()

    return run


def test_content_thinking_and_usage_are_put_together(complete, deltas):
    usage = Frame("", json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}))
    reply = complete(
        chunk(role="assistant", content=None),
        chunk(reasoning_content="hm"),
        chunk(reasoning="m"),
        chunk(content="naïve "),
        chunk(content="日本"),
        chunk(finish="stop"),
        usage,
        DONE,
    )
    assert (reply.content, reply.thinking, reply.input_tokens, reply.output_tokens) == ("naïve 日本", "hmm", 7, 3)
    assert deltas.all == [("hm", True), ("m", True), ("naïve ", False), ("日本", False)]


def test_the_token_limit_is_a_normal_end(complete):
    assert complete(chunk(content="half a sent"), chunk(finish="length")).content == "half a sent"


def test_a_surrogate_pair_in_two_deltas_is_one_character(complete, deltas):
    reply = complete(chunk(content="a\ud83d"), chunk(content="\ude00b"), chunk(content="\ud83d"), chunk(finish="stop"))
    assert reply.content == "".join(deltas.content) == "a😀b\ufffd"


def test_calls_are_assembled_by_index(complete):
    reply = complete(
        chunk(tool_calls=[piece(0, "", "a", "Read"), piece(1, '{"x"', "b", "Ls")]),
        chunk(tool_calls=[piece(1, ": 1}")]),
        chunk(tool_calls=[piece(0, '{"path": "naïve"}')]),
        chunk(finish="tool_calls"),
    )
    assert reply.calls == (Call("a", "Read", {"path": "naïve"}), Call("b", "Ls", {"x": 1}))


def test_calls_without_index_are_told_apart_by_their_ids(complete):
    reply = complete(
        chunk(tool_calls=[piece(None, "{", "a", "Read"), piece(None, "}")]),
        chunk(tool_calls=[piece(None, "{}", "b", "Ls")]),
        chunk(finish="tool_calls"),
    )
    assert [(call.id, call.name) for call in reply.calls] == [("a", "Read"), ("b", "Ls")]


def test_missing_and_repeated_ids_are_replaced(complete):
    pieces = [piece(0, "{}", name="A"), piece(1, "{}", "x", "B"), piece(2, "{}", "x", "C")]
    reply = complete(chunk(tool_calls=pieces), chunk(finish="tool_calls"))
    assert [call.id for call in reply.calls] == ["call_1", "x", "call_2"]


def test_no_arguments_at_all_are_an_empty_object(complete):
    reply = complete(chunk(tool_calls=[piece(0, "", "a", "TodoList")]), chunk(finish="tool_calls"))
    assert reply.calls == (Call("a", "TodoList", {}),)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([piece(0, '{"a": ', "a", "Read")], "'Read' are not JSON"),
        ([piece(0, "[1]", "a", "Read")], "'Read' are no object: \\[1\\]"),
        ([piece(0, '{"a": NaN}', "a", "Read")], "not JSON"),
        ([piece(0, "{}", "a")], "without a name"),
        ([{"index": 0, "function": {"name": "Read", "arguments": {"a": 1}}}], "are no text"),
        (["Read"], "is no object"),
    ],
)
def test_a_broken_call_is_malformed(complete, pieces, message):
    with pytest.raises(ProviderError, match=message) as caught:
        complete(chunk(tool_calls=pieces), chunk(finish="tool_calls"))
    assert (caught.value.kind, caught.value.run_error().code) == ("malformed", "internal")


@pytest.mark.parametrize("data", ["{", "[]", "1", "nonsense"])
def test_a_frame_that_is_no_chunk_is_malformed(complete, data):
    with pytest.raises(ProviderError, match="the stream holds data") as caught:
        complete(Frame("", data))
    assert caught.value.kind == "malformed"


def test_odd_but_harmless_chunks_are_ignored(complete):
    odd = ['{"choices": null}', '{"choices": [null, 1]}', '{"usage": [1]}', '{"choices": [{"delta": "x"}]}']
    other = Frame("aura.notice", "not even JSON")
    second = chunk(index=1, content="another choice")
    frames = [Frame("", data) for data in odd]
    assert complete(*frames, other, second, chunk(content="a"), chunk(finish="stop")).content == "a"


ERROR = '{"code": 500, "message": "m"}'


@pytest.mark.parametrize("frame", [Frame("", f'{{"error": {ERROR}}}'), Frame("error", ERROR)])
def test_an_error_frame_ends_the_call(complete, frame):
    with pytest.raises(ProviderError, match="m") as caught:
        complete(chunk(content="a"), frame)
    assert (caught.value.kind, caught.value.status) == ("server", 500)


def test_a_filtered_answer_is_content_filter(complete):
    with pytest.raises(ProviderError) as caught:
        complete(chunk(content="a"), chunk(finish="content_filter"), DONE)
    assert caught.value.run_error().code == "content_filter"


@pytest.mark.parametrize("frames", [[], [chunk(content="a")], [DONE]])
def test_a_stream_that_ends_early_is_a_network_failure(complete, frames):
    with pytest.raises(ProviderError) as caught:
        complete(*frames)
    assert caught.value.kind == "network"


def test_an_endless_answer_is_cut_off(complete):
    with pytest.raises(ProviderError, match="longer than") as caught:
        complete(*[chunk(content="x" * 100)] * 20, reply_bytes=1000)
    assert caught.value.kind == "malformed"
