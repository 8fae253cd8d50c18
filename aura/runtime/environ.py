"""Secrets and the process's own environment, for the command line: it reaches the engine only through the runtime."""

from __future__ import annotations

from aura.engine.executors.environment import erase_from_environ

__all__ = ["erase_from_environ"]
