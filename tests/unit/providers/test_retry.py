"""Model calls are repeated after the failures that may pass, and never after a part of the answer has come."""

from __future__ import annotations

import pytest

from aura.config.spec import RetrySpec
from aura.engine.providers.base import ProviderError, Reply
from aura.engine.retry import find_delay_ms, stream_with_retry
from aura.engine.scope import Cancelled

FINAL = ("auth", "credit", "model_unavailable", "content_filter", "context_exhausted", "malformed", "unclassified")


def failure(kind: str = "server", **more: object) -> ProviderError:
    return ProviderError(kind, kind, provider="script", **more)  # type: ignore[arg-type]


class Failing:
    """A provider that fails in turn with the given errors, then answers."""

    type = "script"

    def __init__(self, *errors: ProviderError) -> None:
        self.errors = list(errors)
        self.calls = 0

    def stream(self, request, scope, on_delta):
        scope.check()
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return Reply("well")

    def context_tokens(self, model, scope):
        return 0


def test_waits_double_up_to_the_maximum(ask, scope, deltas):
    provider = Failing(*[failure(kind) for kind in ("server", "network", "rate_limit", "server")])
    told: list[tuple[int, str, int]] = []
    reply = stream_with_retry(
        provider,
        ask(),
        scope,
        deltas,
        RetrySpec(4, 1_000, 3_000),
        lambda n, error, ms: told.append((n, error.kind, ms)),
    )
    assert reply.content == "well"
    assert scope.slept_ms == [1_000, 2_000, 3_000, 3_000]
    assert told == [(2, "server", 1_000), (3, "network", 2_000), (4, "rate_limit", 3_000), (5, "server", 3_000)]


def test_the_last_failure_is_raised_when_the_tries_are_used_up(ask, scope, deltas):
    provider = Failing(*[failure(status=status) for status in (500, 501, 502)])
    with pytest.raises(ProviderError) as caught:
        stream_with_retry(provider, ask(), scope, deltas, RetrySpec(max_attempts=2))
    assert (caught.value.status, provider.calls) == (502, 3)


def test_without_a_retry_configuration_there_is_one_try(ask, scope, deltas):
    provider = Failing(failure())
    with pytest.raises(ProviderError):
        stream_with_retry(provider, ask(), scope, deltas, RetrySpec())
    assert (provider.calls, scope.slept_ms) == (1, [])


@pytest.mark.parametrize("kind", FINAL)
def test_other_failures_are_final(ask, scope, deltas, kind):
    provider = Failing(failure(kind))
    with pytest.raises(ProviderError):
        stream_with_retry(provider, ask(), scope, deltas, RetrySpec(5))
    assert provider.calls == 1


def test_a_call_is_not_repeated_after_a_part_of_its_answer(ask, scope, deltas):
    provider = Failing(failure("network", streamed=True))
    with pytest.raises(ProviderError):
        stream_with_retry(provider, ask(), scope, deltas, RetrySpec(5))
    assert provider.calls == 1


def test_the_servers_own_hint_comes_first():
    assert find_delay_ms(failure("rate_limit", retry_after_ms=7_000), 1, RetrySpec(1, 100, 200)) == 7_000
    assert find_delay_ms(failure("rate_limit", retry_after_ms=0), 1, RetrySpec(1, 100, 200)) == 0


def test_an_hour_is_not_slept_through():
    assert find_delay_ms(failure("rate_limit", retry_after_ms=3_600_000), 1, RetrySpec(1)) is None


def test_many_tries_stay_at_the_maximum():
    assert find_delay_ms(failure(), 10_000, RetrySpec(10_000, 1, 30_000)) == 30_000


def test_a_cancel_ends_the_wait(ask, scope, deltas):
    provider = Failing(failure())
    scope.during_sleep = lambda: scope.cancel("request")
    with pytest.raises(Cancelled):
        stream_with_retry(provider, ask(), scope, deltas, RetrySpec(5))
    assert provider.calls == 1
