"""One real server for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.raw_server import Served, serve


@pytest.fixture(scope="module", params=["gevent", "waitress"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), request.param) as server:
        yield server
