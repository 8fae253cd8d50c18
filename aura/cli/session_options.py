"""The options that commands over one session share, and how they open the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aura.cli.options import RootOptions
from aura.runtime.library import Library

F = TypeVar("F", bound=Callable[..., Any])


def revision_option(command: F) -> F:
    """Add `--revision PREFIX`."""
    text = "An older revision: the beginning of its SHA-256.  [default: the newest]"
    return click.option("--revision", metavar="PREFIX", help=text)(command)


def expect_option(command: F) -> F:
    """Add `--expect-revision SHA256`."""
    text = "Fail with revision_mismatch unless the session is at this revision."
    return click.option("--expect-revision", metavar="SHA256", help=text)(command)


def open_library(root: RootOptions) -> Library:
    """Return the sessions of the write home. Raises `BadRequest` when there is no such directory."""
    return Library(root.resolve_store_dir())
