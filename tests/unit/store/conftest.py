"""Fixtures: a store in a fresh directory, and more openings of the same file as other processes would have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aura.store.open import open_store
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import Keeper, Reopen, header


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "sessions"


@pytest.fixture
def reopen(folder: Path) -> Iterator[Reopen]:
    """Opens the same store once more; all are closed at the end."""
    opened: list[SqliteStore] = []

    def open_again() -> SqliteStore:
        opened.append(open_store(folder))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Reopen) -> SqliteStore:
    return reopen()


@pytest.fixture
def keeper(store: SqliteStore) -> Iterator[Keeper]:
    """The holder of the empty session `s1`."""
    store.create_session(header("s1"))
    held = Keeper(store, "s1")
    yield held
    held.release()
