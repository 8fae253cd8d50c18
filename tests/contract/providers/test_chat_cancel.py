"""A cancel ends a model call in every phase, within a second, and closes its connection."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from aura.config.spec import ProviderSpec
from aura.engine.io import IoThread
from aura.engine.providers.registry import build_provider
from aura.engine.scope import Cancelled

BOUND_S = 1.0
CHUNK = {"choices": [{"index": 0, "delta": {"content": "a"}}]}


@pytest.fixture
def cancelled_call(scope, request_of):
    """Make a call and cancel it when `reached` is set; return the seconds from the cancel to its return."""

    def run(provider, reached: threading.Event, on_delta=lambda text, thinking: None) -> float:
        cancelled_at: list[float] = []

        def cancel() -> None:
            assert reached.wait(20)
            cancelled_at.append(time.monotonic())
            scope.cancel("request")

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(Cancelled) as caught:
            provider.stream(request_of("hi"), scope, on_delta)
        took = time.monotonic() - cancelled_at[0]
        thread.join(20)
        assert caught.value.reason == "request"
        return took

    return run


@pytest.fixture(autouse=True)
def loaded_sdk():
    """The first call imports the SDK; that is not a part of what is measured here."""
    import aura.engine.providers.transport  # noqa: F401


def test_while_connecting(silent_port, make, cancelled_call, io):
    connecting = threading.Event()
    provider = make(f"http://127.0.0.1:{silent_port}")

    async def soon() -> None:
        connecting.set()

    threading.Timer(0.1, lambda: io.submit(soon())).start()
    assert cancelled_call(provider, connecting) < BOUND_S


def test_while_waiting_for_headers(server, make, cancelled_call):
    reached, gone = threading.Event(), threading.Event()

    def behave(exchange):
        reached.set()
        if exchange.client_has_gone():
            gone.set()

    server.behave = behave
    assert cancelled_call(make(server.url), reached) < BOUND_S
    assert gone.wait(10)


def test_while_the_server_does_not_finish_the_tls_handshake(make, cancelled_call):
    reached = threading.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def accept() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            reached.set()
            connection.settimeout(20)
            while connection.recv(4096):
                pass
            connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        assert cancelled_call(make(f"https://127.0.0.1:{listener.getsockname()[1]}"), reached) < BOUND_S
        thread.join(20)
        assert not thread.is_alive()


def test_in_the_middle_of_a_quiet_stream(server, make, cancelled_call):
    seen, gone = threading.Event(), threading.Event()

    def behave(exchange):
        exchange.stream(CHUNK, done=False)
        if exchange.client_has_gone():
            gone.set()

    server.behave = behave
    assert cancelled_call(make(server.url), seen, lambda text, thinking: seen.set()) < BOUND_S
    assert gone.wait(10)


def test_in_the_middle_of_a_flood(server, make, cancelled_call):
    many, gone = threading.Event(), threading.Event()
    seen: list[str] = []

    def behave(exchange):
        exchange.stream(done=False)
        data = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' * 200
        while exchange.write(data):
            pass
        gone.set()

    def on_delta(text: str, thinking: bool) -> None:
        seen.append(text)
        if len(seen) > 5:
            many.set()

    server.behave = behave
    assert cancelled_call(make(server.url), many, on_delta) < BOUND_S
    count = len(seen)
    assert gone.wait(10)
    assert len(seen) == count


def test_while_an_error_body_drips(server, make, cancelled_call):
    reached = threading.Event()

    def behave(exchange):
        exchange.head(503, "text/plain", content_length="1000")
        exchange.write(b"x")
        reached.set()
        exchange.client_has_gone()

    server.behave = behave
    assert cancelled_call(make(server.url), reached) < BOUND_S


def test_while_waiting_for_metadata(server, make, scope):
    def behave(exchange):
        scope.cancel("request")
        exchange.client_has_gone()

    server.behave = behave
    started = time.monotonic()
    with pytest.raises(Cancelled):
        make(server.url).context_tokens("m", scope)
    assert time.monotonic() - started < 2 * BOUND_S


def test_a_deadline_ends_a_call_as_a_cancel_does(server, make, scope, request_of):
    server.behave = lambda exchange: exchange.client_has_gone()
    with pytest.raises(Cancelled) as caught:
        make(server.url).stream(request_of("hi"), scope.child(deadline_ms=100), lambda text, thinking: None)
    assert caught.value.reason == "deadline"


def test_a_provider_works_on_after_a_cancel(server, make, cancelled_call, request_of, scope):
    reached = threading.Event()

    def behave(exchange):
        if not reached.is_set():
            reached.set()
            exchange.client_has_gone()
            return
        exchange.stream(CHUNK, {"choices": [{"delta": {}, "finish_reason": "stop"}]})

    server.behave = behave
    provider = make(server.url)
    cancelled_call(provider, reached)
    assert provider.stream(request_of("again"), scope.shield(20_000), lambda text, thinking: None).content == "a"


def test_closing_the_io_thread_ends_calls_as_a_shutdown(server, scope, request_of):
    io, reached = IoThread(), threading.Event()

    def behave(exchange):
        reached.set()
        exchange.client_has_gone()

    server.behave = behave
    provider = build_provider(ProviderSpec("local", "llamacpp", Path("p.yaml"), url=server.url), io)
    threading.Thread(target=lambda: (reached.wait(20), io.close())).start()
    with pytest.raises(Cancelled) as caught:
        provider.stream(request_of("hi"), scope, lambda text, thinking: None)
    assert caught.value.reason == "shutdown"
