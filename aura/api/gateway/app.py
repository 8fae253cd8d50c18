"""The Flask application of a gateway: authentication, error shapes, routes, and the gate that shutdown closes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Flask, request

from aura.api.auth import BearerAuth
from aura.api.gateway.chat import ChatHandler, ChatSettings
from aura.api.gateway.errors import error_fields, install_handlers
from aura.api.gateway.places import Places
from aura.api.gateway.routes import GatewayRoutes
from aura.api.waiter import Waiter
from aura.errors import ShuttingDown
from aura.runtime.gateway.service import GatewayService
from aura.wire import canonical

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_OPEN_PATHS = frozenset(("/health",))  # probes have no key


class Gate:
    """Lets requests through until it is closed; then each one is answered with 503. Any thread."""

    def __init__(self) -> None:
        self._closed = False
        self._body = canonical.encode({"error": error_fields(ShuttingDown("Server is shutting down"))})

    def close(self) -> None:
        """Let nothing through from now on. What is under way goes on."""
        self._closed = True

    def before(self, wsgi_app: WSGIApplication) -> WSGIApplication:
        """Return `wsgi_app` behind the gate."""

        def gated(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if not self._closed:
                return wsgi_app(environ, start_response)
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(self._body)))]
            start_response("503 Service Unavailable", headers)
            return [self._body]

        return gated


def create_app(
    service: GatewayService, api_key: str | None, waiter: Waiter, places: Places, settings: ChatSettings
) -> Flask:
    """Return an application for `service`. With a key, every path but /health needs it."""
    app = Flask("aura.gateway", static_folder=None, template_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    if api_key is not None:
        auth = BearerAuth(api_key)

        def authenticate() -> None:
            if request.path not in _OPEN_PATHS:
                auth.check(request.headers.get("Authorization"))

        app.before_request(authenticate)
    install_handlers(app, service.log)
    app.register_blueprint(GatewayRoutes(service, waiter, ChatHandler(service, waiter, places, settings)).blueprint())
    return app
