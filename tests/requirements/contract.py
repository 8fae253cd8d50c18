"""The testable statements of the automation contract, in its order and in our own words.

A statement without a gap is shown by the tests that name its id; a gap says why nothing shows it. It checks nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One statement. `gap` is the reason why no test shows it, None where tests do."""

    id: str
    statement: str
    gap: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """The statements of one part of the contract."""

    title: str
    requirements: tuple[Requirement, ...]


SECTIONS = (
    Section(
        "Process model",
        (
            Requirement(
                "process.one-session",
                "A server has one live session; a second server on it is refused, other sessions have their own.",
            ),
            Requirement("process.no-switching", "Commands that would move the server to another session are refused."),
            Requirement(
                "process.same-engine.run",
                "`aura run` works on a session exactly as a server does: same events, same store.",
            ),
            Requirement(
                "process.same-engine.interactive",
                "The terminal interface and `aura web` use that same path too.",
                gap="neither interface is built yet",
            ),
            Requirement("process.offline-commands", "Store operations run without a server and load no engine."),
            Requirement(
                "process.prompts-in-bodies", "Prompts are sent in request bodies; no process argument holds one."
            ),
            Requirement(
                "process.survives-controllers",
                "Everything that was acknowledged is there again after kills at any moment.",
            ),
        ),
    ),
    Section(
        "Session store",
        (
            Requirement(
                "store.location",
                "The store lies in `sessions` of the write home, which is the last `--config` directory.",
            ),
            Requirement("store.location.home", "Without any `--config` the write home is the `--home` directory."),
            Requirement(
                "store.atomic-writes",
                "A reader finds the old content or the new one, never a part, whenever the writer dies.",
            ),
            Requirement(
                "store.atomic-writes.files", "Exported files are completed beside their target before they replace it."
            ),
            Requirement("store.atomic-writes.failure", "A write that fails is reported and leaves what was stored."),
            Requirement(
                "store.atomic-writes.windows",
                "On Windows files are replaced by a write-through move.",
                gap="Windows is not supported; the package says POSIX only",
            ),
            Requirement(
                "store.revision", "A revision is the SHA-256 of the session's canonical bytes, as they are exported."
            ),
            Requirement(
                "store.lease.exclusive", "At most one process holds a session; another one gets `session_locked`."
            ),
            Requirement(
                "store.lease.released", "The lease is free as soon as its process has ended, however it ended."
            ),
            Requirement(
                "store.frozen.irreversible", "Nothing makes a frozen session writable again, plain SQL included."
            ),
            Requirement("store.frozen.readable", "A frozen session is shown, exported and forked like any other."),
            Requirement("store.frozen.resume", "Resuming a frozen session fails with `session_frozen`."),
            Requirement("store.frozen.save", "Saving a frozen session fails with `session_frozen`."),
            Requirement("store.lineage", "A fork records the id of its parent and the exact revision that it copied."),
            Requirement(
                "store.lineage.parent-untouched", "Forking only reads the parent, also one that a server holds."
            ),
            Requirement(
                "store.checkpoints.iteration", "The session is saved after the tool results of every model call."
            ),
            Requirement("store.checkpoints.turn", "It is saved when a turn ends, whatever its outcome."),
            Requirement("store.checkpoints.command", "It is saved after a slash command."),
            Requirement("store.checkpoints.shutdown", "It is saved when the server stops."),
            Requirement("store.checkpoints.unchanged", "Content that has not changed is not stored again."),
            Requirement("store.checkpoints.pairs", "In stored history every call has its result."),
        ),
    ),
    Section(
        "Session commands",
        (
            Requirement(
                "session.json.success",
                "With `--json` a command that succeeds writes one JSON object to standard output.",
            ),
            Requirement(
                "session.json.failure", "With `--json` a failure is an error object on standard error and exit code 1."
            ),
            Requirement(
                "session.summary",
                "A summary has exactly the documented keys, and counts the messages that are not system messages.",
            ),
            Requirement("session.list", "`list` answers all summaries and the warnings."),
            Requirement("session.show", "`show` answers the summary of one session."),
            Requirement(
                "session.import",
                "`import` answers the summary, whether it was created or frozen now, and the digest of the input file.",
            ),
            Requirement("session.export", "`export` answers the summary, the path, the digest and whether it wrote."),
            Requirement("session.fork", "`fork` answers child, parent and whether the child was created."),
            Requirement("session.freeze", "`freeze` answers the summary and whether it changed anything."),
            Requirement(
                "session.fork.idempotent",
                "The same fork of the same revision returns the stored child and creates nothing.",
            ),
            Requirement(
                "session.fork.exists", "Any other session under the child's id makes the fork fail with `exists`."
            ),
            Requirement(
                "session.fork.history",
                "The child's history is the parent's, and a fork that could not guarantee it fails.",
            ),
            Requirement(
                "session.fork.expect-revision",
                "`--expect-revision` refuses a parent with another revision: `revision_mismatch`.",
            ),
            Requirement("session.import.created", "Importing to an id that is free stores the document."),
            Requirement(
                "session.import.idempotent",
                "Importing the same conversation again creates nothing; times, freezing and lineage do not count.",
            ),
            Requirement("session.import.freeze", "`--freeze` freezes what is stored, now or already, and says which."),
            Requirement("session.import.exists", "Another conversation under the id is `exists`."),
            Requirement(
                "session.import.source-digest",
                "`source_sha256` is the digest of the file as it was read, whatever bytes are stored.",
            ),
            Requirement("session.export.verbatim", "The exported bytes are the stored ones."),
            Requirement(
                "session.export.identical", "A target with the same bytes is left alone and `written` is false."
            ),
            Requirement("session.export.exists", "A target with other bytes is kept, with `exists`."),
            Requirement("session.freeze.idempotent", "Freezing twice changes nothing the second time."),
            Requirement("session.freeze.expect-revision", "`--expect-revision` refuses to freeze another revision."),
            Requirement("session.codes", "Each code of the offline commands is met where it belongs."),
        ),
    ),
    Section(
        "Starting a server",
        (
            Requirement(
                "serve.output.transcript",
                "`--output` records a plain-text transcript of the session, thinking included.",
            ),
            Requirement("serve.output.truncated", "The transcript begins empty with every process."),
            Requirement(
                "serve.token.required", "A token that is missing or shorter than 32 characters is `unauthorized`."
            ),
            Requirement("serve.token.hidden", "No child sees the token, and it is written nowhere."),
            Requirement(
                "serve.fresh-session",
                "Without `--resume` a session with a UUID is made and saved before the server is ready.",
            ),
            Requirement(
                "serve.ready-file.content", "The ready file has exactly the documented keys, with true values."
            ),
            Requirement("serve.ready-file.mode", "It is readable by its owner only."),
            Requirement("serve.ready-file.atomic", "It appears whole, and an older one is gone before."),
            Requirement(
                "serve.ready-file.windows",
                "On Windows it inherits the rights of its directory.",
                gap="Windows is not supported; the package says POSIX only",
            ),
            Requirement(
                "serve.ready-file.after-session",
                "It appears after the session was resumed or made, saved, and its journal recovered.",
            ),
            Requirement("serve.ready-file.after-mcp", "It appears after every required MCP server is connected."),
            Requirement("serve.ready-file.after-listener", "The address in it answers at once."),
            Requirement(
                "serve.failure.document", "A start that fails exits 1 and leaves an error document in the ready file."
            ),
            Requirement("serve.failure.unauthorized", "Start-up code `unauthorized`: the token."),
            Requirement(
                "serve.failure.session",
                "Start-up codes `session_frozen`, `session_locked`, `not_found`, `invalid_id`: the session to resume.",
            ),
            Requirement(
                "serve.failure.resume-failed",
                "Start-up code `resume_failed`: the session cannot be continued with this configuration.",
            ),
            Requirement("serve.failure.mcp-unavailable", "Start-up code `mcp_unavailable`: a required MCP server."),
            Requirement("serve.failure.config-invalid", "Start-up code `config_invalid`: the configuration."),
            Requirement("serve.failure.launcher-lost", "Start-up code `launcher_lost`: the launcher ended first."),
            Requirement(
                "serve.failure.startup-failed", "Start-up code `startup_failed`: address, store, or anything else."
            ),
            Requirement(
                "serve.failure.provider",
                "A provider that fails while a model is restored gives its own code, with details and `retryable`.",
            ),
            Requirement("serve.no-early-contact", "Nothing else contacts the provider before the first run."),
            Requirement("serve.launcher.inheritance", "The launcher's descriptor is passed to no child."),
            Requirement("serve.launcher.release", "One byte lets the server outlive its launcher."),
            Requirement("serve.launcher.lost-early", "End of file during the start is reported in the ready file."),
            Requirement(
                "serve.launcher.lost-late", "End of file after readiness is a graceful stop with its own reason."
            ),
        ),
    ),
    Section(
        "Stopping a server",
        (
            Requirement("serve.stop.ways", "SIGINT, SIGTERM and the request each stop the server, which exits 0."),
            Requirement("serve.stop.refuses-runs", "On the way down new runs are refused with `shutting_down`."),
            Requirement("serve.stop.cancels", "The run at work is cancelled with reason `shutdown`, and settles."),
            Requirement(
                "serve.stop.settle-bound",
                "A run has 60 s to settle unless told otherwise; then the server ends without it.",
            ),
            Requirement("serve.stop.exit-code", "A stop whose final save failed exits 1."),
            Requirement(
                "serve.stop.unsettled-is-lost", "A run that did not settle is reported as lost by the next server."
            ),
            Requirement(
                "serve.stop.approvals-denied",
                "Approvals that are pending are denied; nothing is approved without a controller.",
            ),
            Requirement("serve.stop.questions-dismissed", "Questions that are pending are dismissed."),
        ),
    ),
    Section(
        "HTTP",
        (
            Requirement("http.auth", "Every request needs the bearer token."),
            Requirement("http.json-bodies", "Bodies are JSON objects."),
            Requirement("http.unknown-fields", "A field that is not known is refused."),
            Requirement("http.error-shape", "Every error answer has code, message, retryable and details."),
            Requirement("http.server", "`GET /v1/server` describes the process."),
            Requirement(
                "http.session", "`GET /v1/session` has the stored summary with its seq, and the live meta and status."
            ),
            Requirement("http.messages", "`GET /v1/session/messages` pages by index and tells the total."),
            Requirement("http.messages.thinking", "Thinking is in messages only where it is asked for."),
            Requirement(
                "http.runs.submit",
                "`POST /v1/runs` takes a prompt or a command and answers 202, a repeat 200 with its header.",
            ),
            Requirement("http.runs.on-input-default", "`on_input` is `block` unless it is given."),
            Requirement("http.runs.get", "A run is found by its id and by its request id."),
            Requirement("http.runs.cancel", "A cancel answers 202 with the record."),
            Requirement(
                "http.runs.inputs", "An answer or an action to a pending input answers 200 with an empty object."
            ),
            Requirement("http.journal", "`GET /v1/journal` pages events after a seq and tells the last one."),
            Requirement("http.journal.bounds", "`limit` and `wait` are held to their ranges."),
            Requirement("http.events", "`GET /v1/events` is an event stream with the documented parameters."),
            Requirement("http.shutdown", "`POST /v1/shutdown` answers 202 with an empty object."),
            Requirement("http.errors.bad-request", "What cannot be used is 400 `bad_request`."),
            Requirement("http.errors.unauthorized", "A wrong token is 401 `unauthorized`."),
            Requirement("http.errors.not-found", "What is not there is 404 `not_found`."),
            Requirement("http.errors.busy", "A run beside an unsettled one is 409 `busy`."),
            Requirement("http.errors.request-conflict", "A request id with another body is 409 `request_conflict`."),
            Requirement(
                "http.errors.cursor-out-of-range", "A cursor below 0 or beyond the end is 409 and tells the last seq."
            ),
            Requirement("http.errors.not-pending", "An input that is settled is 409 `not_pending`."),
            Requirement("http.errors.shutting-down", "A run for a server on its way down is 503 `shutting_down`."),
            Requirement("http.prompt-with-slash", "A prompt is a user message even when it begins with a slash."),
            Requirement("http.command.known", "A command begins with a slash and is a known one."),
            Requirement("http.command.refused", "Commands that change the served session are `bad_request`."),
        ),
    ),
    Section(
        "Runs",
        (
            Requirement("runs.record", "A run record has exactly the documented keys and values."),
            Requirement("runs.record.terminal", "`terminal` is true in the three settled states only."),
            Requirement(
                "runs.record.error",
                "`error` is null exactly where the outcome is null or completed, but for a run lost unfinished.",
            ),
            Requirement("runs.record.result", "`result` is the last assistant text, or the output of the command."),
            Requirement("runs.record.stats", "`stats` counts model calls, tool calls by name, and tool errors."),
            Requirement(
                "runs.error-shape", "An error has a code, a message, `retryable`, and the details that its code has."
            ),
            Requirement("runs.state-machine", "A run takes the documented transitions and no others."),
            Requirement("runs.state-machine.short", "Rejected inputs and commands finish without having started."),
            Requirement("runs.state-machine.lost", "Any run that has not settled is lost when the next server starts."),
            Requirement(
                "runs.persisted.after-save",
                "`persisted` is set by a save that succeeded, and names the revision that is stored.",
            ),
            Requirement("runs.persisted.in-flight", "While a run is at work, `persisted` is its latest checkpoint."),
            Requirement(
                "runs.persist-failed", "A failed last save settles the run as `persist_failed`, keeping its outcome."
            ),
            Requirement(
                "runs.lost.unfinished", "A run lost before its end has no outcome and the error `server_lost`."
            ),
            Requirement("runs.lost.finished", "A run lost after its end keeps its outcome and has a persist error."),
            Requirement("runs.lost.persisted", "A lost run's `persisted` is the session as the next server found it."),
            Requirement("runs.rejected.no-message", "A rejected run adds no message."),
            Requirement("runs.outcome.completed", "An answer without calls completes the run."),
            Requirement("runs.outcome.cancelled", "A cancelled run says whether it was by request or by shutdown."),
            Requirement("runs.outcome.input-rejected", "`input_rejected`: no room in the context, or an empty prompt."),
            Requirement(
                "runs.outcome.input-rejected.directives",
                "`input_rejected`: nothing is left of the prompt after its directives.",
                gap="directives in prompts are not built yet",
            ),
            Requirement(
                "runs.outcome.guardrail-blocked",
                "`guardrail_blocked`: the guardrail refused the prompt.",
                gap="the guardrail has no engine yet",
            ),
            Requirement("runs.outcome.input-required", "`input_required`: a question or an approval under `block`."),
            Requirement(
                "runs.outcome.policy-stop",
                "`policy_stop`: a plugin stopped the run.",
                gap="plugins have no engine yet; the tool pipeline's seam for it has a unit test",
            ),
            Requirement("runs.outcome.provider-codes", "The provider codes are reached by their failures."),
            Requirement(
                "runs.outcome.provider-network", "`provider_network`: the provider cannot be reached or breaks off."
            ),
            Requirement("runs.outcome.content-filter", "`content_filter`: the provider filtered the answer."),
            Requirement("runs.outcome.context-exhausted", "`context_exhausted`: the conversation does not fit."),
            Requirement(
                "runs.outcome.compaction-failed",
                "`compaction_failed`: making room failed.",
                gap="compaction is not built yet",
            ),
            Requirement("runs.outcome.max-steps", "`max_steps`: the run used all its model calls."),
            Requirement("runs.outcome.token-budget", "`token_budget`: the run used all its tokens."),
            Requirement("runs.outcome.command-failed", "`command_failed`: a command failed."),
            Requirement(
                "runs.outcome.persist-failed", "`persist_failed`: a checkpoint failed in the middle of the run."
            ),
            Requirement("runs.outcome.internal", "`internal`: a fault that no other code names."),
            Requirement("runs.retryable", "Only the network, server and rate-limit codes of providers are retryable."),
            Requirement(
                "runs.provider.details",
                "A provider's status, message and retry hint reach the controller, with the type of the provider.",
            ),
            Requirement("runs.provider.status", "Failures are classified by the HTTP status alone."),
            Requirement(
                "runs.provider.native-endpoints",
                "The metadata endpoints of llama servers are classified as inference is.",
            ),
            Requirement(
                "runs.provider.tokenization",
                "So are their tokenization endpoints.",
                gap="tokenization is not asked for: tokens are estimated, or read from usage",
            ),
            Requirement(
                "runs.provider.message",
                "The message is the server's own, or a bounded excerpt of a page that is not JSON.",
            ),
            Requirement("runs.provider.unreachable", "A server that cannot be reached is `provider_network`."),
            Requirement(
                "runs.provider.unexpected-success",
                "A success with a foreign body is quoted and not taken for wrong credentials.",
            ),
            Requirement(
                "runs.provider.context-error", "The structured overflow error of llama.cpp is `context_exhausted`."
            ),
            Requirement(
                "runs.provider.context-recovery",
                "An overflow is first answered by compaction.",
                gap="compaction is not built yet",
            ),
            Requirement(
                "runs.idempotency",
                "A request id is unique in its session, over restarts; a repeat returns the record and runs nothing.",
            ),
            Requirement(
                "runs.idempotency.conflict", "The same id with another kind, text or `on_input` is a conflict."
            ),
            Requirement("runs.idempotency.per-session", "Another session may use the same request id."),
            Requirement("runs.recovery", "After a lost run a new request goes on with the session."),
            Requirement("runs.cancel.journaled", "A cancel is recorded once and passed on."),
            Requirement("runs.cancel.authoritative", "The terminal record says whether the cancel took effect."),
            Requirement("runs.cancel.too-late", "A cancel that came too late leaves the natural outcome."),
            Requirement("runs.cancel.results", "Calls in flight get error results, and the run is saved and settles."),
            Requirement("runs.cancel.settled", "Cancelling a settled run returns it as it is."),
        ),
    ),
    Section(
        "Questions and approvals",
        (
            Requirement("inputs.block", "Under `block` a question or an approval ends the run and nothing waits."),
            Requirement("inputs.wait", "Under `wait` the question is journaled and the run goes on with the answer."),
            Requirement("inputs.answers", "An answer may be a label or the number of an option."),
        ),
    ),
    Section(
        "Journal",
        (
            Requirement(
                "journal.file",
                "A JSON-lines file holds a session's events beside the store.",
                gap="the events are rows of the database (interfaces.md 7); `aura journal export` is not built yet",
            ),
            Requirement("journal.line", "An event has exactly the documented envelope."),
            Requirement("journal.contiguous", "`seq` starts at 1 and has no hole, over restarts too."),
            Requirement("journal.run-id", "`run_id` is null outside runs and set inside."),
            Requirement("journal.durable", "An event that was served is never lost."),
            Requirement(
                "journal.torn-line",
                "A torn last line is cut off with a notice.",
                gap="comes with `aura journal import`; the database has no torn line",
            ),
            Requirement(
                "journal.invalid-line",
                "Any other invalid line is a hard error.",
                gap="comes with `aura journal import`",
            ),
            Requirement("journal.no-thinking", "No event holds thinking."),
            Requirement("journal.forks", "A fork begins with a journal of its own."),
            Requirement("journal.slow-readers", "A reader that is slow loses nothing and holds up nobody."),
        ),
    ),
    Section(
        "Event types",
        (
            Requirement("events.closed-set", "The durable types are the documented ones, each with exactly its keys."),
            Requirement(
                "events.server.started", "`server.started` tells pid, version and the revision that was resumed."
            ),
            Requirement("events.server.stopping", "`server.stopping` tells the reason."),
            Requirement("events.run", "The events of a run's transitions hold the record after them."),
            Requirement(
                "events.run.started", "`run.started` names the message by which the input entered the conversation."
            ),
            Requirement(
                "events.message",
                "The message events have their ids, contents and calls; one assistant event for each model call.",
            ),
            Requirement(
                "events.tool", "The tool events have the call, its status and the result that entered the conversation."
            ),
            Requirement("events.notice.warnings", "Warnings are notices with level, source and message."),
            Requirement(
                "events.notice.plugins",
                "Injections of plugins and a failover are notices.",
                gap="plugins and failover are not built yet",
            ),
            Requirement("events.status", "`status` comes only when it has changed."),
            Requirement("events.input.required", "`input.required` has everything that an answer needs."),
            Requirement("events.input.resolved", "`input.resolved` tells the answer."),
            Requirement("events.command.result", "`command.result` tells a command's message or error."),
            Requirement(
                "events.session.persisted",
                "`session.persisted` tells revision, count, reason and whether anything changed.",
            ),
            Requirement("events.session.persist-failed", "`session.persist_failed` tells the error and the reason."),
            Requirement("events.order", "The events of a prompt run come in the documented order."),
        ),
    ),
    Section(
        "Streaming",
        (
            Requirement("longpoll.wait", "A long poll answers with the commit, or empty when its time is over."),
            Requirement("longpoll.stop", "A long poll ends with the server."),
            Requirement("sse.same-events", "The stream carries the journal's events, byte for byte, with id and type."),
            Requirement("sse.replay", "It replays from `after` and then follows."),
            Requirement("sse.last-event-id", "It replays from `Last-Event-ID`."),
            Requirement("sse.last-event-id-wins", "Where both cursors are given, the header counts."),
            Requirement("sse.heartbeat", "A quiet stream beats every `heartbeat` seconds, 15 unless told otherwise."),
            Requirement("sse.heartbeat.bounds", "`heartbeat` is held to 1 to 60."),
            Requirement("sse.transient.opt-in", "Live events come only with `transient=true`, and have no id."),
            Requirement("sse.transient.content", "`delta.content` has the message's id and a piece of its text."),
            Requirement("sse.transient.thinking", "`delta.thinking` comes only with `thinking=true` as well."),
            Requirement("sse.transient.tool-output", "`tool.output` has the tool's name and a line."),
            Requirement("sse.transient.spinner", "`spinner` has a text."),
            Requirement(
                "sse.transient.superseded",
                "Live events may be dropped, and none follows the durable event that replaces it.",
            ),
            Requirement("sse.transient.sticky-id", "A client tells live events by their type."),
        ),
    ),
    Section(
        "MCP servers",
        (
            Requirement(
                "mcp.required",
                "A required server that fails to start, initialise or list stops the start with `mcp_unavailable`.",
            ),
            Requirement("mcp.required.every-path", "That holds for `aura run` and for a reload as well."),
            Requirement(
                "mcp.sandbox",
                "`sandbox: true` confines a stdio server.",
                gap="there is no sandbox yet; the setting is refused with `config_invalid`",
            ),
            Requirement("mcp.is-error", "A result marked as an error is a tool error with its text."),
            Requirement("mcp.cancelled", "Cancelling a run tells the server that its call is cancelled."),
        ),
    ),
    Section(
        "Python client",
        (
            Requirement("client.strict", "An answer that does not fit its model is an error."),
            Requirement("client.wheel", "The client is a wheel of its own, and the contract's example works with it."),
            Requirement("client.store", "The offline commands are methods of the store."),
            Requirement(
                "client.wait.exactly-once",
                "`wait` shows every durable event once and in order, over cut connections and restarts.",
            ),
            Requirement("client.wait.stop", "`stop` ends a wait within its poll interval and cancels nothing."),
            Requirement("client.wait.terminal", "`wait` returns the terminal record."),
            Requirement("client.attach", "`attach` finds a running server again."),
            Requirement("client.launch.lease", "`launch` always ties the server to its launcher until it is released."),
            Requirement("client.launch.hold", "With `hold` the server is released only when the caller says so."),
            Requirement("client.launch.no-hold", "Without it the server is released before `launch` returns."),
            Requirement("client.end-to-end", "The client is tested against the real program with the script provider."),
        ),
    ),
    Section(
        "`aura web`",
        (
            Requirement(
                "web.endpoints",
                "`aura web` has its UI endpoints, without the guarantees of `aura serve`.",
                gap="`aura web` is not built yet",
            ),
        ),
    ),
)

REQUIREMENTS = tuple(requirement for section in SECTIONS for requirement in section.requirements)
