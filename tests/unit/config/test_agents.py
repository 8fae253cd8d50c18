"""Agent files: keys, defaults and inheritance."""

import pytest

from aura.config.spec import GenerationSpec, PolicySpec, ToolsSpec
from tests.unit.config.home import Home


def test_an_agent_has_the_defaults_of_the_specification(home: Home) -> None:
    agent = home.load().agents["main"]
    assert agent.name == "main"
    assert agent.prompt == "You are a careful assistant."
    assert agent.model.provider.name == "local"
    assert agent.model.name == "qwen"
    assert agent.model.context is None
    assert agent.model.think is None
    assert agent.model.generation == GenerationSpec()
    assert agent.tools == ToolsSpec()
    assert agent.tools.max_steps == 50
    assert (agent.hidden, agent.default, agent.description) == (False, False, "")
    assert agent.source == agent.prompt_source == home.path / "config/agents/main.md"
    assert agent.home == home.path


def test_every_key_of_an_agent_is_read(home: Home) -> None:
    home.write(
        "config/agents/sub/full.md",
        """---yaml
name: Full Agent
description: Does it
hide: true
default: true
model:
  provider: LOCAL
  name: qwen
  context: 4096
  think: off
  generation:
    temperature: 0
    top_p: 1
    frequency_penalty: -0.5
    presence_penalty: 2
    max_output_tokens: 100
    stop: [END]
    seed: 0
tools:
  enabled: [Read, "Todo*"]
  disabled: []
  policy: {auto: [Read], confirm: ["Bash:git push*"], deny: [Write]}
features:
  tools:
    max_steps: 3
    token_budget: 1000
    result: {max_tokens: 10, max_percentage: 50}
    read_before: {write: false}
    parallel: false
    bash: {truncation: {max_output_bytes: 1, max_lines: 2, head_lines: 0, tail_lines: 1}}
---
Body.
""",
    )
    agent = home.load().agents["full agent"]
    assert (agent.name, agent.description, agent.hidden, agent.default) == ("Full Agent", "Does it", True, True)
    assert (agent.model.context, agent.model.think) == (4096, "off")
    assert agent.model.generation == GenerationSpec(0.0, 1.0, -0.5, 2.0, 100, ("END",), 0)
    tools = agent.tools
    assert (tools.enabled, tools.disabled) == (("Read", "Todo*"), ())
    assert tools.policy == PolicySpec(("Read",), ("Bash:git push*",), ("Write",))
    assert (tools.max_steps, tools.token_budget, tools.read_before_write, tools.parallel) == (3, 1000, False, False)
    assert (tools.result_max_tokens, tools.result_max_percentage) == (10, 50)
    bash = tools.bash
    assert (bash.max_output_bytes, bash.max_lines, bash.head_lines, bash.tail_lines) == (1, 2, 0, 1)


@pytest.mark.parametrize(("found", "think"), [("on", "on"), ("true", "on"), ("'off'", "off"), ("high", "high")])
def test_think_is_a_switch_or_a_level(home: Home, found: str, think: str) -> None:
    home.write("config/agents/main.md", f"---\nname: a\nmodel: {{provider: local, name: q, think: {found}}}\n---\n")
    assert home.load().agents["a"].model.think == think


