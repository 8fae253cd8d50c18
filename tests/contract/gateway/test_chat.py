"""Chats over HTTP: streams, documents, sessions, tools, errors, and callers that go away (streaming-guide.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.gateway import Gateway, hang_up, read_until
from tests.support.serving import Site, bash, calls, until

Launch = Callable[..., Gateway]


def test_a_stream_says_the_whole_answer_and_ends(site: Site, launch: Launch) -> None:
    site.script({"chunks": ["Hel", "lo ", "there"], "chunk_delay_ms": 30, "usage": {"input": 4, "output": 3}})
    answer = launch().chat("hi", stream=True)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    assert (answer.headers["Cache-Control"], answer.headers["X-Accel-Buffering"]) == ("no-cache", "no")
    assert answer.headers["X-Chat-Session-Id"].startswith("cs_")
    assert answer.text == "Hello there"
    *chunks, done = [data for _, data in answer.frames]
    assert done == "[DONE]"
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        (chunks[0]["id"], "chat.completion.chunk", "script/scripted")
    }
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert chunks[-1]["usage"] == {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}


def test_a_document_is_the_same_answer_and_a_session(site: Site, launch: Launch) -> None:
    site.script({"content": "Hello", "usage": {"input": 4, "output": 3}})
    answer = launch().chat("hi", metadata={"chat_session_id": "mine"}, max_tokens=3)
    assert (answer.status, answer.headers["X-Chat-Session-Id"]) == (200, "mine")
    assert answer.json["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "length"}
    ]
    assert answer.json["metadata"] == {"chat_session_id": "mine"}
    assert site.rows("SELECT session_id, messages, profile FROM v_session") == [("mine", 2, "gateway")]
    assert site.rows("SELECT state, outcome FROM run") == [("persisted", "completed")]


def test_a_conversation_goes_on_in_its_session_and_keeps_what_both_know(site: Site, launch: Launch) -> None:
    site.script(
        calls(bash("echo seen"), content="Let me look."),
        {"content": "I saw it."},
        {"content": "You said: {{ user }}", "repeat": "forever"},
    )
    gateway = launch()
    header = {"X-Chat-Session-Id": "s1"}
    first = gateway.chat("look", stream=True, headers=header).text
    assert first == "Let me look.\n\nI saw it."
    told = [{"role": "user", "content": "look"}, {"role": "assistant", "content": first}]
    again = gateway.chat(*told, "thanks", headers=header)
    assert again.json["choices"][0]["message"]["content"] == "You said: thanks"
    roles = [row[0] for row in site.rows("SELECT role FROM v_message WHERE session_id = 's1' ORDER BY idx")]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    other = gateway.chat("something else", headers=header)
    assert other.status == 200
    roles = [row[0] for row in site.rows("SELECT role FROM v_message WHERE session_id = 's1' ORDER BY idx")]
    assert roles == ["user", "assistant"]
    assert site.rows("SELECT max(messages) FROM v_revision WHERE session_id = 's1'") == [(6,)]


@pytest.mark.parametrize(
    ("mode", "arguments"),
    [
        ("none", ['{"command":"echo seen"}']),
        ("aura", ['{"command":"echo seen"}']),
        ("open-web-ui", ["", "seen... [truncated]"]),
    ],
)
def test_tools_are_shown_by_mode_and_custom_events_by_switch(
    site: Site, launch: Launch, mode: str, arguments: list[str]
) -> None:
    site.script(calls(bash("echo seen"), content="Look."), {"content": "Done.", "usage": {"input": 2, "output": 1}})
    words = ("--tool-result-mode", mode, "--tool-result-max-length", "4", "--aura-custom-events")
    answer = launch(*words).chat("go", stream=True)
    shown = [
        call["function"]["arguments"]
        for name, data in answer.frames
        if not name and isinstance(data, dict)
        for choice in data["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert shown == arguments
    assert [name for name, _ in answer.frames if name] == [
        "aura.session_info",
        "aura.tool_requested",
        "aura.tool_start",
        "aura.tool_complete",
        "aura.usage",
    ]
    complete = next(data for name, data in answer.frames if name == "aura.tool_complete")
    assert (complete["success"], complete["result"], complete["choices"]) == (True, "seen... [truncated]", [])


def test_a_variable_switches_what_a_flag_does_not(site: Site, launch: Launch) -> None:
    environment = {"AURA_CUSTOM_EVENTS": "true", "AURA_EMIT_REASONING": "true"}
    site.script({"thinking": "hmm", "content": "ok", "delay_ms": 0})
    answer = launch(environment=environment).chat("go", stream=True)
    assert answer.frames[0][0] == "aura.session_info"
    assert answer.text == "ok"


# --- the caller's own tools ------------------------------------------------------------------------------------------

OFFER: dict[str, Any] = {"type": "function", "function": {"name": "ask_page", "parameters": {"type": "object"}}}
TOML = """
[agent]
name = "page"
system_prompt = "Ask the page."
enable_client_tools = true
[agent.llm]
provider = "script"
file = "script.yaml"
model = "scripted"
"""


@pytest.mark.parametrize("stream", [True, False])
def test_a_callers_tool_is_called_by_the_caller_and_answered_by_it(site: Site, launch: Launch, stream: bool) -> None:
    site.script(
        calls({"id": "c7", "name": "ask_page", "arguments": {"q": 1}}, content="Wait."),
        {"content": "It says {{ last }}"},
    )
    path = site.write("page.toml", TOML)
    gateway = launch("--agents", str(path), "--default-agent", "page")
    header = {"X-Chat-Session-Id": "s1"}
    first = gateway.chat("ask it", stream=stream, tools=[OFFER], headers=header)
    if stream:
        chunks = [data for _, data in first.frames if isinstance(data, dict)]
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
        (call,) = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    else:
        choice = first.json["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        (call,) = choice["message"]["tool_calls"]
    assert (call["id"], call["function"]) == ("c7", {"name": "ask_page", "arguments": '{"q":1}'})
    told = [
        {"role": "user", "content": "ask it"},
        {"role": "assistant", "content": "Wait.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c7", "content": "blue"},
    ]
    second = gateway.chat(*told, tools=[OFFER], headers=header)
    assert second.json["choices"][0]["message"]["content"] == "It says blue"
    stored = site.rows("SELECT role, content FROM v_message WHERE session_id = 's1' ORDER BY idx")
    assert stored == [("user", "ask it"), ("assistant", "Wait."), ("tool", "blue"), ("assistant", "It says blue")]


def test_tools_are_dropped_where_the_agent_takes_none_and_refused_where_it_has_them(site: Site, launch: Launch) -> None:
    gateway = launch()
    assert gateway.chat("hi", tools=[OFFER]).json["choices"][0]["message"]["content"] == "Hello there."
    site.write("page.toml", TOML.replace("[agent.llm]", "[agent.llm]\n") + '[tools]\nbuiltin = ["Bash"]\n')
    named_alike = {"type": "function", "function": {"name": "Bash"}}
    other = launch("--agents", str(site.home / "page.toml"))
    refused = other.chat("hi", model="page", tools=[named_alike])
    assert (refused.status, "Bash" in refused.error["message"]) == (400, True)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x"}], "stream": "maybe"}, "stream"),
    ],
)
def test_a_bad_request_names_its_member(launch: Launch, body: Any, param: str) -> None:
    answer = launch().request("POST", "/v1/chat/completions", body)
    assert (answer.status, answer.error["type"], answer.error["param"]) == (400, "invalid_request_error", param)
    assert set(answer.error) == {"message", "type", "param", "code"}


def test_other_bad_requests(launch: Launch) -> None:
    gateway = launch()
    path = "/v1/chat/completions"
    assert gateway.request("POST", path, b"{", {"Content-Type": "application/json"}).status == 400
    assert gateway.request("POST", path, b"{}", {"Content-Type": "text/plain"}).status == 400
    assert gateway.chat("hi", headers={"X-Chat-Session-Id": "../etc"}).status == 400
    assert gateway.request("GET", path).status == 405
    missing = gateway.get("/v1/nothing")
    assert (missing.status, missing.error["type"]) == (404, "not_found_error")


def test_an_unknown_model_is_not_found_where_there_are_several(site: Site, launch: Launch) -> None:
    site.write("config/agents/second.md", "---\nname: second\nmodel: {provider: script, name: scripted}\n---\nYes.\n")
    gateway = launch()
    error = gateway.chat("hi", model="third").error
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", "model", "model_not_found")
    assert gateway.chat("hi", model="second").status == 200
    assert gateway.chat("hi").status == 200  # `main` is the default
    assert [model["id"] for model in gateway.get("/v1/models").json["data"]] == ["main", "second"]


def test_a_session_has_one_run_at_a_time(site: Site, launch: Launch) -> None:
    site.script({"when": {"last": "slow"}, "content": "slow", "delay_ms": 60_000}, {"content": "next"})
    gateway = launch()
    header = {"X-Chat-Session-Id": "s1"}
    connection, response = gateway.open_chat("slow", metadata={"chat_session_id": "s1"})
    refused = gateway.chat("other", headers=header)
    ((run_id,),) = site.rows("SELECT run_id FROM run")
    assert (refused.status, refused.error["code"]) == (409, "run_in_progress")
    assert refused.error["details"] == {"run_id": run_id}
    hang_up(connection, response)
    until(lambda: site.rows("SELECT 1 FROM run WHERE state = 'persisted'"), "the end of the run")
    assert gateway.chat("other", headers=header).status == 200


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ({"kind": "http", "status": 500, "message": "secret text"}, 502, "provider_server"),
        ({"kind": "http", "status": 429, "message": "secret text", "retry_after_ms": 1500}, 429, "provider_rate_limit"),
        ({"kind": "context_exhausted"}, 400, "context_exhausted"),
    ],
)
def test_a_provider_that_fails_is_an_error_of_either_kind(
    site: Site, launch: Launch, error: dict[str, Any], status: int, code: str
) -> None:
    site.script({"error": {**error, "times": 2}})
    gateway = launch()
    whole = gateway.chat("hi")
    assert (whole.status, whole.error["code"]) == (status, code)
    assert whole.headers.get("Retry-After") == ("2" if status == 429 else None)
    streamed = gateway.chat("hi", stream=True)
    assert streamed.status == 200
    (_, failed), (_, done) = streamed.frames
    assert (failed["error"]["code"], done) == (code, "[DONE]")
    assert "secret text" not in str(whole.json) + str(streamed.frames)


# --- callers and providers that are not there ------------------------------------------------------------------------


def test_a_caller_that_hangs_up_ends_the_run_and_its_tool(site: Site, launch: Launch) -> None:
    site.script(calls(bash("touch up; sleep 60"), content="Wait."))
    gateway = launch()
    connection, response = gateway.open_chat("go")
    read_until(response, b"Wait.")
    until((site.work / "up").exists, "the command's start")
    hang_up(connection, response)
    until(lambda: site.rows("SELECT 1 FROM run WHERE state = 'persisted'"), "the end of the run")
    assert site.rows("SELECT outcome, json_extract(cancel, '$.reason') FROM run") == [("cancelled", "unclaimed")]
    kinds = [row[0] for row in site.rows("SELECT kind FROM event WHERE kind LIKE '%claim%' OR kind LIKE 'liveness%'")]
    assert kinds == ["claims.exhausted", "liveness.decided"]
    until(lambda: not site.strays(), "the end of the command")


def test_a_caller_of_a_document_that_hangs_up_ends_the_run_too(site: Site, launch: Launch) -> None:
    site.script(calls(bash("touch up; sleep 60")))
    gateway = launch()
    connection = gateway.connect()
    gateway.send(connection, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "go"}]})
    until((site.work / "up").exists, "the command's start")
    connection.close()
    until(lambda: site.rows("SELECT 1 FROM run WHERE state = 'persisted'"), "the end of the run")
    assert site.rows("SELECT outcome FROM run") == [("cancelled",)]


def test_a_provider_that_stalls_is_given_up(site: Site, launch: Launch) -> None:
    site.script({"content": "late", "delay_ms": 60_000})
    answer = launch("--first-chunk-timeout-secs", "1").chat("hi", stream=True)
    (_, failed), (_, done) = answer.frames
    assert (failed["error"]["code"], done) == ("timeout", "[DONE]")
    assert site.rows("SELECT outcome, json_extract(cancel, '$.reason') FROM run") == [("cancelled", "deadline")]


def test_a_request_takes_no_longer_than_allowed(site: Site, launch: Launch) -> None:
    site.script({"chunks": ["a", "b"], "chunk_delay_ms": 60_000, "repeat": "forever"})
    gateway = launch("--streaming-timeout-secs", "1")
    whole = gateway.chat("hi")
    assert (whole.status, whole.error["code"]) == (504, "timeout")
    streamed = gateway.chat("hi", stream=True)
    assert streamed.text == "a"
    assert [data["error"]["code"] for _, data in streamed.frames if "error" in data] == ["timeout"]
