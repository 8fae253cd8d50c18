"""The filters that every result passes, in order; the size guard is the last. This is the one place where that is
decided (SHAPES.md section 3)."""

from __future__ import annotations

from aura.engine.filters import size_guard
from aura.engine.filters.base import Filter

FILTERS: tuple[Filter, ...] = (Filter("size_guard", size_guard.apply),)