@pytest.mark.parametrize(
    ("keys", "problem", "hint"),
    [
        ("tools: {enable: []}", "tools.enable: this key is unknown", "Did you mean enabled? Accepted here: disabled,"),
        ("tool: {}", "tool: this key is unknown", "Did you mean tools? Accepted here: default, description,"),
        ("Tools: {}", "Tools: this key is unknown", "Did you mean tools?"),
        ("tools: ['*']", "tools: found a list", "Use a mapping with the keys disabled, enabled, policy."),
        ("tools: {enabled: '*'}", 'tools.enabled: found "*"', 'Use a list of texts, such as ["*"].'),
        (
            "tools: {policy: {allow: []}}",
            "tools.policy.allow: this key is unknown",
            "Accepted here: auto, confirm, deny.",
        ),
        ("hide: 1", "hide: found 1", "Use true or false."),
        ("default: 'yes'", 'default: found "yes"', "Use true or false."),
        ("description: 5", "description: found 5, which is not text; put it in quotes", "Use text."),
        ("inherit: Base", 'inherit: found "Base"', "Use a list of texts"),
        ("features: {tools: {max_steps: 0}}", "features.tools.max_steps: found 0", "from 1 to 100000 (model calls of"),
        (
            "features: {tool: {}}",
            "features.tool: this key is unknown",
            "Did you mean tools? Accepted here: headless, hitl, mcp, sandbox, tools.",
        ),
        ("mode: Edit", "mode: modes are not supported yet", "Leave it out; supported here: default, description,"),
        ('? "a\\nb"\n: 1', '"a\\nb": this key is unknown', "Accepted here"),
    ],
)
def test_an_error_names_file_line_key_and_what_is_accepted(home: Home, keys: str, problem: str, hint: str) -> None:
    path = home.agent("main", keys)
    error = home.refusal()
    assert error.message.startswith(f"{path}:4: {problem}")
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("model", "problem", "hint"),
    [
        ("{provider: local, name: 7}", "model.name: found 7, which is not text", "Use the name of a model"),
        ("{provider: local, name: ''}", 'model.name: found ""', "Use the name of a model"),
        ("{provider: local, name: q, context: -1}", "model.context: found -1", "from 1 to 100000000 (tokens)"),
        ("{provider: local, name: q, think: hard}", 'model.think: found "hard"', "one of off, on, low, medium, high"),
        ("{provider: local, name: q, generation: {temperature: 9}}", "model.generation.temperature: found 9", "0 to 5"),
        ("{provider: local, name: q, generation: {top_p: .nan}}", "model.generation.top_p: found nan", "from 0 to 1"),
        (
            "{provider: local, name: q, generation: {top_k: 5}}",
            "model.generation.top_k: top_k is not supported",
            "Leave",
        ),
        ("{provider: loca, name: q}", 'model.provider: there is no provider named "loca"', "Known providers: local."),
    ],
)
def test_a_bad_model_is_named(home: Home, model: str, problem: str, hint: str) -> None:
    path = home.write("config/agents/main.md", f"---\nname: main\nmodel: {model}\n---\n")
    error = home.refusal()
    assert error.message.startswith(f"{path}:3: {problem}")
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("model", "key"), [("", "name"), ("{provider: local}", "name"), ("{name: q}", "provider"), ("{name: }", "name")]
)
def test_provider_and_model_are_required(home: Home, model: str, key: str) -> None:
    path = home.write("config/agents/main.md", f"---\nname: main\nmodel: {model}\n---\n")
    assert home.refusal().message == f"{path}:2: the key model.{key} is missing"


def test_without_any_provider_the_error_says_where_to_add_one(home: Home) -> None:
    (home.path / "config/providers/local.yaml").unlink()
    error = home.refusal()
    assert "main.md:3: model.provider: there is no provider named" in error.message
    assert "config/providers/local.yaml" in (error.hint or "")


def test_a_model_that_its_provider_leaves_out_is_named(home: Home) -> None:
    text = "local: {type: openai, models: {include: [gpt*]}}\n"
    provider = home.write("config/providers/local.yaml", text)
    error = home.refusal()
    assert 'main.md:3: model.name: the provider local leaves out the model "qwen"' in error.message
    assert str(provider) in (error.hint or "")


def test_the_name_is_required(home: Home) -> None:
    path = home.write("config/agents/x.md", "---\ndescription: nameless\n---\n")
    assert home.refusal().message == f"{path}:2: the key name is missing"


@pytest.mark.parametrize("name", ["''", "' a'", '"a\\nb"', "x" * 129, "7", "[a]"])
def test_a_bad_name_is_refused(home: Home, name: str) -> None:
    path = home.write("config/agents/x.md", f"---\nname: {name}\n---\n")
    error = home.refusal()
    assert error.message.startswith(f"{path}:2: name: found ")
    assert error.hint == "Use one line of at most 128 characters."


