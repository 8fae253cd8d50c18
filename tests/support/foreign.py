"""The sample files of foreign formats, and how tests compare what went in with what came out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[1] / "samples"
CLAUDE_CODE = SAMPLES / "claude-code" / "7d3c1f52-8a44-4be0-9c1d-2f6f0a5b9e11.jsonl"
CLAUDE_CODE_AGENT = SAMPLES / "claude-code" / "agent-f00d42.jsonl"
CODEX = SAMPLES / "codex" / "rollout-2026-04-02T19-00-00-019c5e2a-77aa-7b31-8f00-5d1f9a3b2c44.jsonl"
CODEX_OLD = SAMPLES / "codex" / "rollout-2025-05-07-old.jsonl"
OPENAI = SAMPLES / "openai" / "harbour.jsonl"
OPENAI_LIST = SAMPLES / "openai" / "list.json"
OPENAI_MESSAGES = SAMPLES / "openai" / "messages.jsonl"
LINE_FILES = {"claude-code": (CLAUDE_CODE, CLAUDE_CODE_AGENT), "codex": (CODEX, CODEX_OLD)}


def json_lines(data: bytes) -> list[Any]:
    """Return the values of JSON lines, and the bytes of a line that is none."""
    return [_value(line) for line in data.splitlines() if line.strip()]


def leaves(value: Any) -> Counter[tuple[str, Any]]:
    """Return every key, string, number, boolean and null of a JSON value, with its count and type."""
    if isinstance(value, dict):
        return sum((leaves(item) for item in value.values()), Counter(("key", key) for key in value))
    if isinstance(value, list):
        return sum(map(leaves, value), Counter())
    return Counter([(type(value).__name__, value)])


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line
