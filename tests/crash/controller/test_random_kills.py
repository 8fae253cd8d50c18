"""kill -9 of the guide's controller and of its servers at random moments: every job ends once, nothing runs twice.

`scripts/crash-controller` does the same a hundred times each. `AURA_CRASH_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.support.controller_kills import Kills, play
from tests.support.controller_promises import check_promises

SEED = int(os.environ.get("AURA_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)


def test_every_job_ends_once_however_often_controller_and_servers_are_killed(tmp_path: Path) -> None:
    place, report = play(tmp_path.resolve(), Kills(controller=6, server=6), SEED, print)
    assert report.violations == [], f"seed {SEED}"
    check_promises(place, report)
    assert report.violations == [], f"seed {SEED}"
    assert (report.controller_kills, report.server_kills) == (6, 6)
