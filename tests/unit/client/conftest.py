"""Makes the client and the documents of its tests importable from the checkout; an installed client is preferred."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "contract" / "client_fake"))
if importlib.util.find_spec("aura_automation") is None:
    sys.path.insert(0, str(ROOT / "clients" / "python"))
