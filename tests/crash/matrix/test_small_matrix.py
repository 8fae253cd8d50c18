"""A small part of scripts/crash: the disk fails, is full, loses power, and the process is killed; nothing is lost.

It runs in a process of its own, because its file system becomes the default of the process that it is in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CRASH = Path(__file__).resolve().parents[3] / "scripts" / "crash"


def crash(tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    """Run the script; it must find nothing. Return its tallies."""
    report = tmp_path / "report.json"
    command = [sys.executable, str(CRASH), "--json", str(report), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tallies = json.loads(report.read_text())
    assert isinstance(tallies, list)
    return tallies


@pytest.mark.timeout(300)
def test_a_disk_that_fails_or_is_full_loses_nothing(tmp_path: Path) -> None:
    tallies = crash(tmp_path, "--io", "--step", "16")
    assert all(tally["attempts"] >= 1 for tally in tallies if tally["way"].startswith("io"))
    assert sum(tally["refused"] for tally in tallies) > 50
    assert sum(tally["done"] for tally in tallies) > 10, "some faults come after the commit, or are met by trying again"


@pytest.mark.timeout(300)
def test_a_power_cut_loses_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    tallies = crash(tmp_path, "--power", "--step", "2")
    assert all(tally["attempts"] >= 2 for tally in tallies)
    assert sum(tally["refused"] for tally in tallies) > 20


@pytest.mark.timeout(300)
def test_a_host_whose_disk_fills_up_ends_its_runs_and_works_on_with_room(tmp_path: Path) -> None:
    (tally,) = crash(tmp_path, "--disk-full", "--step", "8")
    assert tally["attempts"] >= 3


@pytest.mark.timeout(300)
def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    (tally,) = crash(tmp_path, "--kills", "20")
    assert tally["kills"] == 20
    assert tally["acknowledged"] > 100
