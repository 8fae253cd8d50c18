"""Makes the client and the documents of its tests importable from the checkout; an installed client is preferred."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(Path(__file__).resolve().parent))
if importlib.util.find_spec("aura_automation") is None:
    sys.path.insert(0, str(ROOT / "clients" / "python"))

from fake_server import FakeServer  # noqa: E402


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A fake server on 127.0.0.1, stopped after the test."""
    fake = FakeServer()
    fake.start()
    yield fake
    fake.stop()
