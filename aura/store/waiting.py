"""How a caller waits for its commit. It knows futures, not SQLite."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

from aura import limits
from aura.errors import CommitInDoubt, StoreUnavailable

T = TypeVar("T")


def wait(future: Future[T], timeout_ms: int = limits.COMMIT_WAIT_MS) -> T:
    """Return the committed value. Raises what the unit raised; native threads only.

    After `timeout_ms` a unit that has not begun is taken back and `StoreUnavailable` is raised. One that has begun may
    still commit: then it is `CommitInDoubt`, and only a repeat of the same batch is safe.
    """
    try:
        return future.result(timeout_ms / 1000)
    except FutureTimeout as error:
        taken_back = future.cancel()
        if not taken_back and future.done():
            return future.result()  # it made it in the very last moment
        kind = StoreUnavailable if taken_back else CommitInDoubt
        raise kind(
            f"the database was locked for over {timeout_ms} ms",
            hint="Another process writes without pause, or the disk hangs.",
        ) from error
