"""What an answer that is no answer means: HTTP status, body and headers in, one `ProviderError` out.

Rules: contract.md (Outcomes and codes, with its paragraph on llama.cpp) and engine.md 5.3. Pure: it reads no socket
and no clock. Secrets are not its business either: the caller removes them from the body first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from aura import limits
from aura.engine.providers.base import ProviderError, ProviderErrorKind
from aura.jsontypes import JsonValue
from aura.wire import canonical

_BY_STATUS: dict[int, ProviderErrorKind] = {
    401: "auth",
    402: "credit",
    403: "auth",
    404: "model_unavailable",
    429: "rate_limit",
}
# Names that servers give errors inside a stream, where no HTTP status can tell.
_BY_NAME: dict[str, ProviderErrorKind] = {
    "authentication_error": "auth",
    "internal_server_error": "server",
    "model_not_found": "model_unavailable",
    "not_found_error": "model_unavailable",
    "overloaded_error": "server",
    "permission_error": "auth",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "server_error": "server",
    "unavailable_error": "server",
}
_CONTEXT_NAMES = frozenset(("exceed_context_size_error", "context_length_exceeded"))
_CONTEXT_PHRASES = ("context too large", "maximum context length", "context length exceeded")


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a server says of an error: its text and the names it gives the kind."""

    message: str
    names: frozenset[str] = frozenset()
    status: int | None = None


def classify(status: int, body: bytes, headers: Mapping[str, str], provider: str, now_ms: int) -> ProviderError:
    """Return the error that an HTTP answer with an error status means. Header names are lower case.

    `body` may be cut anywhere. For the llama.cpp family and all its endpoints the status alone decides, context
    overflow aside; for others the error's names and text are read too.
    """
    failure = _read_failure(body)
    message = excerpt(failure.message) or f"HTTP {status} without a message"
    kind = _kind_by_content(failure, status, provider) or _kind_by_status(status)
    retry_after_ms = find_retry_after_ms(headers, now_ms)
    return ProviderError(kind, message, provider=provider, status=status, retry_after_ms=retry_after_ms)


def classify_frame(error: JsonValue, provider: str) -> ProviderError:
    """Return what an error object inside a stream means: by its own status, else by its names."""
    failure = _failure_of(error) or _Failure(canonical.encode(error).decode())
    kind = _kind_by_content(failure, failure.status, provider) or _kind_by_name(failure)
    message = excerpt(failure.message) or "the stream ended with an error without a message"
    return ProviderError(kind, message, provider=provider, status=failure.status)


def unexpected(status: int, body: bytes, provider: str) -> ProviderError:
    """Return the error for a page where an answer should be, such as a login form: quoted, unclassified."""
    message = excerpt(body.decode("utf-8", "replace")) or f"HTTP {status} with an empty body"
    return ProviderError("unclassified", message, provider=provider, status=status)


def excerpt(text: str) -> str:
    """Return at most `limits.MESSAGE_EXCERPT_BYTES` of UTF-8 from the start of `text`, stripped."""
    data = canonical.encode_text(text.strip())
    return data[: limits.MESSAGE_EXCERPT_BYTES].decode("utf-8", "ignore").rstrip()


def find_retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """Return the wait that `retry-after-ms` or `retry-after` (seconds or HTTP date) asks for; None when it does not."""
    exact = _find_number(headers.get("retry-after-ms", ""))
    if exact is not None:
        return _bounded(exact)
    text = headers.get("retry-after", "")
    seconds = _find_number(text)
    if seconds is not None:
        return _bounded(seconds * 1000)
    try:
        moment = parsedate_to_datetime(text)
        return _bounded(moment.timestamp() * 1000 - now_ms)
    except (ValueError, OverflowError):
        return None


def _kind_by_content(failure: _Failure, status: int | None, provider: str) -> ProviderErrorKind | None:
    if failure.names & _CONTEXT_NAMES:
        return "context_exhausted"
    if "content_filter" in failure.names:
        return "content_filter"
    if provider != "openai" or status not in (None, 400, 413):
        return None
    text = failure.message.lower()
    if any(phrase in text for phrase in _CONTEXT_PHRASES):
        return "context_exhausted"
    return "content_filter" if "content" in text and "filter" in text else None


def _kind_by_name(failure: _Failure) -> ProviderErrorKind:
    if failure.status is not None:
        return _kind_by_status(failure.status)
    return next((_BY_NAME[name] for name in sorted(failure.names) if name in _BY_NAME), "unclassified")


def _kind_by_status(status: int) -> ProviderErrorKind:
    if status >= 500:
        return "server"
    return _BY_STATUS.get(status, "unclassified")


def _read_failure(body: bytes) -> _Failure:
    try:
        document = canonical.decode(body)
    except canonical.NotCanonical:
        document = None
    return _failure_of(document) or _Failure(body.decode("utf-8", "replace"))


def _failure_of(document: JsonValue) -> _Failure | None:
    """Read `{"error": {…}}`, `{"error": "text"}`, `{"message": …}`, `{"detail": …}` or the error object itself."""
    if isinstance(document, str):
        return _Failure(document)
    if not isinstance(document, Mapping):
        return None
    error = document.get("error", document)
    if isinstance(error, str):
        return _Failure(error)
    if not isinstance(error, Mapping):
        return None
    message = error.get("message", error.get("detail"))
    names = frozenset(value for value in (error.get("type"), error.get("code")) if isinstance(value, str))
    if not isinstance(message, str) and not names:
        return None
    return _Failure(
        message if isinstance(message, str) else canonical.encode(error).decode(), names, _find_status(error)
    )


def _find_status(error: Mapping[str, JsonValue]) -> int | None:
    for key in ("code", "status"):
        value = error.get(key)
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if isinstance(number, int) and 400 <= number <= 599:
            return number
    return None


def _find_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(delay_ms: float) -> int:
    return int(min(max(delay_ms, 0), limits.RETRY_AFTER_MAX_MS))
