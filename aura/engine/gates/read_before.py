"""An existing file is not overwritten or edited before the agent has read it (engine.md 6.7)."""

from __future__ import annotations

import os

from aura.conversation import Call
from aura.engine.gates.base import Allow, Decision, GateContext, Refuse
from aura.engine.tools import paths
from aura.engine.tools.base import ToolError

_CHANGES_FILES = frozenset(("Write", "Edit"))


def decide(call: Call, context: GateContext) -> Decision:
    """Refuse Write and Edit on an existing file that was not read. A path that cannot be is left to the tool."""
    parameter = context.tool.path_parameter
    if call.name not in _CHANGES_FILES or parameter is None or not context.spec.read_before_write:
        return Allow()
    shown = str(call.arguments.get(parameter, "")).strip()
    try:
        path = paths.resolve(shown, context.workdir, context.environment)
    except ToolError:
        return Allow()
    if not os.path.isfile(path) or context.reads.knows(path):
        return Allow()
    return Refuse("not_read", f"{shown} exists and was not read in this session; read it first")
