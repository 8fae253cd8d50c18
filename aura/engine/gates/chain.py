"""The gates that every call passes, in order. This is the one place where that is decided (SHAPES.md section 3)."""

from __future__ import annotations

from aura.engine.gates import policy, read_before
from aura.engine.gates.base import Gate

GATES: tuple[Gate, ...] = (
    Gate("read_before", read_before.decide),
    Gate("policy", policy.decide),
)
