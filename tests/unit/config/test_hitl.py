"""Approvals: as a TOML table, as a feature of the homes and of an agent, and the secrets of a webhook."""

from __future__ import annotations

import pytest

from aura.config.resolve import secret_variables
from aura.config.spec import HeadlessSpec, HitlSpec, Secret, WebhookSpec
from tests.unit.config.home import Home
from tests.unit.config.toml_kit import TomlFolder

SERVER = "[mcp.servers.k8s]\ntransport = 'stdio'\ncmd = ['c']\n"
WEBHOOK = """
[hitl]
require_approval = ["restart_*", "K8s:delete_*"]
[hitl.route]
mode = "webhook"
url = "https://h/{{ env.PART }}?key=1"
headers = {Authorization = "Bearer {{ env.TOKEN }}", X-Home = "{{ env.HOME }}"}
headers_from_request = {X-User = "X-Forwarded-User"}
tool_headers_from_response = ["X-Approved-By"]
"""
ENVIRON = {"PART": "part-value", "TOKEN": "long-secret", "HOME": "/home/me"}
EXPECTED = HitlSpec(
    ("restart_*", "k8s:delete_*"),
    300_000,
    WebhookSpec(
        Secret("https://h/part-value?key=1"),
        (("authorization", Secret("Bearer long-secret")), ("x-home", Secret("/home/me"))),
        (("x-user", "x-forwarded-user"),),
        ("x-approved-by",),
        ("PART", "TOKEN"),
    ),
)


def test_every_key_of_a_webhook_is_read(folder: TomlFolder) -> None:
    folder.agent(rest=SERVER + WEBHOOK)
    assert folder.one(ENVIRON).hitl == EXPECTED


def test_the_same_keys_are_a_feature_of_the_homes(home: Home) -> None:
    home.write("config/mcp/k8s.yaml", "k8s: {command: c}\n")
    home.write(
        "config/features/hitl.yaml",
        "hitl:\n  require_approval: ['restart_*', 'K8s:delete_*']\n  route:\n    mode: webhook\n"
        "    url: https://h/${PART}?key=1\n    headers: {Authorization: 'Bearer ${TOKEN}', X-Home: '${HOME}'}\n"
        "    headers_from_request: {X-User: X-Forwarded-User}\n    tool_headers_from_response: [X-Approved-By]\n",
    )
    configuration = home.load(ENVIRON)
    assert configuration.agents["main"].hitl == EXPECTED
    assert configuration.shared.hitl == EXPECTED
    assert {"PART", "TOKEN"} <= secret_variables(configuration)
    assert "HOME" not in secret_variables(configuration)


@pytest.mark.parametrize(
    ("route", "timeout_ms"),
    [
        ("", 60_000),
        ('[hitl.route]\nmode = "conversational"', 60_000),
        ('[hitl.route]\nmode = "conversational"\ntimeout_secs = 5', 5_000),
        ('[hitl.route]\nmode = "webhook"\nurl = "https://h"', 300_000),
        ('[hitl.route]\nmode = "webhook"\nurl = "https://h"\ntimeout_secs = 7', 7_000),
    ],
)
def test_each_mode_has_its_time(folder: TomlFolder, route: str, timeout_ms: int) -> None:
    folder.agent(rest=f'[hitl]\nrequire_approval = ["a"]\n{route}')
    hitl = folder.one().hitl
    assert hitl is not None
    assert hitl.timeout_ms == timeout_ms
    assert (hitl.webhook is not None) == ("webhook" in route)


def test_without_keys_nothing_needs_approval(folder: TomlFolder, home: Home) -> None:
    folder.agent(rest="[hitl]")
    assert folder.one().hitl is None
    assert home.load().agents["main"].hitl is None


def test_an_agent_changes_approvals_of_the_homes_key_by_key(home: Home) -> None:
    home.write(
        "config/features/x.yaml",
        "hitl: {require_approval: [a, b], route: {mode: conversational, timeout_secs: 9}}\n"
        "headless: {policy: cancel, grace_ms: 100}\n",
    )
    home.agent("other", "features: {hitl: {require_approval: [c]}, headless: {grace_ms: 200}}")
    agents = home.load().agents
    assert agents["main"].hitl == HitlSpec(("a", "b"), 9_000)
    assert agents["other"].hitl == HitlSpec(("c",), 9_000)
    assert agents["main"].headless == HeadlessSpec("cancel", 100)
    assert agents["other"].headless == HeadlessSpec("cancel", 200)


def test_a_pattern_may_name_a_server_that_is_disabled(home: Home) -> None:
    home.write("config/mcp/k8s.yaml", "k8s: {command: c, disabled: true}\n")
    home.agent("main", "features: {hitl: {require_approval: ['k8s:*']}}")
    assert home.load().agents["main"].hitl == HitlSpec(("k8s:*",))


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        ("require_approval: ['k8s:a']", "hitl.require_approval", '"k8s:a" names no MCP server'),
        ("require_approval: ['Bash:rm*']", "hitl.require_approval", '"Bash:rm*" names no MCP server'),
        ("route: {url: 'https://h'}", "hitl.route.url", "the key features.hitl.route.mode is missing"),
        ("route: {mode: webhook}", "hitl.route.mode", "the key features.hitl.route.url is missing or empty"),
        ("route: {mode: webhook, url: '${NONE}'}", "hitl.route.url", "the variable NONE is not set"),
        ("route: {mode: webhook, url: '${PART}'}", "hitl.route.url", "the address begins with neither http"),
        ("route: {mode: webhook, url: 'https://h', headers: {Accept: x}}", "hitl.route.headers", "set by aura itself"),
        ("park: {enabled: true}", "hitl.park", "not supported yet"),
        ("x: 1", "hitl.x", "this key is unknown"),
    ],
)
def test_a_feature_is_refused_like_a_table(home: Home, keys: str, key: str, problem: str) -> None:
    path = home.write("config/features/x.yaml", f"hitl: {{{keys}}}\n")
    error = home.refusal(ENVIRON)
    assert error.message.startswith(f"{path}:1: {key}: ")
    assert problem in error.message
    assert "part-value" not in error.message


def test_a_feature_is_checked_even_without_agents(home: Home) -> None:
    (home.path / "config/agents/main.md").unlink()
    home.write("config/features/x.yaml", "hitl: {route: {mode: webhook}}\n")
    assert "route.url is missing" in home.refusal().message
