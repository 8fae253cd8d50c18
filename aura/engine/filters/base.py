"""What a filter is: a look at a result before it enters the conversation (SHAPES.md section 3).

A filter returns the text that takes the result's place. One that raises leaves the result as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aura.config.spec import ToolsSpec
from aura.conversation import Call


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How full the model's context is, in tokens. `window_tokens` is 0 when nobody knows it."""

    used_tokens: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class FilterContext:
    """What a filter may look at. `pending_tokens`: results of the same batch that are not part of `use` yet."""

    spec: ToolsSpec
    use: ContextUse
    pending_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """A named filter: (call, result text, context) -> result text. The name is for people."""

    name: str
    apply: Callable[[Call, str, FilterContext], str]
