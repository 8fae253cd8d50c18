"""Every way a run can end that the script provider can bring about, with the contract's codes."""

from __future__ import annotations

from typing import Any

import pytest

from aura_automation import BadRequest, Run
from tests.support.serving import Running, Site, bash, calls

HTTP = [
    (401, "provider_auth", False),
    (402, "provider_credit", False),
    (403, "provider_auth", False),
    (404, "provider_model_unavailable", False),
    (429, "provider_rate_limit", True),
    (500, "provider_server", True),
    (503, "provider_server", True),
]


def assert_pairs_are_complete(server: Running) -> None:
    messages = server.client.messages().messages
    asked = [call.id for message in messages for call in message.calls or ()]
    assert asked == [message.tool_call_id for message in messages if message.role == "tool"]


def failed(run: Run) -> tuple[str | None, str]:
    assert run.state == "persisted"
    assert run.error is not None
    return run.outcome, run.error.code


@pytest.mark.requirement(
    "runs.outcome.provider-codes", "runs.outcome.provider-network", "runs.retryable", "runs.provider.details"
)
@pytest.mark.parametrize("with_answer", [False, True])
def test_provider_failures_have_their_codes(site: Site, with_answer: bool) -> None:
    errors: list[dict[str, Any]] = [
        {"error": {"kind": "http", "status": status, "message": "no"}} for status, _, _ in HTTP
    ]
    errors.append({"error": {"kind": "network"}})
    first = [calls(bash("true", f"c{n}")) for n in range(len(errors))]
    turns = [turn for pair in zip(first, errors, strict=True) for turn in pair] if with_answer else errors
    site.script(*turns)
    server = site.launch()
    expected = [*HTTP, (None, "provider_network", True)]
    for number, (status, code, retryable) in enumerate(expected):
        run = server.run("go", f"r{number}")
        assert failed(run) == ("failed", code)
        assert run.error is not None
        assert run.error.retryable is retryable
        assert (run.error.details.get("status"), run.error.details["provider"]) == (status, "script")
        assert run.result is None
    assert_pairs_are_complete(server)


@pytest.mark.requirement("runs.provider.details")
def test_the_retry_hint_and_the_providers_message_reach_the_controller(site: Site) -> None:
    error = {"kind": "http", "status": 503, "message": "the engine is not running", "retry_after_ms": 1500}
    site.script({"error": error})
    run = site.launch().run("go")
    assert run.error is not None
    assert run.error.details["retry_after_ms"] == 1500
    assert "the engine is not running" in run.error.message


def test_a_failure_that_passes_is_tried_again(site: Site) -> None:
    site.provider(retry={"max_attempts": 2, "base_delay": "1ms"})
    site.script({"error": {"kind": "http", "status": 503, "times": 2}}, {"content": "there"})
    run = site.launch().run("go")
    assert (run.outcome, run.stats.iterations) == ("completed", 1)


@pytest.mark.requirement("runs.outcome.content-filter", "runs.outcome.context-exhausted", "runs.outcome.internal")
@pytest.mark.parametrize(
    ("turns", "code"),
    [
        ([{"error": {"kind": "content_filter"}}], "content_filter"),
        ([{"error": {"kind": "context_exhausted"}}], "context_exhausted"),
        ([{"error": {"kind": "http", "status": 418, "message": "teapot"}}], "internal"),
        ([{"error": {"kind": "malformed", "times": 4}}], "internal"),
        ([calls(bash("true"))], "internal"),
    ],
    ids=["content_filter", "context_exhausted", "unclassified", "malformed", "script exhausted"],
)
def test_other_failures_have_their_codes(site: Site, turns: list[dict[str, Any]], code: str) -> None:
    site.script(*turns)
    server = site.launch()
    run = server.run("go")
    assert failed(run) == ("failed", code)
    assert run.error is not None
    assert run.error.retryable is False
    assert_pairs_are_complete(server)


