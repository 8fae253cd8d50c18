"""Real servers in processes of their own, on a site of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace and a config home with a scripted model; its processes end with the test."""
    made = Site(tmp_path)
    yield made
    made.end()
