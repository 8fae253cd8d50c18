"""The only place of the api where errors become responses (contract.md, HTTP API; interfaces.md sections 7 and 11).

Shape: `{"error":{"code","message","retryable","details"}}`. A hint is for people at a terminal; the contract's object
has no key for it, so it is left out here.
"""

from __future__ import annotations

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.exceptions import NotFound as NoSuchPath

from aura import limits
from aura.errors import AuraError, BadRequest, Internal, NotFound, Overloaded, Unauthorized
from aura.jsontypes import JsonValue
from aura.runtime.log import Log
from aura.wire import canonical


def error_body(error: AuraError) -> bytes:
    """Return the body of an error response."""
    details: dict[str, JsonValue] = {key: value for key, value in error.details.items() if value is not None}
    fields: dict[str, JsonValue] = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "details": details,
    }
    return canonical.encode({"error": fields})


MALFORMED_BODY = error_body(BadRequest("this is not a request that can be read, or it is far too large"))


def malformed_response(body: bytes) -> bytes:
    """Return the whole response, with `body`, to what is not a request."""
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def error_response(error: AuraError) -> Response:
    """Return the response to `error`, with the headers that belong to its code."""
    response = Response(error_body(error), status=error.http_status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Overloaded):
        wait_ms = error.details.get("retry_after_ms")
        response.headers["Retry-After"] = str(
            -(-(wait_ms if isinstance(wait_ms, int) else limits.RETRY_AFTER_MS) // 1000)
        )
    return response


def install_handlers(app: Flask, log: Log) -> None:
    """Make `app` answer every error in the contract's shape. Unexpected faults are logged under an id."""

    def on_error(error: AuraError) -> Response:
        return error_response(error)

    def on_http_error(error: HTTPException) -> Response:
        if isinstance(error, NoSuchPath):
            return error_response(NotFound("there is nothing at this path"))
        response = error_response(BadRequest(error.description or "the request cannot be read"))
        if isinstance(error, MethodNotAllowed):
            response = error_response(BadRequest("this path does not take that method"))
            response.status_code = 405
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
        return response

    def on_fault(error: Exception) -> Response:
        fault_id = log.fault("http", error)
        return error_response(Internal(f"unexpected fault {fault_id}; the server's log has more"))

    app.register_error_handler(AuraError, on_error)
    app.register_error_handler(HTTPException, on_http_error)
    app.register_error_handler(Exception, on_fault)
