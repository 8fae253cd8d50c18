"""Pytest's plumbing for the whole suite. It makes no fixture: those stand beside their tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
FOLDERS_WITH_A_MARKER = frozenset({"contract", "crash", "e2e"})
SKIP_LLAMA = "AURA_SKIP_LLAMA"

# The machine is shared, so a time limit per example would only report the neighbours.
settings.register_profile("aura", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "aura"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test by its folder, and leaves the llama-server tests out when the environment says so."""
    leave_out = pytest.mark.skip(reason=f"{SKIP_LLAMA}=1: the tests against a real llama-server are left out")
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDERS_WITH_A_MARKER:
            item.add_marker(folder)
        if os.environ.get(SKIP_LLAMA) == "1" and item.get_closest_marker("llama"):
            item.add_marker(leave_out)
