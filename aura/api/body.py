"""Reads request bodies: JSON by their type, never more in memory than allowed (interfaces.md sections 2 and 9)."""

from __future__ import annotations

from flask import Request

from aura import limits
from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.wire import canonical

BROKEN_INPUT = "aura.broken_input"  # in a WSGI environ: the connection's next bytes are not a request


def read_json(request: Request) -> JsonValue:
    """Return the body's value, an empty object for no body. Raises `BadRequest`."""
    data = read_body(request)
    if not data:
        return {}
    _check_type(request)
    try:
        return canonical.decode(data)
    except canonical.NotCanonical as error:
        raise BadRequest(f"the body is not JSON: {error}") from error


def read_body(request: Request) -> bytes:
    """Return the whole body, sent with a length or in chunks. Raises `BadRequest`."""
    if (request.content_length or 0) > limits.BODY_MAX_BYTES:
        raise _too_large()
    try:
        data: bytes = request.environ["wsgi.input"].read(limits.BODY_MAX_BYTES + 1)
    except OSError as error:
        request.environ[BROKEN_INPUT] = True
        raise BadRequest("the body ends too early, or its chunks are malformed") from error
    if len(data) > limits.BODY_MAX_BYTES:
        raise _too_large()
    return data


def _check_type(request: Request) -> None:
    if not request.headers.get("Content-Type"):
        return
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype != "application/json" or charset not in ("utf-8", "utf8"):
        raise BadRequest("the body is not of the type application/json", hint="Send JSON in UTF-8.")


def _too_large() -> BadRequest:
    return BadRequest(f"the body is over {limits.BODY_MAX_BYTES} bytes", details={"reason": "too_large"})
