"""The Flask application of one served session: authentication, error shapes, automation routes. It has no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Flask, request

from aura.api.auth import BearerAuth
from aura.api.automation.routes import AutomationRoutes
from aura.api.errors import install_handlers
from aura.api.streams import Streams
from aura.api.waiter import Waiter

if TYPE_CHECKING:
    from aura.runtime.service import Service


def create_app(service: Service, token: str, waiter: Waiter, streams: Streams) -> Flask:
    """Return an application for `service`. Every path needs the token, those that do not exist too."""
    app = Flask("aura.api", static_folder=None, template_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False  # a path is right or not found: no redirects
    auth = BearerAuth(token)

    def authenticate() -> None:
        auth.check(request.headers.get("Authorization"))

    app.before_request(authenticate)
    install_handlers(app, service.log)
    app.register_blueprint(AutomationRoutes(service, waiter, streams).blueprint())
    return app
