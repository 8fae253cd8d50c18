"""MCP server files: keys, names, variables, and that no secret of theirs is ever shown."""

from collections.abc import Callable

import pytest

from aura.config.resolve import secret_variables
from aura.config.spec import HttpTarget, McpServerSpec, StdioTarget
from tests.unit.config.home import Home

FILE = "config/mcp/servers.yaml"
ENVIRON = {"KEY": "a-very-secret-value", "ROOT": "/srv", "HOME": "/home/me"}


def load(home: Home, text: str) -> dict[str, McpServerSpec]:
    """The servers of a file."""
    home.write(FILE, text)
    return dict(home.load(ENVIRON).servers)


def test_a_stdio_server_is_the_default_and_needs_a_command_only(home: Home) -> None:
    spec = load(home, "Files: {command: server-files}\n")["files"]
    assert isinstance(spec.target, StdioTarget)
    assert (spec.target.command.reveal(), spec.target.args, spec.target.env) == ("server-files", (), ())
    assert (spec.timeout_ms, spec.required, spec.secrets, spec.secret_variables) == (10_000, False, (), ())


def test_variables_are_expanded_everywhere_and_remembered_as_secrets(home: Home) -> None:
    text = (
        "a: {command: '${ROOT}/bin/a', args: ['--root=${ROOT}', '', '$KEY'], env: {A: 'x ${KEY}', B: plain text},"
        " timeout: 20s, required: true}\n"
        "b: {type: http, url: 'https://example.test/${KEY}?q=${ROOT}', headers: {Authorization: 'Bearer ${KEY}',"
        " X-Home: '${HOME}'}}\n"
    )
    servers = load(home, text)
    first, second = servers["a"].target, servers["b"].target
    assert isinstance(first, StdioTarget)
    assert isinstance(second, HttpTarget)
    assert first.command.reveal() == "/srv/bin/a"
    assert [value.reveal() for value in first.args] == ["--root=/srv", "", "$KEY"]
    assert {name: value.reveal() for name, value in first.env} == {"A": "x a-very-secret-value", "B": "plain text"}
    assert (servers["a"].timeout_ms, servers["a"].required) == (20_000, True)
    assert {secret.reveal() for secret in servers["a"].secrets} == {
        "/srv",
        "a-very-secret-value",
        "x a-very-secret-value",
        "plain text",
    }
    assert second.url.reveal() == "https://example.test/a-very-secret-value?q=/srv"
    assert dict(second.headers)["Authorization"].reveal() == "Bearer a-very-secret-value"


def test_only_variables_that_headers_name_are_kept_from_other_processes(home: Home) -> None:
    load(home, "a: {type: http, url: 'http://a/${ROOT}', headers: {A: '${KEY}', B: '${HOME}'}}\n")
    variables = secret_variables(home.load(ENVIRON))
    assert "KEY" in variables
    assert not {"ROOT", "HOME"} & variables


