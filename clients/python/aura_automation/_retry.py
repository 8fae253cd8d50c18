"""Trying again within a bound. It decides when and how long; what is tried is the caller's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from aura_automation._limits import BACKOFF_FIRST_S, BACKOFF_MAX_S
from aura_automation.errors import AutomationError, NetworkError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time comes from, in seconds; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class Backoff:
    """The pauses of one outage: doubling, at least Retry-After, ended by `budget_s` after the outage's first
    failure.

    One instance belongs to one caller and one thread. `pause` sleeps; it may raise to end the whole thing.
    """

    budget_s: float
    now: Callable[[], float]
    pause: Callable[[float], None]
    _since_s: float | None = field(default=None, init=False)
    _attempts: int = field(default=0, init=False)

    def failed(self, error: AutomationError) -> None:
        """Sleep before the next attempt. Raises `error` when that attempt would come after the budget."""
        now_s = self.now()
        if self._since_s is None:
            self._since_s = now_s
        delay_s = min(BACKOFF_FIRST_S * 2.0 ** min(self._attempts, 16), BACKOFF_MAX_S)
        delay_s = max(delay_s, error.retry_after_s or 0.0)
        self._attempts += 1
        outage_s = now_s - self._since_s
        if outage_s + delay_s > self.budget_s:
            if self._attempts > 1:
                error.add_note(f"given up after {self._attempts} attempts in {outage_s:.1f} s")
            raise error
        self.pause(delay_s)

    def succeeded(self) -> None:
        """Forget the outage."""
        self._since_s = None
        self._attempts = 0


def is_passing(error: AutomationError) -> bool:
    """Tell whether an idempotent request may be repeated: the connection failed, or a 503 said when to come
    again.
    """
    return isinstance(error, NetworkError) or error.retry_after_s is not None


def is_undelivered(error: AutomationError) -> bool:
    """Tell whether any request may be repeated: the server certainly did not act on it."""
    if isinstance(error, NetworkError):
        return not error.may_have_arrived
    return error.retry_after_s is not None


def retry(attempt: Callable[[], T], backoff: Backoff, may_repeat: Callable[[AutomationError], bool] = is_passing) -> T:
    """Return what `attempt` returns, tried again while `may_repeat` says so and `backoff` has budget left.

    Raises the last error of `attempt` otherwise, and whatever `backoff.pause` raises.
    """
    while True:
        try:
            result = attempt()
        except AutomationError as error:
            if not may_repeat(error):
                raise
            backoff.failed(error)
        else:
            backoff.succeeded()
            return result
