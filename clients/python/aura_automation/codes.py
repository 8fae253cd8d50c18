"""One exception class for each code of the contract, and the closed table of codes. It makes no exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aura_automation.errors import AutomationError

# --- requests -----------------------------------------------------------------------------------------------


class BadRequest(AutomationError):
    """The input cannot be used (400); nothing happened."""

    CODE = "bad_request"


class Unauthorized(AutomationError):
    """The token is missing or wrong (401), or too weak for the server to start with."""

    CODE = "unauthorized"


class NotFound(AutomationError):
    """There is no such session, run or input (404). `details["candidates"]` for an ambiguous prefix."""

    CODE = "not_found"


class Busy(AutomationError):
    """Another run of the session has not settled (409); `details["run_id"]` names it."""

    CODE = "busy"


class RequestConflict(AutomationError):
    """The request id was used before with another body (409)."""

    CODE = "request_conflict"


class CursorOutOfRange(AutomationError):
    """`after` is below 0 or beyond the journal (409); `details["last_seq"]` is its end."""

    CODE = "cursor_out_of_range"


class NotPending(AutomationError):
    """The question was answered already, or its run has settled (409)."""

    CODE = "not_pending"


class ShuttingDown(AutomationError):
    """The server takes no new runs any more (503)."""

    CODE = "shutting_down"


class Overloaded(AutomationError):
    """The server has no room for the request now (503); `retry_after_s` says when to come again."""

    CODE = "overloaded"


class StoreUnavailable(AutomationError):
    """The database is corrupt, newer than the program, full, locked for too long, or not writable."""

    CODE = "store_unavailable"


class Internal(AutomationError):
    """A fault inside the server, or a provider answer that it could not classify."""

    CODE = "internal"


# --- sessions -----------------------------------------------------------------------------------------------


class Exists(AutomationError):
    """The target exists and is not what the command would have made."""

    CODE = "exists"


class RevisionMismatch(AutomationError):
    """The session is not at the expected revision."""

    CODE = "revision_mismatch"


class SessionLocked(AutomationError):
    """Another process holds the session."""

    CODE = "session_locked"


class SessionFrozen(AutomationError):
    """The session is frozen, for ever: it can be shown, exported and forked."""

    CODE = "session_frozen"


class InvalidId(AutomationError):
    """Not a session id."""

    CODE = "invalid_id"


class InvalidSession(AutomationError):
    """The file is not a session, or its history is broken."""

    CODE = "invalid_session"


# --- start-up -----------------------------------------------------------------------------------------------


class ResumeFailed(AutomationError):
    """The session's agent, mode or model is no longer there."""

    CODE = "resume_failed"


class McpUnavailable(AutomationError):
    """A required MCP server did not start."""

    CODE = "mcp_unavailable"


class ConfigInvalid(AutomationError):
    """The configuration cannot be used; the message names file and key."""

    CODE = "config_invalid"


class LauncherLost(AutomationError):
    """The process that started the server ended before it released it."""

    CODE = "launcher_lost"


class StartupFailed(AutomationError):
    """The server could not start for another reason, such as an occupied port."""

    CODE = "startup_failed"


# --- providers: at start-up and in runs ---------------------------------------------------------------------


class ProviderError(AutomationError):
    """Base of the provider's failures. `details` has `status`, `provider` and `retry_after_ms` if known."""


class ProviderNetwork(ProviderError):
    """The provider cannot be reached. Retryable."""

    CODE = "provider_network"


class ProviderServer(ProviderError):
    """The provider answered 5xx. Retryable."""

    CODE = "provider_server"


class ProviderRateLimit(ProviderError):
    """The provider answered 429. Retryable."""

    CODE = "provider_rate_limit"


class ProviderAuth(ProviderError):
    """The provider refused the credentials."""

    CODE = "provider_auth"


class ProviderCredit(ProviderError):
    """The provider account has no credit."""

    CODE = "provider_credit"


class ProviderModelUnavailable(ProviderError):
    """The provider does not have the model."""

    CODE = "provider_model_unavailable"


# --- how runs end: raised by Run.raise_for_outcome only -----------------------------------------------------


class RunError(AutomationError):
    """Base of the codes that only a run's record carries."""


class Cancelled(RunError):
    """The run was cancelled; `details["reason"]` is `request` or `shutdown`."""

    CODE = "cancelled"


class InputRejected(RunError):
    """The input did not enter the conversation."""

    CODE = "input_rejected"


class GuardrailBlocked(RunError):
    """A guardrail refused the input."""

    CODE = "guardrail_blocked"


class InputRequired(RunError):
    """The run needed a person, and was submitted with `on_input="block"`."""

    CODE = "input_required"


class PolicyStop(RunError):
    """A plugin stopped the run."""

    CODE = "policy_stop"


class ContentFilter(RunError):
    """The provider's content filter ended the answer."""

    CODE = "content_filter"


class ContextExhausted(RunError):
    """The conversation no longer fits the model's context."""

    CODE = "context_exhausted"


class CompactionFailed(RunError):
    """The conversation could not be compacted."""

    CODE = "compaction_failed"


class MaxSteps(RunError):
    """The run used its model calls up."""

    CODE = "max_steps"


class TokenBudget(RunError):
    """The session used its tokens up."""

    CODE = "token_budget"


class CommandFailed(RunError):
    """The slash command failed."""

    CODE = "command_failed"


class PersistFailed(RunError):
    """The session could not be saved."""

    CODE = "persist_failed"


class ServerLost(RunError):
    """The server that held the run is gone."""

    CODE = "server_lost"


_CONTRACT: Final[tuple[type[AutomationError], ...]] = (
    BadRequest,
    Unauthorized,
    NotFound,
    Busy,
    RequestConflict,
    CursorOutOfRange,
    NotPending,
    ShuttingDown,
    Overloaded,
    StoreUnavailable,
    Internal,
    Exists,
    RevisionMismatch,
    SessionLocked,
    SessionFrozen,
    InvalidId,
    InvalidSession,
    ResumeFailed,
    McpUnavailable,
    ConfigInvalid,
    LauncherLost,
    StartupFailed,
    ProviderNetwork,
    ProviderServer,
    ProviderRateLimit,
    ProviderAuth,
    ProviderCredit,
    ProviderModelUnavailable,
    Cancelled,
    InputRejected,
    GuardrailBlocked,
    InputRequired,
    PolicyStop,
    ContentFilter,
    ContextExhausted,
    CompactionFailed,
    MaxSteps,
    TokenBudget,
    CommandFailed,
    PersistFailed,
    ServerLost,
)

BY_CODE: Final[Mapping[str, type[AutomationError]]] = {kind.CODE: kind for kind in _CONTRACT}