def test_no_secret_is_shown_or_counted(home: Home) -> None:
    home.write(FILE, "a: {command: c, args: ['${KEY}'], env: {A: '${KEY}'}}\n")
    first, second = home.load(ENVIRON), home.load({"KEY": "something else"})
    assert "secret-value" not in repr(first)
    assert first.agents["main"].fingerprint == second.agents["main"].fingerprint
    without = home.write(FILE, "") and home.load(ENVIRON)
    assert without.agents["main"].fingerprint != first.agents["main"].fingerprint


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("a__b: {command: c}", "a__b: this is no name for an MCP server", "single underscores"),
        ("a_: {command: c}", "a_: this is no name for an MCP server", "single underscores"),
        ("a.b: {command: c}", "a.b: this is no name for an MCP server", "single underscores"),
        ("a: {args: [b]}", "a: the key command is missing or empty", "Name the program"),
        ("a: {type: http}", "a: the key url is missing", "Use an address"),
        ("a: {type: sse, url: 'http://a'}", 'a.type: found "sse"', "stdio, http"),
        ("a: {command: c, url: 'http://a'}", "a.url: this key is unknown", "Accepted here: args, command"),
        ("a: {type: http, url: 'http://a', env: {A: b}}", "a.env: this key is unknown", "headers"),
        ("a: {command: c, sandbox: true}", "a.sandbox: the sandbox is asked for", "Leave it out"),
        ("a: {command: c, deferred: true}", "a.deferred: deferred tools are not supported yet", "Leave it out"),
        ("a: {command: c, condition: x}", "a.condition: conditions are not supported yet", "Leave it out"),
        ("a: {command: c, timeout: 0}", "a.timeout: found 0", "a time from 1ms to 10m"),
        ("a: {command: c, args: [8080]}", "a.args: item 1 is a number", "a list of texts"),
        ("a: {command: c, args: x}", "a.args: found text", "a list of texts"),
        ("a: {command: c, env: {A: 8080}}", "a.env: at A: found a number, which is not text; put it in quotes", ""),
        ("a: {command: c, env: {1A: x}}", 'a.env: found the name "1A"', "a mapping from variables"),
        ("a: {command: c, env: [A=x]}", "a.env: found a list", "a mapping from variables"),
        ("a: {command: '${NO_SUCH}'}", "a.command: the variable NO_SUCH is not set", "disabled: true"),
        ("a: {type: http, url: 'ftp://${KEY}'}", "a.url: the address begins with neither", ""),
        ("a: {type: http, url: 'http://me:${KEY}@a'}", "a.url: the address holds a user name or password", ""),
        ('a: {type: http, url: "http://a", headers: {A: "${KEY}\\n"}}', "a.headers: a value holds characters", ""),
        ("a: {command: c}\nA: {command: d}", "A: ", "Rename one of the two."),
        ("- a", "found a list", "a mapping from names to MCP servers"),
    ],
)
def test_an_error_names_file_line_and_key_and_shows_no_secret(home: Home, text: str, problem: str, hint: str) -> None:
    path = home.write(FILE, text + "\n")
    error = home.refusal(ENVIRON)
    assert error.message.startswith(f"{path}:")
    assert problem in error.message
    assert hint in (error.hint or "")
    assert "secret-value" not in error.message + (error.hint or "")


def test_of_a_disabled_server_no_variable_is_looked_for(home: Home) -> None:
    assert load(home, "a: {command: '${NO_SUCH}', disabled: true}\nb: {command: c}\n").keys() == {"b"}


def test_the_later_home_replaces_a_server_whole(make_home: Callable[[str], Home]) -> None:
    from aura.config.homes import Homes
    from aura.config.resolve import load_configuration

    low, high = make_home("low"), make_home("high")
    low.write(FILE, "a: {command: low, args: [x]}\nb: {command: b}\n")
    high.write("config/mcp/other.yml", "A: {command: high}\nb: {command: b, disabled: true}\n")
    servers = load_configuration(Homes((low.path, high.path), high.path, high.path), {}).servers
    assert list(servers) == ["a"]
    target = servers["a"].target
    assert isinstance(target, StdioTarget)
    assert (target.command.reveal(), target.args) == ("high", ())


@pytest.mark.parametrize(
    ("features", "names"),
    [
        ("", ["files", "git-hub", "tickets"]),
        ("mcp: {enabled: ['git*', FILES]}", ["files", "git-hub"]),
        ("mcp: {disabled: ['*s']}", ["git-hub"]),
        ("mcp: {enabled: [files], disabled: ['*']}", []),
    ],
)
def test_features_say_which_servers_are_used(home: Home, features: str, names: list[str]) -> None:
    home.write(FILE, "tickets: {command: c}\nfiles: {command: c}\ngit-hub: {command: c}\n")
    home.write("config/features/x.yaml", features + "\n")
    assert [server.name for server in home.load().agents["main"].mcp] == names


def test_an_agents_own_features_win(home: Home) -> None:
    home.write(FILE, "a: {command: c}\nb: {command: c}\n")
    home.write("config/features/x.yaml", "mcp: {disabled: [a]}\n")
    home.agent("worker", "features: {mcp: {disabled: [b]}}")
    agents = home.load().agents
    assert [server.name for server in agents["main"].mcp] == ["b"]
    assert [server.name for server in agents["worker"].mcp] == ["a"]
