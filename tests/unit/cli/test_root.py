"""The root flags and the table of commands: `aura.cli.root`, `lazy` and `options`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click
import pytest

from aura.cli.lazy import LazyCommand, LazyGroup
from aura.cli.options import RootOptions
from aura.cli.root import COMMANDS, root

VARIABLES = {
    "AURA_AGENT": "a",
    "AURA_MODEL": "m",
    "AURA_PROVIDER": "p",
    "AURA_THINK": "high",
    "AURA_MAX_STEPS": "7",
    "AURA_TOKEN_BUDGET": "9",
    "AURA_RESUME": "r",
    "AURA_OUTPUT": "o.txt",
    "AURA_WORKDIR": "w",
    "AURA_DEBUG": "true",
}


@pytest.fixture
def parse(monkeypatch):
    """Gives the RootOptions that a command would see."""
    for name in (*VARIABLES, "AURA_HOME", "AURA_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    seen: list[RootOptions] = []

    @click.command()
    @click.pass_obj
    def spy(options: RootOptions) -> None:
        seen.append(options)

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: spy)

    def run(*words: str) -> RootOptions:
        with root.make_context("aura", [*words, "spy"]) as context:
            root.invoke(context)
        return seen.pop()

    return run


def test_without_flags_every_option_is_unset(parse):
    assert parse() == RootOptions()


def test_flags_reach_the_command(parse):
    homes = ["--home", "", "--config", "a", "--config", "b,c", "-w", "/w"]
    agent = ["--agent", "A", "-m", "M", "--provider", "P", "--think", "low", "--max-steps", "3"]
    more = ["--token-budget", "0", "--resume", "R", "-o", "out", "--debug"]
    assert parse(*homes, *agent, *more) == RootOptions(
        home="",
        config=("a", "b,c"),
        workdir=Path("/w"),
        agent="A",
        model="M",
        provider="P",
        think="low",
        max_steps=3,
        token_budget=0,
        resume="R",
        output=Path("out"),
        debug=True,
    )


def test_variables_stand_in_for_flags_and_lose_against_them(parse, monkeypatch):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    options = parse("--model", "flag")
    assert (options.agent, options.model, options.provider, options.think) == ("a", "flag", "p", "high")
    assert (options.max_steps, options.token_budget, options.debug) == (7, 9, True)
    assert (options.resume, options.output, options.workdir) == ("r", Path("o.txt"), Path("w"))


def test_homes_are_resolved_from_flags_and_variables(parse, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AURA_HOME", "")
    monkeypatch.setenv("AURA_CONFIG", "from-variable")
    assert parse().resolve_homes().store_dir == tmp_path / "from-variable" / "sessions"
    assert parse("--config", "from-flag").resolve_homes().write_home == tmp_path / "from-flag"


@pytest.mark.parametrize("word", ["--unknown", "--max-steps=-1", "--token-budget=1.5", "--think=hard", "--continue"])
def test_what_is_no_flag_or_value_is_a_usage_error(parse, word):
    with pytest.raises(click.UsageError):
        parse(word)


def test_help_lists_commands_without_importing_them():
    missing = {"later": LazyCommand("no.such.module:command", "Comes later.")}
    group = LazyGroup("tool", commands=missing)
    with click.Context(group) as context:
        assert "later  Comes later." in group.get_help(context)
        assert group.get_command(context, "other") is None
        with pytest.raises(ModuleNotFoundError):
            group.get_command(context, "later")


def test_every_command_of_the_table_has_a_module_of_its_own():
    modules = [entry.target.partition(":")[0] for entry in COMMANDS.values()]
    assert len(set(modules)) == len(modules)
    assert all(module.startswith("aura.cli.") for module in modules)
    assert importlib.util.find_spec("aura.cli.session") is not None
