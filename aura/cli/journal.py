"""`aura journal`: the table of its commands, which are imported when they are invoked."""

from __future__ import annotations

from collections.abc import Mapping

from aura.cli.lazy import LazyCommand, LazyGroup

COMMANDS: Mapping[str, LazyCommand] = {
    "export": LazyCommand("aura.cli.journal_verbs:export_command", "Write a journal as JSON lines."),
    "import": LazyCommand("aura.cli.journal_verbs:import_command", "Store a journal in a session that has none."),
    "tail": LazyCommand("aura.cli.journal_tail:command", "Print the last events, and follow."),
    "verify": LazyCommand("aura.cli.journal_verify:command", "Prove that nothing was changed, removed or inserted."),
    "stats": LazyCommand("aura.cli.journal_verbs:stats_command", "Count a journal's events by type and by run."),
}

command = LazyGroup(
    "journal",
    commands=COMMANDS,
    help="Journals of stored sessions: export, import, tail, verify, stats. No server is needed.",
)
