"""The whole configuration: layers, the default agent, overrides, fingerprints."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from aura.config.homes import Homes
from aura.config.resolve import Overrides, find_agent, get_agent, load_configuration, with_overrides
from aura.config.spec import Configuration
from aura.errors import ConfigInvalid
from tests.unit.config.home import Home


def refused(configuration: Configuration, overrides: Overrides) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        with_overrides(configuration, get_agent(configuration, None), overrides)
    return caught.value


def test_the_smallest_configuration_of_the_specification_works(make_home: Callable[[str], Home]) -> None:
    project = make_home("project")
    project.write(
        "config/agents/main.md",
        "---\nname: main\ndefault: true\nmodel: {provider: script, name: scripted}\n"
        'tools: {enabled: ["*"]}\n---\nYou are a careful assistant.\n',
    )
    project.write("config/providers/any.yaml", "script:\n  type: script\n  file: script.yaml\n")
    script = project.write("script.yaml", "turns: []\n")
    run_home = project.path.parent / "run-home"
    configuration = load_configuration(Homes((project.path, run_home), run_home, project.path), {})
    agent = get_agent(configuration, None)
    assert agent.model.provider.file == script
    assert agent.prompt == "You are a careful assistant."
    assert configuration.notices == ()


def test_of_two_entries_with_one_name_the_later_home_wins_whole(make_home: Callable[[str], Home]) -> None:
    low, high = make_home("low"), make_home("high")
    low.agent("main", "description: low\ntools: {disabled: [Bash]}")
    low.agent("only-low")
    high.agent("MAIN", file="other-name")
    (high.path / "config/agents/main.md").unlink()
    high.write("config/providers/p.yaml", "LOCAL: {type: openai}\n")
    (high.path / "config/providers/local.yaml").unlink()
    configuration = load_configuration(Homes((low.path, high.path), high.path, high.path), {})
    assert list(configuration.agents) == ["main", "only-low"]
    main = configuration.agents["main"]
    assert (main.name, main.description, main.tools.disabled) == ("MAIN", "", ())
    assert main.home == high.path
    assert configuration.agents["only-low"].model.provider.type == "openai"


def test_a_file_that_is_overridden_is_still_checked(make_home: Callable[[str], Home]) -> None:
    low, high = make_home("low"), make_home("high")
    path = low.agent("main", "nonsense: 1")
    with pytest.raises(ConfigInvalid) as caught:
        load_configuration(Homes((low.path, high.path), high.path, high.path), {})
    assert caught.value.message.startswith(f"{path}:4: nonsense")


def test_an_agent_inherits_across_homes(make_home: Callable[[str], Home]) -> None:
    low, high = make_home("low"), make_home("high")
    low.agent("Base", "description: from below")
    high.agent("child", "inherit: [base]")
    configuration = load_configuration(Homes((low.path, high.path), high.path, high.path), {})
    assert configuration.agents["child"].description == "from below"


def test_the_marked_agent_is_the_default(home: Home) -> None:
    home.agent("zeta", "default: true\nhide: true")
    assert get_agent(home.load(), None).name == "zeta"


def test_without_a_mark_the_first_visible_agent_by_name_is_the_default(home: Home) -> None:
    home.agent("Able", "hide: true")
    home.agent("Baker")
    assert get_agent(home.load(), None).name == "Baker"


def test_two_defaults_name_both_files(home: Home) -> None:
    first = home.agent("a", "default: true")
    second = home.agent("b", "default: true")
    error = home.refusal()
    assert error.message == f"{second}:4: default: a in {first} is the default agent already"


def test_agents_are_found_in_any_case_hidden_ones_too(home: Home) -> None:
    home.agent("Ghost", "hide: true")
    configuration = home.load()
    found = find_agent(configuration, "gHOST")
    assert found is not None
    assert found.name == "Ghost"
    assert find_agent(configuration, "nobody") is None


def test_an_unknown_agent_lists_the_visible_ones(home: Home) -> None:
    home.agent("Ghost", "hide: true")
    with pytest.raises(ConfigInvalid) as caught:
        get_agent(home.load(), "nobody")
    assert caught.value.message == 'there is no agent named "nobody"'
    assert caught.value.hint == "Known agents: main."


def test_without_agents_the_error_says_where_they_were_looked_for(home: Home) -> None:
    (home.path / "config/agents/main.md").unlink()
    with pytest.raises(ConfigInvalid) as caught:
        get_agent(home.load(), None)
    assert caught.value.message == "there is no agent to choose"
    assert str(home.path / "config/agents") in (caught.value.hint or "")


def test_with_hidden_agents_only_one_must_be_named(home: Home) -> None:
    home.agent("main", "hide: true")
    with pytest.raises(ConfigInvalid) as caught:
        get_agent(home.load(), None)
    assert caught.value.message == "every agent is hidden, and none has default: true"


def test_overrides_are_laid_over_the_agent(home: Home) -> None:
    home.write("config/providers/more.yaml", "cloud: {type: openai}\n")
    configuration = home.load()
    agent = get_agent(configuration, None)
    overrides = Overrides(provider="CLOUD", model="gpt", think="high", max_steps=3, token_budget=0)
    changed = with_overrides(configuration, agent, overrides)
    assert (changed.model.provider.name, changed.model.name, changed.model.think) == ("cloud", "gpt", "high")
    assert (changed.tools.max_steps, changed.tools.token_budget) == (3, 0)
    assert changed.fingerprint != agent.fingerprint
    assert with_overrides(configuration, agent, Overrides()) == agent


@pytest.mark.parametrize(
    ("text", "think"), [("false", "off"), ("0", "off"), ("true", "on"), ("1", "on"), ("low", "low")]
)
def test_think_has_the_spellings_of_the_command_line(home: Home, text: str, think: str) -> None:
    configuration = home.load()
    agent = with_overrides(configuration, get_agent(configuration, None), Overrides(think=text))
    assert agent.model.think == think


@pytest.mark.parametrize(
    ("overrides", "message", "hint"),
    [
        (Overrides(provider="x"), '--provider: there is no provider named "x"', "Known providers: local."),
        (Overrides(model=""), '--model: found ""', "Use the name of a model, on one line."),
        (Overrides(think="hard"), '--think: found "hard"', "Use one of off, on, low, medium, high."),
        (
            Overrides(max_steps=0),
            "--max-steps: found 0",
            "Use a whole number from 1 to 100000 (model calls of one run).",
        ),
        (Overrides(token_budget=-1), "--token-budget: found -1", "0 is no limit"),
    ],
)
def test_a_bad_override_names_its_flag(home: Home, overrides: Overrides, message: str, hint: str) -> None:
    error = refused(home.load(), overrides)
    assert error.message == message
    assert hint in (error.hint or "")


def test_an_override_cannot_name_a_model_that_the_provider_leaves_out(home: Home) -> None:
    home.write("config/providers/more.yaml", "cloud: {type: openai, models: {include: [gpt*]}}\n")
    configuration = home.load()
    assert refused(configuration, Overrides(provider="cloud")).message.startswith(
        "--provider: the provider cloud leaves"
    )
    assert refused(configuration, Overrides(provider="cloud", model="q")).message.startswith(
        "--model: the provider cloud"
    )


def test_equal_configurations_have_equal_fingerprints_wherever_they_lie(make_home: Callable[[str], Home]) -> None:
    one, two = make_home("one"), make_home("two")
    two.write("config/providers/local.yaml", "local: {type: llamacpp, url: 'http://127.0.0.1:8080/', token: geheim}\n")
    first, second = (one.load().agents["main"].fingerprint, two.load().agents["main"].fingerprint)
    assert first == second
    assert len(first) == 64


@pytest.mark.parametrize(
    "keys",
    [
        "tools: {disabled: [Bash]}",
        "features: {tools: {max_steps: 1}}",
        "features: {tools: {bash: {truncation: {max_lines: 1}}}}",
        "tools: {policy: {deny: [Bash]}}",
        "description: other",
    ],
)
def test_another_behaviour_is_another_fingerprint(home: Home, keys: str) -> None:
    before = home.agent("main") and home.load().agents["main"].fingerprint
    home.agent("main", keys)
    assert home.load().agents["main"].fingerprint != before


def test_another_prompt_or_address_is_another_fingerprint(home: Home) -> None:
    prints = {home.load().agents["main"].fingerprint}
    home.agent("main", body="Be quick.")
    prints.add(home.load().agents["main"].fingerprint)
    home.write("config/providers/local.yaml", "local: {type: llamacpp, url: 'http://127.0.0.1:8081'}\n")
    prints.add(home.load().agents["main"].fingerprint)
    assert len(prints) == 3


def test_a_fingerprint_does_not_count_itself(home: Home) -> None:
    configuration = home.load()
    agent = replace(configuration.agents["main"], fingerprint="other")
    assert with_overrides(configuration, agent, Overrides()).fingerprint == configuration.agents["main"].fingerprint


@pytest.mark.parametrize("kind", ["modes", "prompts", "lsp", "tasks", "rules"])
def test_files_of_a_later_kind_are_a_notice(home: Home, kind: str) -> None:
    home.write(f"config/{kind}/x.yaml", "anything: 1\n")
    notices = home.load().notices
    assert len(notices) == 1
    assert notices[0].startswith(f"{home.path}/config/{kind}: not read, ")


@pytest.mark.parametrize("kind", ["hooks", "tools"])
def test_files_that_would_hold_agents_back_are_not_ignored(home: Home, kind: str) -> None:
    path = home.write(f"config/{kind}/x.yaml", "anything: 1\n")
    error = home.refusal()
    assert error.message.startswith(f"{path}: ")
    assert error.message.endswith("are not supported yet")


def test_a_misspelt_folder_is_a_notice_with_a_guess(home: Home) -> None:
    home.write("config/agent/x.md", "---\nname: x\n---\n")
    assert home.load().notices[0].endswith("did you mean agents?")


def test_empty_folders_and_examples_are_nothing_to_speak_of(home: Home) -> None:
    home.write("config/mcp/x.example.yaml", "a: 1\n")
    (home.path / "config/hooks").mkdir()
    assert home.load().notices == ()


def test_loading_a_plain_configuration_imports_no_template_engine(home: Home) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom aura.config.homes import resolve_homes\n"
        "from aura.config.resolve import load_configuration, get_agent\n"
        "c = load_configuration(resolve_homes('', [sys.argv[1]], {}, Path.cwd()), {})\n"
        "print(get_agent(c, None).name, *sorted(m for m in sys.modules if '.' not in m))"
    )
    command = [sys.executable, "-c", code, str(home.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    name, *loaded = done.stdout.split()
    assert name == "main"
    assert set(loaded).isdisjoint({"jinja2", "marshmallow", "asyncio", "flask", "gevent", "difflib"})
