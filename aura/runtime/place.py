"""Where a server runs, as it tells callers and launchers. A value only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from aura import __version__
from aura.jsontypes import JsonValue


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server runs, as it tells callers. `url` is None for a host without HTTP."""

    url: str | None
    workdir: Path
    write_home: Path
    commit: str
    started_at_ms: int

    def ready_fields(self) -> dict[str, JsonValue]:
        """Return what a ready file says of a server that serves no single session."""
        return {
            "url": self.url,
            "pid": os.getpid(),
            "aura_version": __version__,
            "commit": self.commit,
            "workdir": str(self.workdir),
            "write_home": str(self.write_home),
        }