def test_broken_calls_are_asked_for_again_up_to_three_times(site: Site) -> None:
    site.script({"error": {"kind": "malformed", "times": 3}}, {"content": "now it parses"})
    server = site.launch()
    assert server.run("go").outcome == "completed"
    assert server.types().count("notice") == 3


@pytest.mark.requirement("runs.outcome.max-steps")
def test_max_steps_is_the_number_of_model_calls_and_the_last_calls_still_run(site: Site) -> None:
    site.script({"calls": [bash("echo x >> ran")], "repeat": "forever"})
    server = site.launch(flags=["--max-steps", "3"])
    run = server.run("go")
    assert failed(run) == ("failed", "max_steps")
    assert (run.stats.iterations, run.stats.tool_calls) == (3, {"Bash": 3})
    assert site.lines("ran") == ["x", "x", "x"]
    assert_pairs_are_complete(server)


@pytest.mark.requirement("runs.outcome.token-budget")
def test_a_spent_token_budget_ends_the_run_before_the_next_model_call(site: Site) -> None:
    site.script({"calls": [bash("true")], "usage": {"input": 60, "output": 20}, "repeat": "forever"})
    server = site.launch(flags=["--token-budget", "100"])
    run = server.run("go")
    assert failed(run) == ("failed", "token_budget")
    assert run.stats.iterations == 2
    assert failed(server.run("again", "r2")) == ("failed", "token_budget")


@pytest.mark.requirement("runs.state-machine.short", "runs.rejected.no-message", "runs.outcome.input-rejected")
@pytest.mark.parametrize("prompt", [" \n\t ", "x" * 500])
def test_a_rejected_prompt_adds_no_message(site: Site, prompt: str) -> None:
    site.script({"content": "ok", "repeat": "forever"}, context=100)
    server = site.launch()
    run = server.run(prompt)
    assert failed(run) == ("rejected", "input_rejected")
    assert (run.started_at, run.stats.iterations) == (None, 0)
    assert server.client.messages().total == 0
    assert "message.user" not in server.types()
    assert server.run("short", "r2").outcome == "completed"


def test_prompts_that_are_empty_or_too_large_are_refused(site: Site) -> None:
    server = site.launch()
    with pytest.raises(BadRequest):
        server.client.submit("r1", prompt="")
    with pytest.raises(BadRequest) as caught:
        server.client.submit("r1", prompt="é" * (512 * 1024 + 1))
    assert caught.value.details["reason"] == "too_large"
    for request_id in ("", "x" * 257, "a\nb"):
        with pytest.raises(BadRequest):
            server.client.submit(request_id, prompt="hello")
    assert server.types()[2:] == []
    assert server.run("é" * 1000).outcome == "completed"


@pytest.mark.requirement("runs.record.stats")
def test_a_call_that_fails_is_a_result_and_not_the_end_of_the_run(site: Site) -> None:
    site.script(calls(bash("exit 3"), {"id": "x", "name": "Nothing", "arguments": {}}), {"content": "so be it"})
    server = site.launch()
    run = server.run("go")
    assert (run.outcome, run.stats.tool_calls, run.stats.tool_errors) == ("completed", {"Bash": 1, "Nothing": 1}, 1)
    assert [event.data["status"] for event in server.events() if event.type == "tool.finished"] == ["ok", "error"]
    assert_pairs_are_complete(server)


def test_a_denied_call_emits_both_events(site: Site) -> None:
    site.agent(tools={"policy": {"deny": ["Bash:rm *"]}})
    site.script(calls(bash("rm -rf x")), {"content": "ok"})
    server = site.launch()
    run = server.run("go")
    assert (run.outcome, run.stats.tool_errors) == ("completed", 1)
    kinds = server.types()
    assert kinds.index("tool.started") < kinds.index("tool.finished")
    assert server.event("tool.finished").data["status"] == "error"
