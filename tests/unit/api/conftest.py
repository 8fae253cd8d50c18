"""The application over parts in memory."""

import pytest

from tests.unit.api.parts import Api


@pytest.fixture
def api() -> Api:
    return Api()
