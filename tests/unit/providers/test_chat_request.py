"""The body that a chat completions server gets."""

from __future__ import annotations

import json

import pytest

from aura.config.spec import GenerationSpec
from aura.conversation import Call, Message
from aura.engine.providers.base import Request, ToolDefinition
from aura.engine.providers.chat_request import Dialect, encode_request


def body_of(request: Request, dialect: Dialect | None = None) -> dict:
    return json.loads(encode_request(request, dialect or Dialect()))


def test_a_conversation_is_encoded_in_order_without_thinking():
    messages = [
        Message("user", "look"),
        Message("assistant", "I will.", thinking="secret", calls=(Call("c1", "Ls", {"path": "naïve"}),)),
        Message("tool", "a.txt", tool_call_id="c1", tool_name="Ls"),
        Message("assistant", "Done.", thinking="secret"),
    ]
    body = body_of(Request("m", "Be careful.", messages))
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be careful."},
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "Ls", "arguments": '{"path":"naïve"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
            {"role": "assistant", "content": "Done."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_no_system_prompt_sends_no_system_message():
    assert body_of(Request("m", "", [Message("user", "hi")]))["messages"] == [{"role": "user", "content": "hi"}]


def test_tools_are_functions():
    tool = ToolDefinition("Ls", "Lists.", {"type": "object", "properties": {}})
    function = {"name": "Ls", "description": "Lists.", "parameters": {"type": "object", "properties": {}}}
    assert body_of(Request("m", "", [], tools=[tool]))["tools"] == [{"type": "function", "function": function}]


def test_generation_options_are_sent_where_they_are_set():
    generation = GenerationSpec(0.0, 0.9, 0.1, 0.2, 300, ("END",), 7)
    body = body_of(Request("m", "", [], generation=generation))
    assert {key: body[key] for key in body if key not in ("model", "messages", "stream", "stream_options")} == {
        "temperature": 0.0,
        "top_p": 0.9,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "max_tokens": 300,
        "stop": ["END"],
        "seed": 7,
    }


def test_openais_own_servers_have_another_name_for_the_token_limit():
    request = Request("m", "", [], generation=GenerationSpec(max_output_tokens=5))
    body = body_of(request, Dialect(length_key="max_completion_tokens"))
    assert body["max_completion_tokens"] == 5
    assert "max_tokens" not in body


@pytest.mark.parametrize(
    ("think", "effort"), [(None, None), ("off", None), ("on", "medium"), ("low", "low"), ("high", "high")]
)
def test_thinking_is_an_effort(think, effort):
    assert body_of(Request("m", "", [], think=think)).get("reasoning_effort") == effort


PNG = {"Data": "REVG", "media_type": "image/png"}
LINK = {"url": "https://images.example/a.png"}


def test_images_are_parts_of_the_user_message():
    message = Message("user", "see", images=({"Data": "QUJD"}, {"other": 1}, PNG, LINK))
    assert body_of(Request("m", "", [message]))["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,REVG"}},
        {"type": "image_url", "image_url": {"url": "https://images.example/a.png"}},
    ]


def test_lone_surrogates_are_replaced():
    assert body_of(Request("m", "", [Message("user", "a\ud800b")]))["messages"][0]["content"] == "a\ufffdb"
