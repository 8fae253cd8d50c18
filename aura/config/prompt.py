"""Renders an agent's prompt: a sandboxed Jinja2 template over a fixed set of variables (engine.md 1.9).

The template engine is imported only for a prompt that uses it. Rendering reads no file and no environment variable, so
that no secret can get into a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from aura.config.homes import Homes
from aura.config.spec import AgentSpec
from aura.errors import ConfigInvalid

PromptValue: TypeAlias = "bool | int | str | tuple[str, ...] | Mapping[str, PromptValue]"

_MARKERS = ("{{", "{%", "{#")


def prompt_variables(agent: AgentSpec, homes: Homes, work_dir: Path) -> Mapping[str, PromptValue]:
    """Return what a prompt may refer to. docs/configuration.md lists the names."""
    policy = agent.tools.policy
    return {
        "Agent": agent.name,
        "Provider": agent.model.provider.name,
        "Model": {
            "Name": agent.model.name,
            "ContextLength": agent.model.context or 0,
            "Think": agent.model.think or "",
        },
        "WorkDir": str(work_dir),
        "LaunchDir": str(homes.launch_dir),
        "Config": {
            "Global": str(homes.global_home or ""),
            "Project": str(homes.write_home),
            "Source": str(agent.home),
        },
        "ReadBefore": {"Write": agent.tools.read_before_write},
        "ToolPolicy": {"Auto": policy.auto, "Confirm": policy.confirm, "Deny": policy.deny},
    }


def is_template(prompt: str) -> bool:
    """Tell whether the prompt uses the template engine at all."""
    return any(marker in prompt for marker in _MARKERS)


def render_prompt(agent: AgentSpec, variables: Mapping[str, PromptValue]) -> str:
    """Return the agent's prompt as the model sees it. One that is no template or has no marks is returned as it is.

    Raises `ConfigInvalid` naming the file for a syntax error, an unknown variable and an expression that fails.
    """
    if not agent.prompt_is_template or not is_template(agent.prompt):
        return agent.prompt
    from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)
    try:
        return environment.from_string(agent.prompt).render(variables)
    except TemplateSyntaxError as error:
        raise _invalid(agent, f"line {error.lineno} of the text: {error.message}") from error
    except (
        TemplateError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise _invalid(agent, str(error) or type(error).__name__) from error


def _invalid(agent: AgentSpec, problem: str) -> ConfigInvalid:
    names = "Agent, Provider, Model, WorkDir, LaunchDir, Config, ReadBefore, ToolPolicy"
    hint = f"Variables: {names}. Put text that is no template between {{% raw %}} and {{% endraw %}}."
    return ConfigInvalid(
        f"{agent.prompt_source}: the prompt cannot be rendered: {' '.join(problem.split())}", hint=hint
    )
