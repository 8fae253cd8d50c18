"""The closed set of error codes: where each occurs, what its details say, and what a controller does about it.

contract.md (Request failures; Outcomes and codes; start-up codes) with interfaces.md 7, 9 and 11. Documents and schemas
come from this table; it raises nothing. Which exception has which code is `aura.errors`' business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["http", "run", "start-up", "session"]

RETRYABLE_CODES = frozenset(("provider_network", "provider_server", "provider_rate_limit"))


@dataclass(frozen=True, slots=True)
class Code:
    """One code. `http_status` is None where no HTTP answer has it; `outcome` is how a run with it ends.

    `places`: `http` an error answer, `run` a run's `error` or `persist_error`, `start-up` the ready file, `session` the
    offline commands.
    """

    name: str
    places: tuple[Place, ...]
    means: str
    do: str
    http_status: int | None = None
    outcome: str | None = None
    details: tuple[str, ...] = ()

    @property
    def retryable(self) -> bool:
        """What `retryable` says with this code, everywhere (interfaces.md section 9)."""
        return self.name in RETRYABLE_CODES


_PROVIDER = ("status", "provider", "retry_after_ms")

_ALL = (
    # --- requests ---
    Code("bad_request", ("http", "session"), "The input cannot be used; nothing happened.",
         "Correct what the message names. `details.reason` is `too_large` for a text or body beyond its limit.",
         400, details=("reason",)),
    Code("unauthorized", ("http", "start-up"), "The bearer token is missing or wrong; at start-up, too weak.",
         "Send the token that the server was started with; start it with one of at least 32 characters.", 401),
    Code("not_found", ("http", "start-up", "session"), "There is no such path, run, input, session or revision.",
         "Check the id. `details.candidates` lists the sessions that an ambiguous `--resume` could mean.",
         404, details=("candidates",)),
    Code("busy", ("http",), "Another run of the session has not settled.",
         "Wait for the run that `details.run_id` names, or cancel it; then submit again under the same request id.",
         409, details=("run_id",)),
    Code("request_conflict", ("http",), "The request id was used before with another body.",
         "A fault of the controller: each piece of work has an id of its own.", 409),
    Code("cursor_out_of_range", ("http",),
         "`after` is below 0 or beyond the last event, or events after it were pruned.",
         "Ask again from `details.last_seq` at most; a cursor of another session is the usual cause. Where "
         "`details.first_seq` is given, the journal begins there now: `after` is one less at least.",
         409, details=("last_seq", "first_seq")),
    Code("not_pending", ("http",), "The question was resolved already, or its run has settled.",
         "Nothing: read `input.resolved` in the journal for what was decided.", 409),
    Code("shutting_down", ("http",), "The server takes no new runs any more.",
         "Start the next server on the session and submit there, under the same request id.", 503),
    Code("overloaded", ("http",), "More readers wait, or more writes are queued, than this process takes.",
         "Repeat after the seconds of `Retry-After`.", 503, details=("retry_after_ms",)),
    Code("store_unavailable", ("http", "session"),
         "The database is corrupt, newer than the program, full, locked for over 10 s or not writable.",
         "Look at the disk and the message. What was acknowledged is safe; repeat the request once it is mended.", 503),
    Code("internal", ("http", "session", "run"),
         "A fault of this program, or a provider's answer that it could not classify.",
         "The message has an id that is in the server's log, or the provider's own words. Report it.",
         500, "failed", ("status", "provider", "retry_after_ms")),
    # --- stored sessions ---
    Code("exists", ("session",), "The target exists and is not what the command would have made.",
         "Choose another id or file name."),
    Code("revision_mismatch", ("session",), "The session is not at the expected revision.",
         "Look at what changed it, then expect the new revision."),
    Code("session_locked", ("start-up", "session"), "Another live process holds the session.",
         "Stop that process, or attach to its server."),
    Code("session_frozen", ("http", "start-up", "session"), "The session is frozen, for ever.",
         "Fork it and work on the fork.", 409),
    Code("invalid_id", ("start-up", "session"), "This text cannot name a session.",
         "1 to 128 letters, digits, `.`, `_` or `-`, the first a letter or digit, without `..`."),
    Code("invalid_session", ("session",), "The document or journal file is none, or its history is broken.",
         "The message says where: by message index or line number."),
    # --- start-up ---
    Code("resume_failed", ("start-up",), "The session names an agent, mode or model that the configuration lacks.",
         "Configure it again, or name another with `--agent` or `--model`."),
    Code("mcp_unavailable", ("start-up",), "A required MCP server did not start, initialize or list its tools.",
         "Start the MCP server's command by hand and look at what it says."),
    Code("config_invalid", ("start-up",), "The configuration cannot be used.",
         "The message names file and key, the hint what is accepted."),
    Code("launcher_lost", ("start-up",), "The launcher died before it released the server.",
         "Nothing: this is what the lease is for. Launch again."),
    Code("startup_failed", ("start-up",), "The server could not start for another reason, such as an occupied port.",
         "The message says which."),
    # --- providers, in runs and at start-up ---
    Code("provider_network", ("run", "start-up"), "The provider cannot be reached.",
         "Submit a new request later.", None, "failed", _PROVIDER),
    Code("provider_server", ("run", "start-up"), "The provider answered 5xx.",
         "Submit a new request later.", None, "failed", _PROVIDER),
    Code("provider_rate_limit", ("run", "start-up"), "The provider answered 429.",
         "Submit a new request after `details.retry_after_ms`.", None, "failed", _PROVIDER),
    Code("provider_auth", ("run", "start-up"), "The provider refused the credentials.",
         "Mend the token in the provider's file.", None, "failed", _PROVIDER),
    Code("provider_credit", ("run", "start-up"), "The account has no credit.",
         "Pay, or choose another provider.", None, "failed", _PROVIDER),
    Code("provider_model_unavailable", ("run", "start-up"), "The provider does not have the model.",
         "Correct the model's name, or load it there.", None, "failed", _PROVIDER),
    # --- how runs end ---
    Code("cancelled", ("run",), "The run was cancelled; `details.reason` is `request` or `shutdown`.",
         "After `shutdown`, submit a continuation to the next server.", None, "cancelled", ("reason",)),
    Code("input_rejected", ("run",), "The input did not enter the conversation: no room, or nothing left of it.",
         "Shorten it, or fork an earlier revision.", None, "rejected"),
    Code("guardrail_blocked", ("run",), "A guardrail refused the input.", "Change the input.", None, "rejected"),
    Code("input_required", ("run",), "The run needed a person, and was submitted with `on_input: block`.",
         "Submit with `on_input: wait` and answer, or change the policy.", None, "blocked"),
    Code("policy_stop", ("run",), "A plugin stopped the run.", "The message has the plugin's reason.", None, "blocked"),
    Code("content_filter", ("run",), "The provider's content filter ended the answer.",
         "Change the input.", None, "failed", _PROVIDER),
    Code("context_exhausted", ("run",), "The conversation no longer fits the model's context.",
         "Fork an earlier revision, or use a model with more room.", None, "failed", _PROVIDER),
    Code("compaction_failed", ("run",), "The conversation could not be compacted.",
         "Fork an earlier revision.", None, "failed"),
    Code("max_steps", ("run",), "The run used its model calls up.",
         "Submit a continuation, or raise `max_steps`.", None, "failed"),
    Code("token_budget", ("run",), "The session used its tokens up.", "Raise `token_budget`.", None, "failed"),
    Code("command_failed", ("run",), "The slash command failed.", "The message says why.", None, "failed"),
    Code("persist_failed", ("run",), "The session could not be saved, in the middle of the run or at its end.",
         "Mend the disk. The journal has what the run did; the session is at its last checkpoint. "
         "`details.reason` is the store's code.", None, "failed", ("reason",)),
    Code("server_lost", ("run",), "The server that held the run is gone.",
         "Look at `persisted` and the journal, then submit a continuation under a new request id."),
)  # fmt: skip

CODES: dict[str, Code] = {code.name: code for code in _ALL}
