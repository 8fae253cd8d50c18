"""Which slash commands there are (engine.md 7.2). A new one is a function and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from aura.runtime.commands import conversation, reports, settings
from aura.runtime.commands.base import Command

# They would change which session is served (contract.md, HTTP API).
REJECTED: frozenset[str] = frozenset(("/resume", "/load", "/fork", "/name", "/clear", "/new", "/exit", "/quit"))
# Known and not there yet: a custom command of such a name would change its meaning with the next version.
LATER: frozenset[str] = frozenset(("/mode", "/compact", "/until", "/assert"))

COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command("/agent", "[name]", "List the agents, or go on with another one.", settings.agent, 1),
        Command("/auto", "[on|off]", "Ask nobody, and go on while todos are left.", settings.auto, 1),
        Command("/ctx", "", "Show how full the context is.", reports.ctx, aliases=("/context",)),
        Command("/done", "[on|off]", "Give the agent the tool Done, which ends its turn.", settings.done, 1),
        Command("/drop", "[n|all]", "Drop the last messages.", conversation.drop, 1, ("/remove",)),
        Command("/export", "[format] [path]", "Show the conversation, or write it to a file.", conversation.export, 2),
        Command("/help", "[command]", "List the commands, or explain one.", reports.help_, 1),
        Command(
            "/mcp",
            "[list | reconnect [server]]",
            "List the tools of MCP servers, or reconnect.",
            reports.mcp,
            2,
        ),
        Command("/model", "[[provider/]model]", "List the models, or go on with another one.", settings.model, 1),
        Command("/policy", "", "Show which calls run, ask or are denied.", reports.policy),
        Command(
            "/readbefore",
            "[write|all on|off]",
            "Show or set whether a file must be read first.",
            settings.readbefore,
            2,
            ("/rb",),
        ),
        Command("/reload", "", "Read the configuration again.", settings.reload),
        Command("/save", "[title]", "Save the session, with a new title if one is given.", conversation.save, None),
        Command("/set", "key=value ...", "Change several settings at once.", settings.set_, None),
        Command("/stats", "", "Count messages, calls and tokens of the session.", reports.stats),
        Command(
            "/think",
            "[off|on|low|medium|high]",
            "Show or set how much the model thinks.",
            settings.think,
            1,
            ("/effort",),
        ),
        Command("/todo", "", "Show the todo list.", reports.todo),
        Command("/tools", "[debug]", "List the tools that the agent has.", reports.tools, 1),
    )
}


def find_command(name: str) -> Command | None:
    """Return the command of that name or alias, both with the slash and in lower case."""
    found = COMMANDS.get(name)
    return found or next((command for command in COMMANDS.values() if name in command.aliases), None)
