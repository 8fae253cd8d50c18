"""Commands that only look."""

from __future__ import annotations

from dataclasses import replace

from aura.engine.tools.base import ToolSpec
from aura.runtime.agents import Candidate
from aura.runtime.commands.table import COMMANDS
from tests.support.command_kit import Desk, answer, result, user


def test_help_names_every_command_and_the_custom_ones(desk: Desk) -> None:
    desk.command("Review", "x", description="Looks at a file", hints="FILE")
    desk.command("help", "x", description="never seen")
    text = desk.ok("/help")
    for command in COMMANDS.values():
        assert f"{command.usage}  " in text
    assert "/Review FILE" in text
    assert "never seen" not in text


def test_help_explains_one_command(desk: Desk) -> None:
    desk.command("Review", "x", description="Looks at a file", hints="FILE")
    assert desk.ok("/help drop") == "/drop [n|all]\nDrop the last messages.\nalso: /remove"
    assert desk.ok("/help /REMOVE") == desk.ok("/help drop")
    assert desk.ok("/help review") == "/Review FILE\nLooks at a file"
    assert "not a command" in desk.fails("/help nothing")


def test_tools_are_those_that_the_agent_may_use(desk: Desk) -> None:
    desk.agent("main", default=True, tools={"enabled": ["Read", "Ls"]})
    assert [line.split()[0] for line in desk.ok("/tools").splitlines()] == ["Read", "Ls"]
    debug = desk.ok("/tools debug")
    assert '"line_start"' in debug
    assert "disabled: Write, Edit" in debug
    assert "usage: /tools" in desk.fails("/tools all")


def test_the_policy_shows_patterns_and_approvals(desk: Desk) -> None:
    desk.agent("main", default=True, tools={"policy": {"confirm": ["Bash"], "deny": ["Bash:sudo *"]}})
    desk.history.meta["session_approvals"] = {"Bash:git *": True, "Bash:rm*": False}
    lines = desk.ok("/policy").splitlines()
    assert lines == ["auto: -", "confirm: Bash", "deny: Bash:sudo *", "approved: Bash:git *"]
    desk.ok("/auto on")
    assert "auto mode is on" in desk.ok("/policy")


def test_todos_are_shown(desk: Desk) -> None:
    assert desk.ok("/todo") == "There are no todos."
    desk.history.todos = {"items": [{"content": "write", "status": "in_progress"}]}
    assert "1. [in_progress] write" in desk.ok("/todo")


def test_stats_count_messages_calls_and_tokens(desk: Desk) -> None:
    desk.say(user("a"), answer("", "Ls", "Read"), result("Ls"), result("Read"), answer("b"))
    desk.history.meta["cumulative_usage"] = {"input": 7, "output": 5}
    assert desk.ok("/stats").splitlines() == [
        "messages: 5",
        "tool calls: 2 (Ls 1, Read 1)",
        "input tokens: 7",
        "output tokens: 5",
    ]


def test_the_context_is_unknown_until_it_was_counted(desk: Desk) -> None:
    assert "not known" in desk.ok("/ctx")
    desk.current.agent.gauge.used, desk.current.agent.gauge.window = 250, 1000
    assert desk.ok("/context").splitlines()[:2] == ["window: 1000 tokens", "used: 250 tokens (25%)"]


def test_mcp_groups_tools_by_their_server(desk: Desk) -> None:
    assert desk.ok("/mcp") == desk.ok("/mcp list") == "no MCP servers"
    agent = desk.current.agent
    named = [ToolSpec(name, "d", {}) for name in ("mcp__files__read", "mcp__files__stat_all", "mcp__web__get", "Ls")]
    tools = tuple(_Tool(spec) for spec in named)
    mcp = replace(agent, toolbox=replace(agent.toolbox, tools=tools))
    desk.current.take(Candidate(desk.current.selection, mcp))
    assert desk.ok("/mcp").splitlines() == ["files: read, stat_all", "web: get"]
    assert desk.fails("/mcp reconnect other") == "there is no MCP server named other; the agent's: none"
    assert desk.fails("/mcp again") == "usage: /mcp [list | reconnect [server]]"
    assert desk.ok("/mcp reconnect") == "no MCP servers"


class _Tool:
    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    def run(self, arguments: object, context: object) -> str:
        return ""
