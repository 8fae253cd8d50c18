"""Lists stored sessions, for `aura session list`: the smallest of the verbs without a live run (interfaces.md 9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aura.conversation import Summary
from aura.errors import AuraError, StoreUnavailable
from aura.store.listing import list_sessions as list_stored


def list_sessions(directory: Path) -> tuple[Summary, ...]:
    """Return all sessions in `directory` (`<write home>/sessions`), the most recently updated first.

    There are none where there is no store yet, and none is made. It blocks. Raises `StoreUnavailable`.
    """
    with reachable(directory):
        return list_stored(directory)


@contextmanager
def reachable(directory: Path) -> Iterator[None]:
    """Let a directory that cannot be used fail as `StoreUnavailable` within the block."""
    try:
        if directory.exists() and not directory.is_dir():
            raise StoreUnavailable(f"{directory} is not a directory", hint="Move that file away.")
        yield
    except AuraError:
        raise
    except OSError as error:
        raise StoreUnavailable(
            f"{directory} cannot be used: {error.strerror}", hint="Check the permissions of the write home."
        ) from error


__all__ = ["Summary", "list_sessions", "reachable"]
