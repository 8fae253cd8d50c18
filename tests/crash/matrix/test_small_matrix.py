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

ROOT = Path(__file__).resolve().parents[3]
CRASH = ROOT / "scripts" / "crash"

LYING_DISK = """
import random, sys
from pathlib import Path
from tests.support.fault_vfs import Disk, FaultVfs
from tests.support.store_faults import cut_each
from tests.support.store_scenarios import SCENARIOS, Stage

def forget(disk, name):
    disk.syncs += 1

Disk.sync = forget
(growth,) = (scenario for scenario in SCENARIOS if scenario.name == "growth")
tally = cut_each(FaultVfs(), Stage(growth, Path(sys.argv[1]).resolve()), random.Random(1), 4)
sys.exit(0 if any("is lost" in violation for violation in tally.violations) else 1)
"""


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
    tallies = crash(tmp_path, "--io", "--step", "40")
    assert sum(tally["refused"] for tally in tallies) > 25
    assert sum(tally["done"] for tally in tallies) > 5, "some faults come after the commit, or are met by trying again"


@pytest.mark.timeout(300)
def test_a_power_cut_loses_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    tallies = crash(tmp_path, "--power", "--step", "3")
    assert all(tally["attempts"] >= 2 for tally in tallies)
    assert sum(tally["refused"] for tally in tallies) > 20


@pytest.mark.timeout(300)
def test_a_disk_that_says_synced_and_has_not_is_found_out(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", LYING_DISK, str(tmp_path)], cwd=ROOT, timeout=100, check=True)


@pytest.mark.timeout(300)
def test_a_host_whose_disk_fills_up_or_fails_ends_its_runs_and_works_on_afterwards(tmp_path: Path) -> None:
    full, failing = crash(tmp_path, "--disk-full", "--step", "8")
    assert full["attempts"] >= 3
    assert failing["attempts"] >= 3


@pytest.mark.timeout(300)
def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    (tally,) = crash(tmp_path, "--kills", "15")
    assert tally["kills"] == 15
    assert tally["acknowledged"] > 100
