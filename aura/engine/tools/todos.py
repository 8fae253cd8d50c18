"""TodoCreate, TodoList and TodoProgress: the plan that an agent keeps in its conversation (engine.md 6.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aura import limits
from aura.engine.history import History
from aura.engine.tools import schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.jsontypes import JsonObject, JsonValue

_STATUSES = ("pending", "in_progress", "completed")


@dataclass(frozen=True, slots=True)
class _Item:
    content: str
    status: str


class TodoCreateTool:
    """Replaces the list, or only its summary."""

    spec = ToolSpec(
        name="TodoCreate",
        description=(
            "Make a todo list for the work at hand, replacing the present one; the first item becomes in_progress. "
            "With only a summary, the items stay and the summary changes."
        ),
        parameters=schema.declare(
            {
                "summary": {"type": "string", "description": "What the list is for."},
                "items": {
                    "type": "array",
                    "maxItems": limits.TODO_MAX_COUNT,
                    "items": schema.declare({"content": {"type": "string"}}, required=("content",)),
                },
            }
        ),
        parallel=False,
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Replace the list; return it."""
        summary = schema.find_text(arguments, "summary")
        contents = [schema.get_text(item, "content").strip() for item in schema.list_objects(arguments, "items")]
        if not contents and not summary:
            raise ToolError("give items, a summary, or both")
        if not all(contents):
            raise ToolError("an item has no content")
        items = _promoted([_Item(content, "pending") for content in contents]) if contents else _items(context.history)
        _store(context.history, items, summary or _summary(context.history))
        return _render(context.history)


class TodoListTool:
    """Shows the list."""

    spec = ToolSpec(
        name="TodoList",
        description="Show the todo list with the status of every item.",
        parameters=schema.declare({}),
        read_only=True,
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return counts, summary and items."""
        return _render(context.history)


class TodoProgressTool:
    """Changes statuses, all of them or none."""

    spec = ToolSpec(
        name="TodoProgress",
        description=(
            "Change the status of todo items, by their number in the list. Only one item can be in_progress; when "
            "none is, the first pending one becomes it. Nothing changes if one of the updates is wrong."
        ),
        parameters=schema.declare(
            {
                "updates": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": limits.TODO_MAX_COUNT,
                    "items": schema.declare(
                        {
                            "index": {"type": "integer", "minimum": 1, "description": "From 1."},
                            "status": {"type": "string", "enum": list(_STATUSES)},
                        },
                        required=("index", "status"),
                    ),
                }
            },
            required=("updates",),
        ),
        parallel=False,
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Apply the updates; return the list."""
        items = _items(context.history)
        for update in schema.list_objects(arguments, "updates"):
            index = schema.find_integer(update, "index") or 0
            if index > len(items):
                raise ToolError(f"there is no item {index}; the list has {len(items)}")
            items[index - 1] = replace(items[index - 1], status=schema.get_text(update, "status"))
        working = [str(number) for number, item in enumerate(items, 1) if item.status == "in_progress"]
        if len(working) > 1:
            raise ToolError(
                f"items {', '.join(working)} would be in_progress at once; only one can be. Nothing changed"
            )
        _store(context.history, _promoted(items), _summary(context.history))
        return _render(context.history)


def has_open(history: History) -> bool:
    """Tell whether an item of the list is pending or in progress."""
    return any(item.status in ("pending", "in_progress") for item in _items(history))


def describe(history: History) -> str:
    """Return the list as a person or a model reads it."""
    return _render(history)


def _promoted(items: Sequence[_Item]) -> list[_Item]:
    changed = list(items)
    if any(item.status == "in_progress" for item in changed):
        return changed
    for position, item in enumerate(changed):
        if item.status == "pending":
            changed[position] = replace(item, status="in_progress")
            break
    return changed


def _items(history: History) -> list[_Item]:
    todos: JsonObject = history.todos or {}
    return [
        _Item(str(item.get("content", "")), str(item.get("status", ""))) for item in schema.list_objects(todos, "items")
    ]


def _summary(history: History) -> str:
    value = (history.todos or {}).get("summary")
    return value if isinstance(value, str) else ""


def _store(history: History, items: Sequence[_Item], summary: str) -> None:
    stored: list[JsonValue] = [{"content": item.content, "status": item.status} for item in items]
    todos: dict[str, JsonValue] = {"summary": summary} if summary else {}
    history.todos = {**todos, "items": stored}


def _render(history: History) -> str:
    items, summary = _items(history), _summary(history)
    if not items and not summary:
        return "There are no todos."
    counts = ", ".join(f"{sum(item.status == status for item in items)} {status}" for status in _STATUSES)
    lines = [summary] if summary else []
    lines.append(f"{len(items)} todos: {counts}")
    lines += [f"{number}. [{item.status}] {item.content}" for number, item in enumerate(items, 1)]
    return "\n".join(lines)
