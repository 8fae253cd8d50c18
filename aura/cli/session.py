"""`aura session`: the table of its commands, which are imported when they are invoked (contract.md, `aura session`)."""

from __future__ import annotations

from collections.abc import Mapping

from aura.cli.lazy import LazyCommand, LazyGroup

COMMANDS: Mapping[str, LazyCommand] = {
    "list": LazyCommand("aura.cli.session_list:command", "List all sessions, the most recently updated first."),
    "show": LazyCommand("aura.cli.session_verbs:show_command", "Show one session."),
    "messages": LazyCommand("aura.cli.session_messages:command", "Print a conversation for reading."),
    "log": LazyCommand("aura.cli.session_log:command", "List a session's revisions and what each changed."),
    "diff": LazyCommand("aura.cli.session_diff:command", "Show what changed between two revisions."),
    "import": LazyCommand(
        "aura.cli.session_import:command", "Store session documents, and conversations of other programs."
    ),
    "export": LazyCommand(
        "aura.cli.session_export:command", "Write sessions to files, also in formats of other programs."
    ),
    "fork": LazyCommand("aura.cli.session_verbs:fork_command", "Make a new session from another one."),
    "freeze": LazyCommand("aura.cli.session_verbs:freeze_command", "Freeze a session for ever."),
}

command = LazyGroup(
    "session",
    commands=COMMANDS,
    help="Stored sessions: list, read, compare, import, export, fork, freeze. No server is needed.",
)
