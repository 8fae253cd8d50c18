"""The script provider plays what interfaces.md section 5 says."""

from __future__ import annotations

import threading

import pytest

from aura.engine.providers.base import ProviderError
from aura.engine.scope import Cancelled


def test_content_is_streamed_in_pieces_of_at_most_16_characters(script, ask, scope, deltas):
    provider = script("turns: [{content: 'ä lovely answer that is longer than 16'}]")
    reply = provider.stream(ask(("user", "hi")), scope, deltas)
    assert deltas.content == ["ä lovely answer ", "that is longer t", "han 16"]
    assert reply.content == "".join(deltas.content)


def test_chunks_are_the_exact_deltas(script, ask, scope, deltas):
    reply = script('turns: [{chunks: ["te", "xt that is longer than sixteen", ""]}]').stream(ask(), scope, deltas)
    assert deltas.content == ["te", "xt that is longer than sixteen"]
    assert reply.content == "text that is longer than sixteen"


def test_thinking_comes_first_and_is_no_template(script, ask, scope, deltas):
    reply = script("turns: [{thinking: '{{ hm }}', content: yes-}]").stream(ask(), scope, deltas)
    assert deltas.all == [("{{ hm }}", True), ("yes-", False)]
    assert reply.thinking == "{{ hm }}"


def test_entries_are_taken_in_file_order_as_long_as_they_last(script, ask, scope, deltas):
    provider = script(
        """
        turns:
          - {when: {last: "^tool"}, content: after tool, repeat: 2}
          - {content: first}
          - {content: rest, repeat: forever}
        """
    )
    said = [
        provider.stream(ask(("user", text)), scope, deltas).content for text in ("a", "tool 1", "b", "tool 2", "tool 3")
    ]
    assert said == ["first", "after tool", "rest", "after tool", "rest"]


def test_when_looks_at_the_newest_user_or_tool_message(script, ask, scope, deltas):
    provider = script("turns: [{when: {last: 'exit 1'}, content: failed}, {content: other}]")
    conversation = (("user", "run"), ("assistant", "exit 1"), ("tool", "exit 0"))
    assert provider.stream(ask(*conversation), scope, deltas).content == "other"
    assert provider.stream(ask(*conversation, ("tool", "exit 1")), scope, deltas).content == "failed"


def test_templates_know_last_user_and_call(script, ask, scope, deltas):
    provider = script(
        """
        turns:
          - repeat: forever
            content: "{{ call }} {{ user | upper }} {{ last }}\\n"
            calls:
              - name: Bash
                arguments: {command: "echo {{ last }}", deep: [{"n": 1}, "{{ call }}"], plain: true}
        """
    )
    request = ask(("user", "go"), ("tool", "done"))
    assert provider.stream(request, scope, deltas).content == "1 GO done\n"
    reply = provider.stream(request, scope, deltas)
    assert reply.content == "2 GO done\n"
    assert reply.calls[0].arguments == {"command": "echo done", "deep": [{"n": 1}, "2"], "plain": True}


def test_calls_without_an_id_are_numbered_through_the_process(script, ask, scope, deltas):
    provider = script("turns: [{repeat: 2, calls: [{id: call_2, name: A}, {name: B}, {name: C}]}]")
    ids = [[call.id for call in provider.stream(ask(), scope, deltas).calls] for _ in range(2)]
    assert ids == [["call_2", "call_1", "call_3"], ["call_2", "call_4", "call_5"]]


def test_usage_is_what_the_script_says_and_zero_otherwise(script, ask, scope, deltas):
    provider = script("turns: [{content: a, usage: {input: 100, output: 20}}, {content: b}]")
    first, second = (provider.stream(ask(), scope, deltas) for _ in range(2))
    assert (first.input_tokens, first.output_tokens) == (100, 20)
    assert (second.input_tokens, second.output_tokens) == (0, 0)


def test_delays_go_through_the_scope(script, ask, scope, deltas):
    script("turns: [{delay_ms: 500, chunk_delay_ms: 20, chunks: [a, b, c]}]").stream(ask(), scope, deltas)
    assert scope.slept_ms == [500, 20, 20]


def test_a_cancel_in_a_delay_ends_the_call(script, ask, scope, deltas):
    scope.during_sleep = lambda: scope.cancel("request")
    with pytest.raises(Cancelled):
        script("turns: [{chunk_delay_ms: 20, chunks: [a, b, c]}]").stream(ask(), scope, deltas)
    assert deltas.content == ["a"]


