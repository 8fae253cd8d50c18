"""Tells which format a JSON value is in. It converts nothing."""

from __future__ import annotations

from typing import Literal

from aura.jsontypes import JsonValue
from aura.wire.formats import claude_code, codex, openai

Format = Literal["aura", "openai", "claude-code", "codex"]


def find_line_format(value: JsonValue) -> Format | None:
    """Return the format whose files are lines like this one, all of one session; None for anything else."""
    if not isinstance(value, dict) or "messages" in value:
        return None
    if codex.is_record(value):
        return "codex"
    if claude_code.is_record(value):
        return "claude-code"
    return "openai" if openai.is_message(value) else None


def is_whole_conversation(value: JsonValue) -> bool:
    """Tell whether a JSON value looks like a conversation, of whichever format, and not like a record of one."""
    return (isinstance(value, dict) and "messages" in value) or openai.is_conversation(value)


def document_format(value: JsonValue) -> Format:
    """Return the format of a whole conversation. What is none is taken for a document of ours, which then fails."""
    return "openai" if openai.is_conversation(value) else "aura"
