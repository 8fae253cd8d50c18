"""The built-in tools, all of them, in the order in which a model is told of them."""

from __future__ import annotations

from aura.engine.tools.ask import AskTool
from aura.engine.tools.base import Tool
from aura.engine.tools.bash import BashTool
from aura.engine.tools.edit import EditTool
from aura.engine.tools.glob import GlobTool
from aura.engine.tools.ls import LsTool
from aura.engine.tools.read import ReadTool
from aura.engine.tools.rg import RgTool
from aura.engine.tools.todos import TodoCreateTool, TodoListTool, TodoProgressTool
from aura.engine.tools.write import WriteTool

BUILT_IN: tuple[Tool, ...] = (
    ReadTool(),
    WriteTool(),
    EditTool(),
    LsTool(),
    GlobTool(),
    RgTool(),
    BashTool(),
    TodoCreateTool(),
    TodoListTool(),
    TodoProgressTool(),
    AskTool(),
)
