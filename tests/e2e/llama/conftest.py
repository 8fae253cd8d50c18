"""Real llama-servers with scripted models, one of each kind per test process, for all tests of this folder.

They need the binary of scripts/build-llama-server. A missing binary is an error, not a skip, so that no green run
hides it; AURA_SKIP_LLAMA=1 leaves the tests out, and pytest's summary says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.llama import ROUTES, TEMPLATE, THINKING_ROUTES, THINKING_TEMPLATE, LlamaServer, make_model
from tests.support.scripted_model import Route

WAIT_S = 30
StartLlama = Callable[..., LlamaServer]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder, before tests/conftest.py looks at the marks. It gets all tests of a run."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("llama")


@pytest.fixture(scope="session")
def start_llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartLlama]:
    """Return a function that starts a server that ends with the run: `start_llama("-c", "512", routes=…)`.

    With `is_router` its one model, `scripted`, is loaded when a request names it.
    """
    running: list[LlamaServer] = []

    def start(
        *arguments: str, routes: Sequence[Route] = ROUTES, template: str = TEMPLATE, is_router: bool = False
    ) -> LlamaServer:
        folder = tmp_path_factory.mktemp("llama")
        models = folder / "models"
        models.mkdir()
        model = make_model(models / "scripted.gguf", routes, template)
        server = LlamaServer(models if is_router else model, folder / "server.log", arguments)
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def llama(start_llama: StartLlama) -> LlamaServer:
    """A server with two slots of 16,384 tokens and the routes of `tests.support.llama.ROUTES`."""
    return start_llama("-c", "32768", "-np", "2")


@pytest.fixture(scope="session")
def thinking_llama(start_llama: StartLlama) -> LlamaServer:
    """A server whose only answer has thoughts."""
    return start_llama("-c", "4096", "-np", "1", routes=THINKING_ROUTES, template=THINKING_TEMPLATE)


@pytest.fixture(scope="session")
def small_llama(start_llama: StartLlama) -> LlamaServer:
    """A server with one slot of 256 tokens."""
    return start_llama("-c", "256", "-np", "1")


@pytest.fixture(scope="session")
def locked_llama(start_llama: StartLlama) -> LlamaServer:
    """A server that wants the token `right-token`."""
    return start_llama("-c", "512", "-np", "1", "--api-key", "right-token")


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits, with a bound, until a condition holds."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true in time"
            time.sleep(0.01)

    return wait