def test_a_cancelled_scope_uses_no_entry_up(script, ask, scope, deltas):
    provider = script("turns: [{content: only}]")
    cancelled = scope.child()
    cancelled.cancel("request")
    with pytest.raises(Cancelled):
        provider.stream(ask(), cancelled, deltas)
    assert provider.stream(ask(), scope, deltas).content == "only"


@pytest.mark.requirement("runs.outcome.provider-codes")
@pytest.mark.parametrize(
    ("error", "kind", "code", "status", "message"),
    [
        ("{kind: http, status: 503, message: not running}", "server", "provider_server", 503, "not running"),
        ("{kind: http, status: 401}", "auth", "provider_auth", 401, "HTTP 401 without a message"),
        ("{kind: http, status: 402}", "credit", "provider_credit", 402, "HTTP 402 without a message"),
        ("{kind: http, status: 404, message: x}", "model_unavailable", "provider_model_unavailable", 404, "x"),
        ("{kind: http, status: 418, message: tea}", "unclassified", "internal", 418, "tea"),
        ("{kind: network, message: gone}", "network", "provider_network", None, "gone"),
        ("{kind: context_exhausted, message: big}", "context_exhausted", "context_exhausted", None, "big"),
        ("{kind: content_filter, message: eh}", "content_filter", "content_filter", None, "eh"),
        ("{kind: malformed, message: bad}", "malformed", "internal", None, "bad"),
    ],
)  # fmt: skip
def test_every_kind_of_error_has_its_code(script, ask, scope, deltas, error, kind, code, status, message):
    with pytest.raises(ProviderError) as caught:
        script(f"turns: [{{error: {error}}}]").stream(ask(), scope, deltas)
    run_error = caught.value.run_error()
    assert (caught.value.kind, run_error.code, run_error.message) == (kind, code, message)
    assert run_error.details.get("status") == status
    assert run_error.details["provider"] == "script"


def test_an_error_fails_as_often_as_it_says_and_then_falls_through(script, ask, scope, deltas):
    provider = script(
        "turns: [{error: {kind: http, status: 429, retry_after_ms: 1500, times: 2}}, {content: well, repeat: forever}]"
    )
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            provider.stream(ask(), scope, deltas)
        assert (caught.value.kind, caught.value.retry_after_ms) == ("rate_limit", 1500)
    assert provider.stream(ask(), scope, deltas).content == "well"


def test_a_script_that_has_ended_fails_as_internal(script, ask, scope, deltas):
    with pytest.raises(ProviderError) as caught:
        script("turns: []").stream(ask(), scope, deltas)
    error = caught.value.run_error()
    assert (error.code, error.message, error.retryable) == ("internal", "script exhausted", False)


def test_a_template_that_fails_while_playing_names_file_and_key(script, ask, scope, deltas):
    with pytest.raises(ProviderError, match=r"script\.yaml: turns\[0\]\.content: .*division"):
        script("turns: [{content: '{{ 1 // (call - 1) }}'}]").stream(ask(), scope, deltas)


def test_templates_are_sandboxed(script, ask, scope, deltas):
    with pytest.raises(ProviderError, match=r"turns\[0\]\.content"):
        script('turns: [{content: "{{ last.__class__.__mro__ }}"}]').stream(ask(), scope, deltas)


def test_only_the_scripts_models_are_known(script, ask, scope, deltas):
    provider = script("{models: [one, two], context: 4096, turns: [{content: a}]}")
    assert provider.context_tokens("two", scope) == 4096
    assert provider.stream(ask(model="one"), scope, deltas).content == "a"
    for call in (
        lambda: provider.context_tokens("three", scope),
        lambda: provider.stream(ask(model="three"), scope, deltas),
    ):
        with pytest.raises(ProviderError, match="'three' not found: the script has one, two") as caught:
            call()
        assert caught.value.run_error().code == "provider_model_unavailable"


def test_concurrent_calls_share_the_uses(script, ask, scope):
    provider = script("turns: [{content: x, repeat: 200}]")
    failures: list[Exception] = []

    def work() -> None:
        for _ in range(50):
            try:
                provider.stream(ask(), scope, lambda text, thinking: None)
            except ProviderError as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(failures) == 50
