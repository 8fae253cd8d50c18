"""What a caller's answer means: labels, 1-based numbers, actions (contract.md, Questions and approvals). Pure."""

from __future__ import annotations

from aura import limits
from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.store.protocol import Input
from aura.wire import canonical

ACTIONS = ("allow", "allow_session", "deny")


def read_answer(pending: Input, answer: str | None, action: str | None) -> JsonValue:
    """Return what is recorded for an answer to `pending`. Raises `BadRequest` for one that does not fit it.

    A number outside of the options is taken as typed, like any other text (engine.md, appendix K).
    """
    if pending.kind == "confirm":
        if action not in ACTIONS or answer is not None:
            raise BadRequest("an approval is answered with an action", hint=f"Use one of {', '.join(ACTIONS)}.")
        return action
    if answer is None or action is not None:
        raise BadRequest("a question is answered with an answer", hint='Send {"answer": "…"}.')
    labels = _labels(pending)
    if not pending.question.get("multi_select"):
        return _label(answer, labels)
    return canonical.encode([_label(part.strip(), labels) for part in answer.split(",") if part.strip()]).decode()


def _labels(pending: Input) -> list[str]:
    options = pending.question.get("options")
    items = options if isinstance(options, list) else []
    return [str(item["label"]) for item in items if isinstance(item, dict)]


def _label(answer: str, labels: list[str]) -> str:
    if answer in labels or not (answer.isascii() and answer.isdigit()) or len(answer) > limits.INTEGER_MAX_CHARS:
        return answer  # Python refuses to convert thousands of digits
    return labels[int(answer) - 1] if 1 <= int(answer) <= len(labels) else answer
