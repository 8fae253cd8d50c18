"""Prompts are templates over a fixed set of variables."""

from pathlib import Path

import pytest

from aura.config.homes import Homes
from aura.config.prompt import prompt_variables, render_prompt
from aura.config.resolve import get_agent
from aura.errors import ConfigInvalid
from tests.unit.config.home import Home

WORK = Path("/work/dir")


def rendered(home: Home, body: str, keys: str = "") -> str:
    home.agent("main", keys, body)
    configuration = home.load()
    agent = get_agent(configuration, None)
    return render_prompt(agent, prompt_variables(agent, configuration.homes, WORK))


def test_a_plain_prompt_is_used_as_it_is(home: Home) -> None:
    assert rendered(home, "Plain { text } % with 100%} signs.") == "Plain { text } % with 100%} signs."


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ Agent }}/{{ Provider }}/{{ Model.Name }}", "main/local/qwen"),
        ("{{ Model.ContextLength }}|{{ Model.Think }}|", "0||"),
        ("{{ WorkDir }}", "/work/dir"),
        ("{{ ToolPolicy.Deny | join(', ') }}", "Bash:rm *, Write"),
        ("{{ ReadBefore.Write }}", "True"),
        ("{% if Config.Global %}yes{% else %}no{% endif %}", "no"),
        ("a\n{# a comment #}b", "a\nb"),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
    ],
)
def test_a_template_is_rendered(home: Home, template: str, text: str) -> None:
    assert rendered(home, template, "tools: {policy: {deny: ['Bash:rm *', Write]}}") == text


def test_the_homes_are_variables(home: Home) -> None:
    body = "{{ Config.Project }} {{ Config.Source }} {{ LaunchDir }}"
    assert rendered(home, body) == f"{home.path} {home.path} {home.path}"
    agent = get_agent(home.load(), None)
    homes = Homes((Path("/g"), Path("/w")), Path("/w"), Path("/launch"), Path("/g"))
    variables = prompt_variables(agent, homes, WORK)
    assert variables["Config"] == {"Global": "/g", "Project": "/w", "Source": str(home.path)}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{{ Agnet }}", "'Agnet' is undefined"),
        ("{{ Model.Nmae }}", "has no attribute 'Nmae'"),
        ("{{ env.HOME }}", "'env' is undefined"),
        ("a\n{% if %}", "line 2 of the text"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ Agent.__class__.__mro__ }}", "unsafe"),
        ("{% include 'other' %}", "no loader"),
        ("{{ Agent + 1 }}", "str"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{{ range(10000000) | list }}", "too big"),
    ],
)
def test_a_template_that_fails_stops_the_start_and_names_its_file(home: Home, body: str, problem: str) -> None:
    path = home.agent("main", body=body)
    error = home.refusal()
    assert error.message.startswith(f"{path}: the prompt cannot be rendered: ")
    assert problem in error.message
    assert "Variables: Agent, Provider, Model" in (error.hint or "")


def test_an_inherited_template_that_fails_names_the_file_it_stands_in(home: Home) -> None:
    home.agent("main", "inherit: [base]", body="")
    path = home.agent("base", body="{{ nothing }}")
    assert home.refusal().message.startswith(f"{path}: ")


def test_rendering_with_other_variables_fails_loudly(home: Home) -> None:
    home.agent("main", body="{{ WorkDir }}")
    with pytest.raises(ConfigInvalid, match="'WorkDir' is undefined"):
        render_prompt(get_agent(home.load(), None), {})
