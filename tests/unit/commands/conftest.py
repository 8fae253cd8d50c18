"""A session in memory to type commands into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_kit import Desk, open_desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """One agent `main`, one scripted provider with the models `scripted` and `other`, an empty conversation."""
    with open_desk(tmp_path) as made:
        yield made
