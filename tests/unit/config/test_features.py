"""Feature files, their layers, and the sandbox switch."""

from collections.abc import Callable

import pytest

from aura.config.homes import Homes
from aura.config.resolve import load_configuration
from tests.unit.config.home import Home


def test_features_of_the_home_hold_for_every_agent(home: Home) -> None:
    home.write("config/features/tools.yaml", "tools: {max_steps: 7, bash: {truncation: {max_lines: 9}}}\n")
    tools = home.load().agents["main"].tools
    assert (tools.max_steps, tools.bash.max_lines, tools.bash.head_lines) == (7, 9, 100)


def test_an_agents_features_win_key_by_key(home: Home) -> None:
    home.write(
        "config/features/tools.yaml", "tools: {max_steps: 7, token_budget: 5, policy: {deny: [A], confirm: [B]}}\n"
    )
    home.agent("main", "features: {tools: {max_steps: 8, policy: {deny: [C]}}}\ntools: {policy: {deny: [D, C]}}")
    tools = home.load().agents["main"].tools
    assert (tools.max_steps, tools.token_budget) == (8, 5)
    assert tools.policy.deny == ("C", "D")
    assert tools.policy.confirm == ("B",)


def test_files_and_homes_are_laid_over_one_another(make_home: Callable[[str], Home]) -> None:
    low, high = make_home("low"), make_home("high")
    low.write("config/features/a.yaml", "tools: {max_steps: 1, token_budget: 1, parallel: false}\n")
    low.write("config/features/b.yml", "tools: {max_steps: 2}\n")
    high.write("config/features/a.yaml", "tools: {token_budget: 3}\n")
    homes = Homes((low.path, high.path), high.path, high.path)
    tools = load_configuration(homes, {}).agents["main"].tools
    assert (tools.max_steps, tools.token_budget, tools.parallel) == (2, 3, False)


def test_an_error_in_a_feature_file_names_it(home: Home) -> None:
    path = home.write("config/features/tools.yaml", "tools:\n  max_stepz: 7\n")
    error = home.refusal()
    assert error.message == f"{path}:2: tools.max_stepz: this key is unknown"
    assert (error.hint or "").startswith("Did you mean max_steps? Accepted here: bash, max_steps,")


@pytest.mark.parametrize("section", ["compaction", "title", "guardrail", "subagent", "plugins", "estimation"])
def test_sections_of_a_later_version_are_not_supported_yet(home: Home, section: str) -> None:
    path = home.write("config/features/x.yaml", f"{section}: {{a: 1}}\n")
    error = home.refusal()
    assert error.message.startswith(f"{path}:1: {section}: ")
    assert "not supported yet" in error.message
    assert error.hint == "Leave it out; supported here: headless, hitl, mcp, mirror, sandbox, tools."


@pytest.mark.parametrize("folder", ["sandbox", "features"])
def test_a_sandbox_that_is_asked_for_stops_the_start(home: Home, folder: str) -> None:
    path = home.write(f"config/{folder}/base.yaml", "sandbox:\n  enabled: true\n  restrictions: {ro: [/usr]}\n")
    error = home.refusal()
    assert error.message == f"{path}:2: sandbox.enabled: the sandbox is asked for, and this version has none"
    assert "sandbox.required: false" in (error.hint or "")


def test_a_sandbox_that_is_not_required_is_a_notice(home: Home) -> None:
    path = home.write("config/sandbox/base.yaml", "sandbox: {enabled: true, required: false, extra: {rw: [.]}}\n")
    home.agent("second")
    assert home.load().notices == (
        f"{path}:1: sandbox.enabled: the sandbox is asked for, and this version has none; tools run without it",
    )


def test_a_sandbox_that_is_not_enabled_asks_for_nothing(home: Home) -> None:
    home.write("config/sandbox/base.yaml", "sandbox: {enabled: false, restrictions: {ro: [/usr], rw: [/tmp]}}\n")
    assert home.load().notices == ()


def test_a_feature_file_wins_over_a_sandbox_file(home: Home) -> None:
    home.write("config/sandbox/base.yaml", "sandbox: {enabled: true}\n")
    home.write("config/features/base.yaml", "sandbox: {enabled: false}\n")
    assert home.load().notices == ()


def test_an_agent_may_ask_for_the_sandbox(home: Home) -> None:
    path = home.agent("main", "features: {sandbox: {enabled: true}}")
    assert home.refusal().message.startswith(f"{path}:4: features.sandbox.enabled: the sandbox is asked for")


def test_a_sandbox_file_takes_no_other_features(home: Home) -> None:
    home.write("config/sandbox/base.yaml", "tools: {max_steps: 1}\n")
    assert home.refusal().hint == "Accepted here: sandbox."


def test_the_mirror_is_off_unless_a_home_switches_it_on(home: Home) -> None:
    assert home.load().mirror is False
    home.write("config/features/x.yaml", "mirror: {enabled: true}\n")
    assert home.load().mirror is True
