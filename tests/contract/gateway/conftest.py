"""Real gateways in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.gateway import Gateway, launch_gateway
from tests.support.serving import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A workspace and a config home with a scripted model; its processes end with the test."""
    made = Site(tmp_path)
    yield made
    made.end()


@pytest.fixture
def launch(site: Site) -> Callable[..., Gateway]:
    """Start a gateway on the site."""

    def start(*words: str, **options: object) -> Gateway:
        return launch_gateway(site, *words, **options)  # type: ignore[arg-type]

    return start
