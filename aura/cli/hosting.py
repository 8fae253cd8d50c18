"""What `aura serve` and `aura run` share: the plan of a served session out of the root flags, the log, a hasty end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from aura import limits
from aura.cli.options import RootOptions, current_directory
from aura.clock import SystemClock
from aura.config.resolve import Overrides
from aura.errors import ConfigInvalid
from aura.runtime.assembly import Plan
from aura.runtime.log import Log, take_over_logging


def make_log(options: RootOptions) -> Log:
    """Return the program's log on standard error, with everything in it that libraries log."""
    log = Log(SystemClock(), debug=options.debug)
    take_over_logging(log)
    return log


def make_plan(options: RootOptions, *, settle_ms: int = limits.SETTLE_MS) -> Plan:
    """Return what to serve. The homes are resolved against the launch directory; then this process moves to the
    workspace.

    Main thread, before anything else was started. Raises `ConfigInvalid` for a workspace that is not a directory.
    """
    homes = options.resolve_homes()
    workdir = (options.workdir or current_directory()).absolute()
    enter(workdir)
    overrides = Overrides(
        provider=options.provider,
        model=options.model,
        think=options.think,
        max_steps=options.max_steps,
        token_budget=options.token_budget,
    )
    return Plan(homes, workdir, options.agent, options.resume, overrides, settle_ms)


def enter(workdir: Path) -> None:
    """Make `workdir` the current directory. Raises `ConfigInvalid`."""
    try:
        os.chdir(workdir)
    except OSError as error:
        raise ConfigInvalid(
            f"the workspace {workdir} cannot be entered: {error.strerror}", hint="Name a directory with --workdir."
        ) from error


def leave_at_once(code: int) -> NoReturn:
    """End the process although threads are at work: what is committed is safe, and the rest was given up.

    The interpreter's own farewell takes the ground from under threads in C code, and some of them crash in it. What was
    printed or logged was flushed at once.
    """
    os._exit(code)
