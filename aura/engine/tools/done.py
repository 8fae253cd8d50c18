"""Done: the model says that the work is finished, and the turn ends after the batch (engine.md 4.6)."""

from __future__ import annotations

from collections.abc import Mapping

from aura.engine.tools import schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonValue


class DoneTool:
    """Returns the summary. It is no part of the built-in set: a session switches it on."""

    spec = ToolSpec(
        name="Done",
        description="End the turn, once everything that was asked for is done. summary says what was done.",
        parameters=schema.declare({"summary": {"type": "string"}}, required=("summary",)),
        read_only=True,
        parallel=False,
        ends_turn=True,
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return the summary. Raises `ToolError` when it is empty."""
        summary = schema.get_text(arguments, "summary").strip()
        if not summary:
            raise ToolError("the summary is empty")
        return summary
