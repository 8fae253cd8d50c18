"""Trying a model call again: when, how often and after what wait (engine.md 5.5)."""

from __future__ import annotations

from collections.abc import Callable

from aura import limits
from aura.config.spec import RetrySpec
from aura.engine.providers.base import OnDelta, Provider, ProviderError, Reply, Request
from aura.engine.scope import Scope

OnRetry = Callable[[int, ProviderError, int], None]  # (number of the coming try, the failure, wait in ms)


def stream_with_retry(
    provider: Provider,
    request: Request,
    scope: Scope,
    on_delta: OnDelta,
    retry: RetrySpec,
    on_retry: OnRetry = lambda number, error, delay_ms: None,
) -> Reply:
    """Make a model call, with up to `retry.max_attempts` further tries after rate limits, server and network failures.

    A call is never repeated after a part of its answer has come. `on_retry` is called before each wait. Raises the last
    `ProviderError`, and `Cancelled` as soon as the scope is cancelled, in a wait too.
    """
    tries_left = retry.max_attempts
    number = 1
    while True:
        try:
            return provider.stream(request, scope, on_delta)
        except ProviderError as error:
            failure = error
        delay_ms = find_delay_ms(failure, number, retry)
        if tries_left <= 0 or delay_ms is None:
            raise failure
        tries_left -= 1
        number += 1
        on_retry(number, failure, delay_ms)
        scope.sleep(delay_ms)


def find_delay_ms(error: ProviderError, number: int, retry: RetrySpec) -> int | None:
    """Return how long to wait after try `number` failed with `error`; None when it must not be repeated.

    The server's own hint comes first; one over `limits.RETRY_AFTER_WAIT_MS` is for the caller, not for a sleep here.
    Without a hint the wait doubles from `base_delay_ms` up to `max_delay_ms`.
    """
    if not error.retryable or error.streamed:
        return None
    if error.retry_after_ms is not None:
        return error.retry_after_ms if error.retry_after_ms <= limits.RETRY_AFTER_WAIT_MS else None
    doublings = min(number - 1, 32)  # beyond it every base is over every maximum
    return min(retry.base_delay_ms << doublings, retry.max_delay_ms)
