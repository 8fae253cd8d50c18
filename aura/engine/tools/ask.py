"""Ask: puts a question to a person and returns the answer (engine.md 6.2 and appendix K)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aura.engine.lane import Question
from aura.engine.tools import schema
from aura.engine.tools.base import ToolContext, ToolError, ToolSpec
from aura.events import Option
from aura.jsontypes import JsonValue


class AskTool:
    """Waits for the answer in the lane, which knows whether anybody may be waited for."""

    spec = ToolSpec(
        name="Ask",
        description=(
            "Ask the user a question and wait for the answer. options offers answers to choose from; multi_select "
            "allows several, and the answer is then a JSON array of labels."
        ),
        parameters=schema.declare(
            {
                "question": {"type": "string"},
                "options": {
                    "type": "array",
                    "maxItems": 50,
                    "items": schema.declare(
                        {"label": {"type": "string"}, "description": {"type": "string"}}, required=("label",)
                    ),
                },
                "multi_select": {"type": "boolean"},
            },
            required=("question",),
        ),
        read_only=True,
        parallel=False,
    )

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        """Return the answer as text. Raises `ToolError` when the question was dismissed."""
        question = schema.get_text(arguments, "question").strip()
        if not question:
            raise ToolError("the question is empty")
        options = tuple(
            Option(schema.get_text(item, "label"), schema.find_text(item, "description") or "")
            for item in schema.list_objects(arguments, "options")
        )
        multi_select = schema.is_set(arguments, "multi_select") and bool(options)
        asked = Question(kind="ask", question=question, options=options, multi_select=multi_select, tool=self.spec.name)
        chosen = _choices(context.ask(asked).value, options)
        if not any(choice.strip() for choice in chosen):
            raise ToolError("the user dismissed the question")
        return json.dumps(chosen, ensure_ascii=False) if multi_select else ", ".join(chosen)


def _choices(value: JsonValue, options: Sequence[Option]) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [_label(item, options) for item in value]
    return [_label(value, options)]


def _label(value: JsonValue, options: Sequence[Option]) -> str:
    """Return the label that a 1-based number stands for; anything else as it was typed."""
    text = value if isinstance(value, str) else json.dumps(value)
    number = text.strip()
    if any(option.label == text for option in options) or not (number.isascii() and number.isdigit()):
        return text
    position = int(number[:9])
    return options[position - 1].label if 1 <= position <= len(options) else text
