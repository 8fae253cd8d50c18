"""`aura store`: the database as a whole: is it sound, copy it, make it smaller, what is in it (docs/store.md).

Each command is one verb of `aura.runtime.care`, and one answer. Errors are raised, not printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aura.cli import store_view as view
from aura.cli import streams
from aura.cli.options import RootOptions
from aura.errors import BadRequest, ConfigInvalid
from aura.runtime.care import Care

F = TypeVar("F", bound=Callable[..., Any])

EXIT_FINDINGS = 1


def _json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


@click.group("store", help="The database as a whole: check, path. No server is needed.")
def command() -> None:
    """Group the commands; there is nothing to do before them."""


@command.command("path", help="Print where the database is.")
@_json_option
@click.pass_obj
def path_command(root: RootOptions, as_json: bool) -> None:
    """Print the file's name, whether or not it is there yet."""
    path = _care(root).path
    streams.write_stdout(streams.json_line({"path": str(path), "exists": path.exists()}) if as_json else f"{path}\n")


@command.command("check", help="Tell whether the store is sound. Exit code 1 when something was found.")
@click.option("--quick", is_flag=True, help="Leave out hashes and what else takes long.")
@_json_option
@click.pass_obj
def check_command(root: RootOptions, quick: bool, as_json: bool) -> None:
    """Check the store."""
    with view.Meter() as meter:
        report = _care(root).check(quick=quick, progress=meter.show)
    streams.write_stdout(streams.json_line(view.check_fields(report, quick)) if as_json else view.check_text(report))
    if not report.clean:
        raise click.exceptions.Exit(EXIT_FINDINGS)


def _care(root: RootOptions) -> Care:
    try:
        return Care(root.resolve_homes().store_dir)
    except ConfigInvalid as error:  # for these commands a home is an argument like others
        raise BadRequest(error.message, hint=error.hint) from error
