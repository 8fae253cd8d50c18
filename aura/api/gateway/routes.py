"""The routes of the gateway (gateway.md 2.1). Each reads its request, calls the service off the hub, and encodes."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response, request

from aura.api.gateway.chat import ChatHandler
from aura.api.waiter import Waiter
from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.runtime.gateway.service import GatewayService
from aura.wire import canonical


class GatewayRoutes:
    """Handlers of one gateway. They run on greenlets or threads, as `waiter` has it."""

    def __init__(self, service: GatewayService, waiter: Waiter, chats: ChatHandler) -> None:
        self._service = service
        self._waiter = waiter
        self._chats = chats

    def blueprint(self) -> Blueprint:
        """Return the routes."""
        table: tuple[tuple[str, str, Callable[..., Response]], ...] = (
            ("GET", "/health", self.get_health),
            ("GET", "/aura/info", self.get_info),
            ("GET", "/v1/models", self.get_models),
            ("POST", "/v1/chat/completions", self.post_chat),
        )
        blueprint = Blueprint("gateway", __name__)
        for method, path, handler in table:
            blueprint.add_url_rule(path, handler.__name__, handler, methods=[method])
        return blueprint

    def get_health(self) -> Response:
        """`GET /health`: 200 also when the store does not answer, which the body says."""
        return _json(self._waiter.call(self._service.read_health))

    def get_info(self) -> Response:
        """`GET /aura/info`."""
        if request.args.get("detail"):
            raise BadRequest("this version has no details of tools", details={"param": "detail"})
        return _json(self._service.read_info())

    def get_models(self) -> Response:
        """`GET /v1/models`."""
        return _json(self._service.read_models())

    def post_chat(self) -> Response:
        """`POST /v1/chat/completions`."""
        return self._chats.post(request)


def _json(value: JsonValue, status: int = 200) -> Response:
    response = Response(canonical.encode(value), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
