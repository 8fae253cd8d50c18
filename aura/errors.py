"""The one error tree: every failure a user can meet, with its contract code.

An error says what happened (`message`), what to do (`hint`), and what a program needs to decide (`code`, `details`,
`retryable`). It knows its HTTP status and its exit code, but it renders nothing: that is done in `aura.api.errors` and
`aura.cli.errors` only. Codes come from contract.md and interfaces.md 7, 9 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

Detail = str | int | bool | None | list[str]


class AuraError(Exception):
    """Base of all errors that a user may see. Subclasses fix the code; instances say what happened.

    `message` is one line without secrets. `hint`, where there is one, is one imperative sentence. `details` has only
    the keys that the contract names for the code.
    """

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, details: Mapping[str, Detail] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Detail] = dict(details or {})


class Internal(AuraError):
    """A fault of this program. The message carries an id that is in the log, never a traceback."""


class BadRequest(AuraError):
    """The caller's input cannot be used: a flag, a body, a number out of range."""

    code = "bad_request"
    http_status = 400


class Unauthorized(AuraError):
    """The bearer token is missing or wrong; at start-up, the server's own token is unusable."""

    code = "unauthorized"
    http_status = 401


class NotFound(AuraError):
    """There is no such session, run, input, revision or route."""

    code = "not_found"
    http_status = 404


class ModelNotFound(NotFound):
    """No agent of the gateway is called what a request names as its model."""


class Exists(AuraError):
    """The target exists and is not what this request would have made."""

    code = "exists"
    http_status = 409


class RevisionMismatch(AuraError):
    """The session is not at the revision that the caller expected."""

    code = "revision_mismatch"
    http_status = 409


class SessionLocked(AuraError):
    """Another live process holds the session."""

    code = "session_locked"
    http_status = 409


class SessionFrozen(AuraError):
    """The session is frozen, for ever: it can be read, exported and forked, never written."""

    code = "session_frozen"
    http_status = 409


class InvalidId(AuraError):
    """A session id outside interfaces.md section 2's pattern."""

    code = "invalid_id"
    http_status = 400


class InvalidSession(AuraError):
    """A document or a journal file that is not one."""

    code = "invalid_session"
    http_status = 400


class Busy(AuraError):
    """Another run of the session has not settled. `details.run_id` names it."""

    code = "busy"
    http_status = 409


class RequestConflict(AuraError):
    """The request id was used before with another body."""

    code = "request_conflict"
    http_status = 409


class CursorOutOfRange(AuraError):
    """`after` is below 0 or beyond the last event. `details.last_seq` is the last one."""

    code = "cursor_out_of_range"
    http_status = 409


class NotPending(AuraError):
    """The question or approval was resolved already, or its run has settled."""

    code = "not_pending"
    http_status = 409


class ShuttingDown(AuraError):
    """The server takes no new runs any more."""

    code = "shutting_down"
    http_status = 503


class Overloaded(AuraError):
    """More live runs or streams than this process takes. The caller may try again after `retry_after_ms`."""

    code = "overloaded"
    http_status = 503


class StoreUnavailable(AuraError):
    """The database is corrupt, newer than this program, full, locked for too long, or not writable."""

    code = "store_unavailable"
    http_status = 503


class StoreFull(StoreUnavailable):
    """There is no room left on the disk. What was committed before is safe."""


class CommitInDoubt(StoreUnavailable):
    """The disk did not answer in time; what was to be written may still become true."""


class LeaseLost(StoreUnavailable):
    """Another holder has taken the session over: this one must stop without writing."""


class ConfigInvalid(AuraError):
    """The configuration cannot be used. The message names file and key, the hint the accepted values."""

    code = "config_invalid"
    http_status = 500


class ResumeFailed(AuraError):
    """The session names an agent or mode that the configuration no longer has."""

    code = "resume_failed"
    http_status = 500


class McpUnavailable(AuraError):
    """A required MCP server did not start, initialize or list its tools."""

    code = "mcp_unavailable"
    http_status = 500


class ProviderNetwork(AuraError):
    """The model provider could not be reached."""

    code = "provider_network"
    http_status = 503
    retryable = True


class ProviderServer(AuraError):
    """The model provider failed."""

    code = "provider_server"
    http_status = 503
    retryable = True


class ProviderRateLimit(AuraError):
    """The model provider wants fewer calls."""

    code = "provider_rate_limit"
    http_status = 503
    retryable = True


class ProviderAuth(AuraError):
    """The model provider refuses the token."""

    code = "provider_auth"


class ProviderCredit(AuraError):
    """The account at the model provider is used up."""

    code = "provider_credit"


class ProviderModelUnavailable(AuraError):
    """The model provider does not have the model."""

    code = "provider_model_unavailable"


_PROVIDER_FAILURES: tuple[type[AuraError], ...] = (
    ProviderNetwork,
    ProviderServer,
    ProviderRateLimit,
    ProviderAuth,
    ProviderCredit,
    ProviderModelUnavailable,
)


def provider_failure(code: str, message: str, details: Mapping[str, Detail]) -> AuraError | None:
    """Return the error for a failure of a provider outside of a run, None when `code` is not a provider's."""
    found = next((kind for kind in _PROVIDER_FAILURES if kind.code == code), None)
    return found(message, details=details) if found is not None else None


class LauncherLost(AuraError):
    """The process that started the server died before it released the server."""

    code = "launcher_lost"
    http_status = 500


class StartupFailed(AuraError):
    """The server could not start for a reason without a code of its own, such as an occupied port."""

    code = "startup_failed"
    http_status = 500
