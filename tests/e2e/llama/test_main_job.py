"""The main job against a real llama-server: `aura serve` in its own process, driven by the real client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.llama import HELLO, LlamaServer
from tests.support.scripted_model import Route
from tests.support.serving import Running, Site

LIST_CALL = '<tool_call>\n{"name": "Ls", "arguments": {"path": "."}}\n</tool_call>'
LIST_ROUTES = (
    Route("after_tool", "There is one file here.", "last.role == 'tool'"),
    Route("list", LIST_CALL, "'list' in last.content and tools"),
    Route("say", HELLO),
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace and a config home; its processes end with the test."""
    made = Site(tmp_path)
    yield made
    made.end()


@pytest.fixture
def serve(site: Site) -> Callable[..., Running]:
    """Return a function that launches `aura serve` with a llama-server as its model."""

    def launch(llama: LlamaServer, **keys: object) -> Running:
        site.write("config/providers/script.yaml", f"script: {{type: llamacpp, url: '{llama.url}'}}\n")
        site.agent(**keys)
        return site.launch()

    return launch


@pytest.mark.parametrize("type", ["llamacpp", "llamaswap", "openai"])
def test_a_plain_answer_is_streamed_stored_and_counted(llama: LlamaServer, site: Site, type: str) -> None:
    url = f"{llama.url}/v1" if type == "openai" else llama.url
    site.write("config/providers/script.yaml", f"script: {{type: {type}, url: '{url}'}}\n")
    server = site.launch()
    run = server.run("Hello!")
    assert (run.state, run.outcome, run.error) == ("persisted", "completed", None)
    assert run.result is not None
    assert run.result.content == HELLO
    assert [message.content for message in server.client.messages().messages] == ["Hello!", HELLO]
    status = server.client.session().status
    assert status.tokens_used > 10
    if type != "openai":
        assert status.tokens_max == 16_384
    ((provider, model, tokens),) = site.rows("SELECT provider, model, output_tokens FROM usage")
    assert (provider, model, tokens > 5) == ("script", "scripted", True)


def test_a_tool_loop_takes_two_model_calls(start_llama, site: Site, serve: Callable[..., Running]) -> None:
    (site.work / "only-file.txt").write_text("x")
    server = serve(start_llama("-c", "32768", "-np", "1", routes=LIST_ROUTES))
    run = server.run("Please list the files.")
    assert run.outcome == "completed"
    assert (run.stats.iterations, run.stats.tool_calls, run.stats.tool_errors) == (2, {"Ls": 1}, 0)
    assert run.result is not None
    assert run.result.content == "There is one file here."
    assert "only-file.txt" in str(server.event("tool.finished").data["result"])
    server.stop()
    again = site.launch(server.session_id)
    assert again.run("Hello again!", "r2").outcome == "completed"
    assert again.client.messages().total == 6


def test_thoughts_are_shown_only_to_those_who_ask(
    thinking_llama: LlamaServer, site: Site, serve: Callable[..., Running]
) -> None:
    server = serve(thinking_llama, tools={"enabled": ["Ls"]})
    deltas: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    begun = {thinking: threading.Event() for thinking in deltas}

    def watch(thinking: bool) -> None:
        for event in server.client.events(transient=True, thinking=thinking):
            begun[thinking].set()
            if event.type.startswith("delta."):
                deltas[thinking].append((event.type, str(event.data["text"])))
            if event.type == "run.persisted":
                return

    threads = [threading.Thread(target=watch, args=(thinking,), daemon=True) for thinking in deltas]
    for thread in threads:
        thread.start()
    assert all(event.wait(30) for event in begun.values())
    run = server.run("Think!")
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert run.result is not None
    assert run.result.content.strip() == "I have thought about it."
    assert {kind for kind, _ in deltas[False]} == {"delta.content"}
    thoughts = "".join(text for kind, text in deltas[True] if kind == "delta.thinking")
    assert thoughts.strip() == "Well, let me see."
    assert server.client.messages().messages[1].thinking is None
    assert (server.client.messages(thinking=True).messages[1].thinking or "").strip() == "Well, let me see."
    assert "let me see" not in str(server.events())


def test_a_conversation_beyond_the_window_fails_as_context_exhausted(
    small_llama: LlamaServer, serve: Callable[..., Running]
) -> None:
    server = serve(small_llama)  # the definitions of all tools alone are larger than its 256 tokens
    run = server.run("Hello!")
    assert run.error is not None
    assert (run.state, run.outcome, run.error.code) == ("persisted", "failed", "context_exhausted")
    assert (run.error.retryable, run.error.details["provider"]) == (False, "llamacpp")
    refused = server.run("x " * 600, "r2")
    assert refused.error is not None
    assert (refused.outcome, refused.error.code) == ("rejected", "input_rejected")
    assert server.client.messages().total == 1


def test_a_cancel_in_the_middle_of_an_answer_frees_the_slot(
    llama: LlamaServer, serve: Callable[..., Running], until: Callable[[Callable[[], bool]], None]
) -> None:
    server = serve(llama)
    run = server.client.submit("r1", prompt="Go on forever")
    for event in server.client.events(transient=True):
        if event.type == "delta.content":
            break
    assert llama.busy_slots() == 1
    server.client.cancel(run.id)
    done = server.wait(run.id)
    assert (done.state, done.outcome) == ("persisted", "cancelled")
    until(lambda: llama.busy_slots() == 0)
    assert server.run("Hello!", "r2").outcome == "completed"


def test_a_model_server_that_is_away_or_locked_has_its_codes(
    start_llama, locked_llama: LlamaServer, site: Site, serve: Callable[..., Running]
) -> None:
    server = serve(locked_llama)
    locked = server.run("Hello!")
    assert locked.error is not None
    assert (locked.error.code, locked.error.details["status"]) == ("provider_auth", 401)
    server.stop()
    gone = start_llama("-c", "512", "-np", "1")
    gone.stop()
    site.write(
        "config/providers/script.yaml", f"script: {{type: llamacpp, url: '{gone.url}', retry: {{max_attempts: 0}}}}\n"
    )
    again = site.launch(server.session_id)
    away = again.run("Hello!", "r2")
    assert away.error is not None
    assert (away.error.code, away.error.retryable) == ("provider_network", True)
