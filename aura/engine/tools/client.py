"""A tool that the caller runs itself: it is offered to the model, and a call of it ends the turn (gateway.md 3.10).

It does nothing and has no result: the caller gets the call, and comes back with what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aura.engine.scope import Cancelled
from aura.engine.tools.base import ToolContext, ToolSpec
from aura.jsontypes import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class ClientTool:
    """One tool of the caller."""

    spec: ToolSpec

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Raise `Cancelled`, in every case: the turn ends here, and the call is the caller's."""
        raise Cancelled("client_tool")


def make_client_tool(name: str, description: str, parameters: JsonObject) -> ClientTool:
    """Return the caller's tool. Its arguments are the caller's to check."""
    return ClientTool(
        ToolSpec(
            name=name,
            description=description,
            parameters={"type": "object", "properties": {}, **parameters},
            read_only=True,
            parallel=False,
            own_schema=False,
        )
    )
