"""The root command: its flags, and the table of commands, which are imported when they are invoked.

A root flag stands before the command. It wins over its environment variable, that over the default (engine.md 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from aura import __version__, limits
from aura.cli.lazy import LazyCommand, LazyGroup
from aura.cli.options import THINK_SPELLINGS, RootOptions

PROGRAM = "aura"

COMMANDS: Mapping[str, LazyCommand] = {
    "serve": LazyCommand("aura.cli.serve:command", "Serve one session over HTTP for a controller."),
    "webserver": LazyCommand("aura.cli.webserver:command", "Serve the configured agents to chat front ends and SDKs."),
    "run": LazyCommand("aura.cli.run:command", "Run prompts in one session and save it."),
    "session": LazyCommand("aura.cli.session:command", "Stored sessions: list, read, compare, import, export, fork."),
    "runs": LazyCommand("aura.cli.runs:command", "List runs, the newest first."),
    "stats": LazyCommand("aura.cli.stats:command", "Show how runs ended, what failed, what waits, and what it cost."),
    "search": LazyCommand("aura.cli.search:command", "Search all messages and tool results."),
    "journal": LazyCommand("aura.cli.journal:command", "Export, import, follow and verify journals."),
    "evidence": LazyCommand("aura.cli.evidence:command", "Write a session as evidence, and verify such files."),
    "sql": LazyCommand("aura.cli.sql:command", "Ask the store in SQL: runs, tool calls, tokens, questions."),
    "store": LazyCommand("aura.cli.store:command", "Check, back up, prune and measure the database."),
    "openapi": LazyCommand("aura.cli.openapi:command", "Print the documents that describe the HTTP API."),
}


@click.group(
    PROGRAM,
    cls=LazyGroup,
    commands=COMMANDS,
    help="Run agents unattended, with every event, revision and run record in one SQLite file.",
)
@click.option("--home", metavar="DIR", help='Global config home; "" for none.  [env var: AURA_HOME; default: ~/.aura]')
@click.option(
    "--config",
    metavar="DIR",
    multiple=True,
    help="Config home, repeatable; the last one is written to.  [env var: AURA_CONFIG; default: .aura]",
)
@click.option(
    "-w",
    "--workdir",
    metavar="DIR",
    envvar="AURA_WORKDIR",
    show_envvar=True,
    type=click.Path(path_type=Path, readable=False),
    help="Workspace of the agent.  [default: this directory]",
)
@click.option("--agent", metavar="NAME", envvar="AURA_AGENT", show_envvar=True, help="Agent to run.")
@click.option("-m", "--model", metavar="NAME", envvar="AURA_MODEL", show_envvar=True, help="Model to ask.")
@click.option("--provider", metavar="NAME", envvar="AURA_PROVIDER", show_envvar=True, help="Provider to ask.")
@click.option(
    "--think",
    metavar="LEVEL",
    envvar="AURA_THINK",
    show_envvar=True,
    type=click.Choice(THINK_SPELLINGS),
    help="Thinking: off, on, low, medium or high.",
)
@click.option(
    "--max-steps",
    metavar="N",
    envvar="AURA_MAX_STEPS",
    show_envvar=True,
    type=click.IntRange(1, limits.MAX_STEPS_MAX_COUNT),
    help="Model calls of one turn at most.",
)
@click.option(
    "--token-budget",
    metavar="N",
    envvar="AURA_TOKEN_BUDGET",
    show_envvar=True,
    type=click.IntRange(0, limits.TOKEN_BUDGET_MAX_TOKENS),
    help="Tokens of one session at most; 0 for no limit.",
)
@click.option(
    "--resume",
    metavar="ID",
    envvar="AURA_RESUME",
    show_envvar=True,
    help="Session to go on with: its id or a unique beginning of it.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    envvar="AURA_OUTPUT",
    show_envvar=True,
    type=click.Path(path_type=Path, readable=False),
    help="Also record a plain-text transcript in FILE.",
)
@click.option("--debug", is_flag=True, envvar="AURA_DEBUG", show_envvar=True, help="Show tracebacks.")
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def root(
    context: click.Context,
    home: str | None,
    config: tuple[str, ...],
    workdir: Path | None,
    agent: str | None,
    model: str | None,
    provider: str | None,
    think: str | None,
    max_steps: int | None,
    token_budget: int | None,
    resume: str | None,
    output: Path | None,
    debug: bool,
) -> None:
    """Put the root flags where the commands find them."""
    context.obj = RootOptions(
        home=home,
        config=config,
        workdir=workdir,
        agent=agent,
        model=model,
        provider=provider,
        think=think,
        max_steps=max_steps,
        token_budget=token_budget,
        resume=resume,
        output=output,
        debug=debug,
    )


def invoke(args: Sequence[str]) -> None:
    """Parse and run one command line. Raises what the command raises, and click's own exceptions."""
    with root.make_context(PROGRAM, list(args)) as context:
        root.invoke(context)