def test_a_file_that_is_not_utf8_is_named(home: Home) -> None:
    path = home.write("config/agents/x.md", b"---\nname: caf\xe9\n---\n")
    assert home.refusal().message.startswith(f"{path}:2: byte ")


def test_a_name_stands_once_in_a_home_in_any_case(home: Home) -> None:
    home.agent("MAIN", file="other")
    error = home.refusal()
    assert f"{home.path}/config/agents/other.md:2: name: " in error.message
    assert f"{home.path}/config/agents/main.md has an agent named main already" in error.message


def test_keys_are_inherited_one_by_one_and_lists_replaced_whole(home: Home) -> None:
    home.agent("Left", "hide: true\ndescription: left\ntools: {disabled: [A, B], policy: {deny: [X]}}")
    home.agent("Right", "description: right\ndefault: true\ntools: {enabled: [C]}")
    home.agent("child", "inherit: [left, RIGHT]\ntools: {disabled: [], policy: {deny: }}")
    child = home.load().agents["child"]
    assert child.description == "right"
    assert child.hidden is False
    assert child.default is False
    assert child.tools.enabled == ("C",)
    assert child.tools.disabled == ()
    assert child.tools.policy.deny == ("X",)


def test_an_empty_body_is_that_of_the_first_parent_with_one(home: Home) -> None:
    home.agent("a", body="")
    source = home.agent("b", body="From b.")
    home.agent("c", body="From c.")
    home.agent("child", "inherit: [a, b, c]", body="")
    home.agent("grandchild", "inherit: [child]", body="")
    agents = home.load().agents
    assert agents["child"].prompt == agents["grandchild"].prompt == "From b."
    assert agents["grandchild"].prompt_source == source
    assert agents["grandchild"].source.name == "grandchild.md"


def test_a_model_may_be_inherited(home: Home) -> None:
    home.write("config/agents/child.md", "---\nname: child\ninherit: [main]\nmodel: {context: 10}\n---\n")
    model = home.load().agents["child"].model
    assert (model.provider.name, model.name, model.context) == ("local", "qwen", 10)


def test_an_error_in_an_inherited_value_names_the_file_it_stands_in(home: Home) -> None:
    path = home.write("config/agents/main.md", "---\nname: main\nmodel: {provider: gone, name: q}\n---\n")
    home.write("config/agents/a.md", "---\nname: a\ninherit: [main]\n---\n")
    assert home.refusal().message.startswith(f"{path}:3: model.provider: ")


def test_an_unknown_parent_lists_the_agents(home: Home) -> None:
    path = home.agent("child", "inherit: [mian]")
    error = home.refusal()
    assert error.message == f'{path}:4: inherit: there is no agent named "mian"'
    assert error.hint == "Other agents here: main."


def test_a_circle_is_shown(home: Home) -> None:
    home.agent("a", "inherit: [b]")
    home.agent("b", "inherit: [c]")
    home.agent("c", "inherit: [a]")
    error = home.refusal()
    assert "inherit: agents inherit from each other in a circle: " in error.message
    assert any(f"{one} → {two}" in error.message for one, two in (("a", "b"), ("b", "c"), ("c", "a")))


def test_an_agent_cannot_inherit_from_itself(home: Home) -> None:
    home.agent("main", "inherit: [Main]")
    assert "in a circle: main → main" in home.refusal().message


def test_a_long_line_of_ancestors_is_followed(home: Home) -> None:
    home.agent("a0", "description: oldest")
    for number in range(1, 1500):
        home.agent(f"a{number}", f"inherit: [a{number - 1}]")
    assert home.load().agents["a1499"].description == "oldest"


LATER = ["mode", "system", "hooks", "fallback", "files", "agentsmd", "thinking", "subagent", "response_format"]


@pytest.mark.parametrize("key", LATER)
def test_keys_of_a_later_version_are_not_supported_yet(home: Home, key: str) -> None:
    path = home.agent("main", f"{key}: anything")
    error = home.refusal()
    assert error.message.startswith(f"{path}:4: {key}: ")
    assert error.message.endswith("not supported yet")
