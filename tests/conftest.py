"""Pytest's plumbing for the whole suite. It makes no fixture: those stand beside their tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
FOLDERS_WITH_A_MARKER = frozenset({"contract", "crash", "e2e"})
# What a variable leaves out when it is 1, by marker.
SKIPS = {
    "llama": ("AURA_SKIP_LLAMA", "a real llama-server"),
    "mcp_servers": ("AURA_SKIP_MCP", "published MCP servers"),
}

# The machine is shared, so a time limit per example would only report the neighbours.
settings.register_profile("aura", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "aura"))


# A shell ignores SIGINT in what it starts in the background, and every child would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test by its folder, and leaves those that need other people's servers out when told so."""
    left_out = {
        marker: pytest.mark.skip(reason=f"{variable}=1: the tests against {what} are left out")
        for marker, (variable, what) in SKIPS.items()
        if os.environ.get(variable) == "1"
    }
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDERS_WITH_A_MARKER:
            item.add_marker(folder)
        for marker, leave_out in left_out.items():
            if item.get_closest_marker(marker):
                item.add_marker(leave_out)
