"""Opens a store for one verb, and closes it: for the offline verbs that are not in `library.py`. Nothing is created."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aura import ids
from aura.errors import NotFound
from aura.runtime.listing import reachable
from aura.store.open import find_store
from aura.store.protocol import Store


@contextmanager
def existing_store(directory: Path, session_id: str) -> Iterator[Store]:
    """Lend the store in `directory` for a verb about a session, which need not exist.

    Raises `InvalidId`, `StoreUnavailable`, and `NotFound` when there is no store.
    """
    ids.check_session_id(session_id)
    with reachable(directory):
        store = find_store(directory)
    if store is None:
        raise NotFound(f"there is no session {session_id}: the store is empty", hint="Import one first.")
    try:
        yield store
    finally:
        store.close()
