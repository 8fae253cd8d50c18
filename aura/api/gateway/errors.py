"""Errors of the gateway in OpenAI's shape (interfaces.md sections 8 and 10): the only place where they are rendered.

`{"error":{"message","type","param","code"}}`, with `details` only where they say something. In a stream the same object
is a `data:` frame.
"""

from __future__ import annotations

from collections.abc import Mapping

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.exceptions import NotFound as NoSuchPath

from aura import limits
from aura.errors import (
    AuraError,
    BadRequest,
    Busy,
    Detail,
    Internal,
    ModelNotFound,
    NotFound,
    Overloaded,
    Unauthorized,
)
from aura.jsontypes import JsonValue
from aura.runs import RunError
from aura.runtime.log import Log
from aura.wire import canonical
from aura.wire.chat import TIMEOUT, Failed

_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 409: "conflict_error"}
_STATUS_OF_RUN_ERROR = {
    "provider_rate_limit": 429,
    TIMEOUT: 504,
    "input_rejected": 400,
    "bad_request": 400,
    "context_exhausted": 400,
    "mcp_unavailable": 500,
    "internal": 500,
    "config_invalid": 500,
    "persist_failed": 503,
    "store_unavailable": 503,
    "cancelled": 503,
}
_CONTEXT = "The conversation is longer than the model's context. Begin a new one, or shorten this one."


def error_fields(error: AuraError) -> JsonValue:
    """Return the error object of a request that failed."""
    kind = _TYPES.get(error.http_status, "server_error")
    code: str | None = None if error.code == "bad_request" else error.code
    details = {key: value for key, value in error.details.items() if value is not None and key != "param"}
    if isinstance(error, ModelNotFound):
        kind, code = "invalid_request_error", "model_not_found"
    if isinstance(error, Busy):
        code = "run_in_progress"
    if error.code == "shutting_down":
        kind = "service_unavailable"
    return _object(error.message, kind, error.details.get("param"), code, details)


def failure_fields(failed: Failed, *, debug: bool) -> JsonValue:
    """Return the error object of a run that did not answer. With `debug` what a provider said is shown, cut."""
    status = run_error_status(failed.error)
    kind = _TYPES.get(status, "server_error")
    return _object(_run_message(failed.error, debug=debug), kind, None, failed.error.code, {})


def run_error_status(error: RunError) -> int:
    """Return the HTTP status for a run that ended with `error` (interfaces.md section 10)."""
    known = _STATUS_OF_RUN_ERROR.get(error.code)
    if known is not None:
        return known
    return 502 if error.code.startswith("provider_") or error.code == "content_filter" else 500


def error_frame(fields: JsonValue) -> bytes:
    """Return the frame of an error in a stream."""
    return b"data: %s\n\n" % canonical.encode({"error": fields})


def error_response(error: AuraError) -> Response:
    """Return the response to `error`."""
    response = _response(error_fields(error), error.http_status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Overloaded):
        response.headers["Retry-After"] = _seconds(error.details.get("retry_after_ms"))
    return response


def failure_response(failed: Failed, *, debug: bool) -> Response:
    """Return the response to a request whose run did not answer."""
    status = run_error_status(failed.error)
    response = _response(failure_fields(failed, debug=debug), status)
    if status == 429:
        response.headers["Retry-After"] = _seconds(failed.error.details.get("retry_after_ms"))
    return response


def install_handlers(app: Flask, log: Log) -> None:
    """Make `app` answer every error in this shape. Unexpected faults are logged under an id."""

    def on_error(error: AuraError) -> Response:
        return error_response(error)

    def on_http_error(error: HTTPException) -> Response:
        if isinstance(error, NoSuchPath):
            return error_response(NotFound("there is nothing at this path"))
        if isinstance(error, MethodNotAllowed):
            response = error_response(BadRequest("this path does not take that method"))
            response.status_code = 405
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
            return response
        return error_response(BadRequest(error.description or "the request cannot be read"))

    def on_fault(error: Exception) -> Response:
        fault_id = log.fault("http", error)
        return error_response(Internal(f"unexpected fault {fault_id}; the server's log has more"))

    app.register_error_handler(AuraError, on_error)
    app.register_error_handler(HTTPException, on_http_error)
    app.register_error_handler(Exception, on_fault)


def _run_message(error: RunError, *, debug: bool) -> str:
    if error.code == "context_exhausted":
        return _CONTEXT
    if not error.code.startswith("provider_") or debug:
        return error.message[: limits.PROVIDER_ERROR_SHOWN_CHARS]
    return "The model provider could not answer. The server's log and `aura runs` say more."


def _object(message: str, kind: str, param: Detail, code: str | None, details: Mapping[str, Detail]) -> JsonValue:
    shown = param if isinstance(param, str) else None
    fields: dict[str, JsonValue] = {"message": message, "type": kind, "param": shown, "code": code}
    if details:
        fields["details"] = dict(details)
    return fields


def _response(fields: JsonValue, status: int) -> Response:
    response = Response(canonical.encode({"error": fields}), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def _seconds(wait_ms: Detail) -> str:
    return str(-(-(wait_ms if isinstance(wait_ms, int) else limits.RETRY_AFTER_MS) // 1000))
