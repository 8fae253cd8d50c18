"""Where the published MCP servers are that `scripts/install-mcp-servers` installs."""

from __future__ import annotations

import os
import re
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "install-mcp-servers"


def server_program(package: str) -> Path:
    """Return the program of a package, such as `server-everything`. Raises with a hint when it is not there."""
    cache = (
        os.environ.get("AURA_CACHE_DIR") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aura"
    )
    version = re.search(r'VERSION="(.+?)"', SCRIPT.read_text())
    assert version is not None
    folder = Path(cache) / f"mcp-servers-{version[1]}" / "node_modules" / "@modelcontextprotocol" / package
    program = folder / "dist" / "index.js"
    if not program.is_file():
        raise FileNotFoundError(
            f"{program} is missing: run scripts/install-mcp-servers, or leave these tests out with AURA_SKIP_MCP=1"
        )
    return program
