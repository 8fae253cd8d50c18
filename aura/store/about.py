"""What the store is made of, for people and for evidence. It opens no database."""

from __future__ import annotations

import platform

from aura.store.sqlite.database import sqlite_version
from aura.store.sqlite.migrate import count_migrations


def read_versions() -> dict[str, str | int]:
    """Return the versions that a store's bytes may depend on."""
    return {"python": platform.python_version(), "sqlite": sqlite_version(), "schema": count_migrations()}
