"""Custom commands: the message that one stands for, and those that cannot be reached (engine.md 1.4 and 7.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aura.config.spec import CommandSpec
from aura.runtime.commands.parsing import Invocation
from aura.runtime.commands.table import LATER, REJECTED, find_command

_PLACE = re.compile(r"\$(?:(?P<all>ARGUMENTS)(?![A-Za-z0-9_])|(?P<number>[1-9][0-9]{0,3}))")


def expand(body: str, invocation: Invocation) -> str:
    """Return `body` with `$1` … `$n` and `$ARGUMENTS` filled in; a missing argument is empty.

    What was typed is never searched for places itself. Where the body has no place, it is put below the body: nothing
    that somebody typed gets lost.
    """
    if invocation.rest and _PLACE.search(body) is None:
        return f"{body}\n\n{invocation.rest}".lstrip()
    return _PLACE.sub(lambda found: _fill(found, invocation), body)


def shadowed_notices(commands: Mapping[str, CommandSpec]) -> list[str]:
    """Return a notice for every custom command whose name is taken."""
    notices = []
    for name, command in commands.items():
        slashed = f"/{name}"
        if slashed in REJECTED or slashed in LATER or find_command(slashed) is not None:
            notices.append(f"{command.source}: not used, {slashed} is a command already")
    return notices


def _fill(found: re.Match[str], invocation: Invocation) -> str:
    if found["all"]:
        return invocation.rest
    position = int(found["number"]) - 1
    return invocation.arguments[position] if position < len(invocation.arguments) else ""
