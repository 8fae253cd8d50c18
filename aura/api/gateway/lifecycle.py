"""Serves a gateway over HTTP until it is told to stop, and ends it by phases (streaming-guide.md, Graceful Shutdown).

Gate, grace, drain, abort, exit. It owns signals and the end; what is answered is `aura.api.gateway.app`'s business.
Main thread only.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

from aura import limits
from aura.api.gateway.app import Gate, create_app
from aura.api.gateway.chat import ChatSettings
from aura.api.gateway.places import Places
from aura.api.responses import OpenResponses
from aura.api.server import HttpServer, start_server
from aura.api.waiter import Waiter
from aura.runtime.gateway.service import GatewayService
from aura.runtime.stop_signals import watch_stop_signals

_FOREVER_MS = 3_600_000  # a wait without an end looks up this often


def serve_gateway(
    service: GatewayService,
    listener: socket.socket,
    api_key: str | None,
    settings: ChatSettings,
    *,
    waiter: Waiter,
    grace_ms: int,
    on_ready: Callable[[], None],
) -> bool:
    """Serve until SIGINT or SIGTERM; return True if every run had its end recorded.

    `listener` is a bound TCP socket; it belongs to this function. `on_ready` is called once, on a native thread, when
    the listener accepts. A second signal skips to the abort.
    """
    frame = _Frame(service, waiter)
    watch_stop_signals(frame.on_signal)
    app = create_app(service, api_key, waiter, frame.places, settings)
    wsgi_app = frame.responses.count_in(frame.gate.before(app.wsgi_app))
    server = start_server(wsgi_app, listener, waiter, service.log)
    try:
        waiter.call(on_ready)
        frame.wait_for(lambda: frame.signals_count > 0, _FOREVER_MS, forever=True)
        return frame.end(server, grace_ms)
    finally:
        server.stop()


class _Frame:
    """What one call of `serve_gateway` shares."""

    def __init__(self, service: GatewayService, waiter: Waiter) -> None:
        self._service = service
        self._waiter = waiter
        self._bell = waiter.make_signal()
        self.gate = Gate()
        self.places = Places(waiter.kind)
        self.responses = OpenResponses(self._bell)
        self.signals_count = 0

    def on_signal(self, _number: signal.Signals) -> None:
        """Count a signal and look at it. Any thread."""
        self.signals_count += 1
        self._bell.ring()

    def end(self, server: HttpServer, grace_ms: int) -> bool:
        """Take the server down by phases; return True if every run had its end recorded."""
        log, service = self._service.log, self._service
        log.info("gateway", f"stopping: {self.responses.count} requests and {service.runs_count} runs under way")
        self.gate.close()
        service.refuse_runs()
        clean = self.wait_for(self._is_idle, grace_ms)
        if not clean:
            self._waiter.call(service.cancel_runs)
            self.places.drain()
            clean = self.wait_for(self._is_idle, limits.DRAIN_MS)
        unaborted = False
        if not clean:
            log.warning("gateway", "Stream shutdown grace period expired, aborting stragglers")
            service.give_up()
            server.stop()
            unaborted = not self.wait_for(lambda: service.runs_count == 0, limits.ABORT_WAIT_MS, hurry=False)
        log.info("gateway", f"shutdown complete clean_shutdown={_flag(clean)} unaborted_tasks={_flag(unaborted)}")
        return not unaborted

    def _is_idle(self) -> bool:
        return self.responses.count == 0 and self._service.runs_count == 0

    def wait_for(
        self, condition: Callable[[], bool], timeout_ms: int, *, forever: bool = False, hurry: bool = True
    ) -> bool:
        """Return True once the condition holds, False after `timeout_ms`, or, with `hurry`, at a second signal."""
        deadline_ms = self._waiter.monotonic_ms() + timeout_ms
        while not condition():
            seen = self._bell.generation
            left_ms = timeout_ms if forever else deadline_ms - self._waiter.monotonic_ms()
            if left_ms <= 0 or (hurry and self.signals_count > 1):
                return condition()
            if condition():
                return True
            self._bell.wait(seen, left_ms if forever else min(left_ms, limits.IDLE_LOOK_MS))
        return True


def _flag(value: bool) -> str:
    return "true" if value else "false"
