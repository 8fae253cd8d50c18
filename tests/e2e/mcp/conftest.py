"""Marks the tests of this folder: they need published MCP servers. AURA_SKIP_MCP=1 leaves them out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import Site


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder, before tests/conftest.py looks at the marks. It gets all tests of a run."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("mcp_servers")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace and a config home with a scripted model; its processes end with the test."""
    made = Site(tmp_path)
    yield made
    made.end()
