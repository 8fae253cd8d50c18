"""Our provider against a real llama-server: answers, tools, thinking, overflow, abort, authentication."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aura.config.spec import GenerationSpec, ProviderSpec, Secret
from aura.conversation import Call, Message
from aura.engine.io import IoThread
from aura.engine.providers.base import Provider, ProviderError, Request, ToolDefinition
from aura.engine.providers.registry import build_provider
from aura.engine.scope import Cancelled, Scope
from tests.support.lane import StillAlarm
from tests.support.llama import HELLO

SYSTEM = "You are careful."
WEATHER = ToolDefinition(
    "get_weather",
    "Tells the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@pytest.fixture(scope="module")
def io() -> Iterator[IoThread]:
    thread = IoThread()
    yield thread
    thread.close()


@pytest.fixture
def scope() -> Scope:
    return Scope(StillAlarm())


@pytest.fixture
def connect(io: IoThread) -> Callable[..., Provider]:
    def make(url: str, type: str = "llamacpp", token: str | None = None) -> Provider:
        secret = Secret(token) if token else None
        spec = ProviderSpec("local", type, Path("local.yaml"), url=url, token=secret, timeout_ms=30_000)  # type: ignore[arg-type]
        return build_provider(spec, io)

    return make


def ask(text: str, *more: Message, tools: bool = False, generation: GenerationSpec | None = None) -> Request:
    messages = [Message("user", text), *more]
    return Request("scripted", SYSTEM, messages, [WEATHER] if tools else [], generation=generation or GenerationSpec())


@pytest.mark.parametrize("type", ["llamacpp", "llamaswap", "openai"])
@pytest.mark.parametrize("temperature", [None, 0.0])
def test_a_plain_answer_arrives_in_chunks(llama, connect, scope, type, temperature):
    url = f"{llama.url}/v1" if type == "openai" else llama.url
    seen: list[tuple[str, bool]] = []
    request = ask("Hello, 世界!", generation=GenerationSpec(temperature=temperature, seed=1))
    reply = connect(url, type).stream(request, scope, lambda text, thinking: seen.append((text, thinking)))
    assert reply.content == "".join(text for text, _ in seen) == HELLO
    assert (reply.thinking, reply.calls) == ("", ())
    assert reply.input_tokens > 10
    assert reply.output_tokens > 5


def test_the_token_limit_cuts_an_answer_normally(llama, connect, scope):
    request = ask("Hello!", generation=GenerationSpec(max_output_tokens=3))
    reply = connect(llama.url).stream(request, scope, lambda text, thinking: None)
    assert HELLO.startswith(reply.content)
    assert (len(reply.content) < len(HELLO), reply.output_tokens) == (True, 3)


def test_a_tool_loop_takes_two_rounds(llama, connect, scope):
    provider = connect(llama.url)
    first = provider.stream(ask("How is the weather?", tools=True), scope, lambda text, thinking: None)
    assert [(call.name, call.arguments) for call in first.calls] == [("get_weather", {"city": "Paris"})]
    assert first.calls[0].id
    answered = (
        Message("assistant", first.content, calls=first.calls),
        Message("tool", '{"sky": "clear"}', tool_call_id=first.calls[0].id, tool_name="get_weather"),
    )
    second = provider.stream(ask("How is the weather?", *answered, tools=True), scope, lambda text, thinking: None)
    assert (second.content, second.calls) == ("The tool answered; it is done.", ())


def test_several_calls_and_odd_texts_in_the_history_are_accepted(llama, connect, scope):
    calls = (Call("call_1", "get_weather", {"city": 'Łódź "😀"'}), Call("call_2", "get_weather", {}))
    history = (
        Message("assistant", "", thinking="hm", calls=calls),
        Message("tool", "a\u2028b", tool_call_id="call_1", tool_name="get_weather"),
        Message("tool", "", tool_call_id="call_2", tool_name="get_weather"),
    )
    reply = connect(llama.url).stream(ask("weather", *history, tools=True), scope, lambda text, thinking: None)
    assert reply.content == "The tool answered; it is done."


def test_thoughts_come_as_thinking(thinking_llama, connect, scope):
    seen: list[tuple[str, bool]] = []
    provider = connect(thinking_llama.url)
    reply = provider.stream(ask("Think!"), scope, lambda text, thinking: seen.append((text, thinking)))
    assert reply.thinking.strip() == "Well, let me see."
    assert reply.content.strip() == "I have thought about it."
    assert "".join(text for text, thinking in seen if thinking) == reply.thinking


def test_the_context_window_is_that_of_a_slot(llama, small_llama, connect, scope):
    assert connect(llama.url).context_tokens("scripted", scope) == 16_384
    assert connect(llama.url, "llamaswap").context_tokens("scripted", scope) == 16_384
    assert connect(small_llama.url).context_tokens("scripted", scope) == 256


def test_a_prompt_beyond_the_window_is_context_exhausted(small_llama, connect, scope):
    with pytest.raises(ProviderError) as caught:
        connect(small_llama.url).stream(ask("x " * 2000), scope, lambda text, thinking: None)
    error = caught.value.run_error()
    assert (error.code, error.retryable, error.details["provider"]) == ("context_exhausted", False, "llamacpp")
    assert "context" in error.message


@pytest.mark.parametrize("token", [None, "wrong-token"])
def test_a_wrong_token_is_an_authentication_failure(locked_llama, connect, scope, token):
    provider = connect(locked_llama.url, token=token)
    for call in (
        lambda: provider.stream(ask("Hello!"), scope, lambda text, thinking: None),
        lambda: provider.context_tokens("scripted", scope),
    ):
        with pytest.raises(ProviderError) as caught:
            call()
        error = caught.value.run_error()
        assert (error.code, error.details["status"]) == ("provider_auth", 401)
        assert "wrong-token" not in error.message


def test_the_right_token_is_accepted(locked_llama, connect, scope):
    provider = connect(locked_llama.url, token="right-token")
    assert provider.stream(ask("Hello!"), scope, lambda text, thinking: None).content == HELLO
    assert provider.context_tokens("scripted", scope) == 512


def test_an_abort_is_quick_and_frees_the_slot(llama, connect, scope, until):
    seen: list[str] = []
    many = threading.Event()

    def on_delta(text: str, thinking: bool) -> None:
        seen.append(text)
        if len(seen) == 5:
            many.set()

    cancelled_at: list[float] = []

    def cancel() -> None:
        assert many.wait(30)
        assert llama.busy_slots() == 1
        cancelled_at.append(time.monotonic())
        scope.cancel("request")

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        connect(llama.url).stream(ask("Go on forever"), scope, on_delta)
    assert time.monotonic() - cancelled_at[0] < 1
    thread.join(30)
    until(lambda: llama.busy_slots() == 0)


def test_a_server_that_ends_in_the_middle_of_an_answer_is_a_network_failure(start_llama, connect, scope):
    server = start_llama("-c", "4096", "-np", "1")
    stopping: list[threading.Thread] = []

    def on_delta(text: str, thinking: bool) -> None:
        if not stopping:
            stopping.append(threading.Thread(target=server.kill))
            stopping[0].start()

    with pytest.raises(ProviderError) as caught:
        connect(server.url).stream(ask("Go on forever"), scope, on_delta)
    stopping[0].join(30)
    assert (caught.value.run_error().code, caught.value.streamed) == ("provider_network", True)
    with pytest.raises(ProviderError, match="Connection refused"):
        connect(server.url).stream(ask("Hello!"), Scope(StillAlarm()), lambda text, thinking: None)


def test_the_weather_needs_tools_to_be_called(llama, connect, scope):
    reply = connect(llama.url).stream(ask("How is the weather?"), scope, lambda text, thinking: None)
    assert (reply.content, reply.calls) == (HELLO, ())


def test_a_router_loads_the_model_that_a_request_names(start_llama, connect, scope):
    router = start_llama("-c", "1024", "-np", "1", is_router=True)
    provider = connect(router.url, "llamaswap")
    assert provider.context_tokens("scripted", scope) == 1024
    assert provider.stream(ask("Hello!"), scope, lambda text, thinking: None).content == HELLO
    with pytest.raises(ProviderError, match="other") as caught:
        provider.stream(Request("other", SYSTEM, [Message("user", "Hello!")]), scope, lambda text, thinking: None)
    assert (caught.value.run_error().code, caught.value.status) == ("internal", 400)
