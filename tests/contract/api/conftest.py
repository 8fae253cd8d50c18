"""Real servers of both kinds. `served` is shared by a module's tests; `fresh` gives each test its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.raw_server import Served, serve


@pytest.fixture(scope="module", params=["gevent", "waitress"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def served(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp(kind), kind) as server:
        yield server


@pytest.fixture
def fresh(kind: str, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start a server of its own for one test."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(serve(tmp_path, kind, *options))
