"""A result that would overfill the model's context is replaced by a text that says so (engine.md 4.8)."""

from __future__ import annotations

from aura import limits
from aura.conversation import Call
from aura.engine.filters.base import FilterContext


def estimate_tokens(text: str) -> int:
    """Return roughly how many tokens `text` costs, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // limits.TOKEN_ESTIMATE_BYTES)


def apply(call: Call, text: str, context: FilterContext) -> str:
    """Return `text`, or the rejection when it is too large.

    With a known window the bound is `result_max_percentage` of it, counted with what is there already; without one it
    is `result_max_tokens` for the one result.
    """
    tokens = estimate_tokens(text)
    window = context.use.window_tokens
    if window <= 0:
        if tokens <= context.spec.result_max_tokens:
            return text
        limit = f"the limit is {context.spec.result_max_tokens} tokens for one result"
        return _rejection(call.name, tokens, limit)
    used = context.use.used_tokens + context.pending_tokens
    if (used + tokens) * 100 <= context.spec.result_max_percentage * window:
        return text
    left = max(0, context.spec.result_max_percentage * window // 100 - used)
    percentage = (used + tokens) * 100 // window
    limit = f"it would fill the context to {percentage} % of {window} tokens; about {left} are left for results"
    return _rejection(call.name, tokens, limit)


def _rejection(name: str, tokens: int, limit: str) -> str:
    return (
        f"The result of {name} was left out: it has about {tokens} tokens, and {limit}. "
        "Ask for less: a range of lines, a narrower pattern, or a command that prints only what matters."
    )
