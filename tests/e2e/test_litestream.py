"""litestream replicates a store while it is written, and what it restores is that store (docs/store.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aura.store.care import no_progress
from aura.store.caretaker import Caretaker
from aura.store.open import open_store
from tests.unit.store.care_kit import tool_run
from tests.unit.store.store_kit import Keeper, exported, header, messages_of

LITESTREAM = os.environ.get("AURA_LITESTREAM") or shutil.which("litestream")
CONFIG = """
dbs:
  - path: {database}
    replica:
      type: file
      path: {replica}
      sync-interval: 100ms
"""

pytestmark = pytest.mark.skipif(LITESTREAM is None, reason="litestream is not installed; AURA_LITESTREAM may name it")


def litestream(*words: str) -> list[str]:
    assert LITESTREAM is not None
    return [LITESTREAM, *words]


@contextmanager
def replicating(config: Path) -> Iterator[None]:
    process = subprocess.Popen(
        litestream("replicate", "-config", str(config)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()  # it sends what is left before it ends
        assert process.wait(30) == 0


def test_what_litestream_restores_is_the_store(tmp_path: Path) -> None:
    folder, replica = tmp_path / "home" / "sessions", tmp_path / "replica"
    store = open_store(folder)
    store.create_session(header("s1"))
    config = tmp_path / "litestream.yml"
    config.write_text(CONFIG.format(database=folder / "aura.db", replica=replica))
    with replicating(config):
        keeper = Keeper(store, "s1")
        deadline = time.monotonic() + 60
        number = 0
        while not list(replica.rglob("*.ltx")) or number < 100:
            assert time.monotonic() < deadline, "litestream made no replica"
            keeper.save(messages_of("x" * 20_000))
            number += 1
        tool_run(keeper, "r1")
        keeper.release()
        document, events = exported(store, "s1"), store.read_events("s1", 0, 10_000)
        store.close()
    restored = tmp_path / "other" / "sessions"
    restored.mkdir(parents=True)
    target, source = str(restored / "aura.db"), str(folder / "aura.db")
    subprocess.run(litestream("restore", "-config", str(config), "-o", target, source), check=True, timeout=60)
    assert Caretaker(restored).check(quick=False, progress=no_progress).clean
    again = open_store(restored)
    assert exported(again, "s1") == document
    assert again.read_events("s1", 0, 10_000) == events
    again.close()
