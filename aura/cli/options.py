"""The root flags as one frozen value, handed to every command as click's context object."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aura.errors import BadRequest, ConfigInvalid

if TYPE_CHECKING:
    from aura.config.homes import Homes

F = TypeVar("F", bound=Callable[..., Any])

THINK_SPELLINGS = ("off", "on", "low", "medium", "high", "false", "0", "true", "1")


@dataclass(frozen=True, slots=True)
class RootOptions:
    """The flags before the command, environment variables included; None where neither was given.

    `home` and `config` are the flags alone: `resolve_homes` reads their variables. `think` is one of
    `THINK_SPELLINGS`. `output` is the transcript file of `serve` and `run`, not `session export --output`.
    """

    home: str | None = None
    config: tuple[str, ...] = ()
    workdir: Path | None = None
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    think: str | None = None
    max_steps: int | None = None
    token_budget: int | None = None
    resume: str | None = None
    output: Path | None = None
    debug: bool = False

    def resolve_homes(self) -> Homes:
        """Return the config homes and the write home. Raises `ConfigInvalid`, and `BadRequest` without a directory."""
        from aura.config.homes import resolve_homes

        return resolve_homes(self.home, self.config, os.environ, current_directory())

    def resolve_store_dir(self) -> Path:
        """Return the directory of the store. Raises `BadRequest` for a bad home: an argument like any other there."""
        try:
            return self.resolve_homes().store_dir
        except ConfigInvalid as error:  # contract.md lists no such code for offline commands
            raise BadRequest(error.message, hint=error.hint) from error


def json_option(command: F) -> F:
    """Add `--json` to a command, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def current_directory() -> Path:
    """Return the directory that the program was started in. Raises `BadRequest` when it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise BadRequest("the current directory is gone", hint="Change to a directory that exists.") from error
