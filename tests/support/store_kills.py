"""Kills a process that loads a store at random moments, and checks that what it was told is there, and nothing torn."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aura.store.open import open_store
from aura.store.sqlite.database import DATABASE_NAME
from tests.support.store_faults import unsound
from tests.support.store_scenarios import settle_lost
from tests.unit.store.store_kit import NOW_MS, query

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("store_load.py")
TERMINAL_TYPES = "'run.persisted', 'run.persist_failed', 'run.lost'"
ENDED = "'persisted', 'persist_failed', 'lost'"
LIFE_MAX_S = 0.25  # from the first word to the kill: some dozens of commits
START_MAX_S = 30.0
POINTS_OF_A_STORE = 40  # then a fresh one: a whole check after each kill is to stay short


@dataclass(slots=True)
class KillTally:
    """What was tried, and what was found."""

    kills: int = 0
    acknowledged: int = 0
    recovered: int = 0  # settled here after the kill, the others by the next load
    lost_runs: int = 0
    violations: list[str] = field(default_factory=list)


def kill_often(root: Path, kills: int, chance: random.Random) -> KillTally:
    """Load, kill and check `kills` times."""
    tally = KillTally()
    for point in range(kills):
        folder = root / f"store-{point // POINTS_OF_A_STORE}"
        told = load_and_kill(folder, f"r{point}", chance)
        tally.kills += 1
        tally.acknowledged += len(told)
        tally.lost_runs += sum(words[0] == "run" and words[3] == "lost" for words in told)
        tally.violations += [f"kill {point + 1}: {problem}" for problem in find_losses(folder, told)]
        tally.violations += [f"kill {point + 1}: {problem}" for problem in unsound(folder, "afterwards")]
        if chance.random() < 0.5:  # else the next load settles what this one left, in a WAL as it was left
            tally.recovered += 1
            tally.violations += [f"kill {point + 1}: {problem}" for problem in find_unsettled(folder)]
        if (point + 1) % POINTS_OF_A_STORE == 0:
            shutil.rmtree(folder)
    return tally


def load_and_kill(folder: Path, label: str, chance: random.Random) -> list[list[Any]]:
    """Let a process load the store for a moment; return all that it had acknowledged when it was killed."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), label],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'clients' / 'python'}"},
    )
    assert child.stdout is not None
    fd, heard = child.stdout.fileno(), b""
    deadline_s: float | None = None
    try:
        while True:
            left_s = START_MAX_S if deadline_s is None else deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([fd], [], [], left_s)[0]:
                break
            piece = os.read(fd, 1 << 16)
            if not piece:
                break
            heard += piece
            deadline_s = deadline_s or time.monotonic() + chance.random() * LIFE_MAX_S
    finally:
        child.send_signal(signal.SIGKILL)
        heard += child.stdout.read()
        child.stdout.close()
        code = child.wait(10)
    assert code == -signal.SIGKILL, f"the load ended by itself with status {code}"
    return [json.loads(line) for line in heard.split(b"\n")[:-1]]


def find_losses(folder: Path, told: list[list[Any]]) -> Iterator[str]:
    """Yield what was acknowledged and is not there."""
    path = folder / DATABASE_NAME
    last_seqs = dict(query(path, "SELECT id, last_seq FROM session"))
    states = dict(query(path, "SELECT run_id, state FROM run"))
    revisions = set(query(path, "SELECT s.id, v.sha256 FROM revision v JOIN session s USING (sid)"))
    for words in told:
        match words:
            case ["event", session, seq] if int(str(last_seqs.get(session, 0))) < seq:
                yield f"event {seq} of {session} is lost: the journal ends at {last_seqs.get(session)}"
            case ["run", _, run, state] if states.get(run) != state:
                yield f"run {run} was {state} and is {states.get(run)}"
            case ["session", session, revision] if (session, revision) not in revisions:
                yield f"revision {revision} of {session} is lost"


def find_unsettled(folder: Path) -> Iterator[str]:
    """Settle what the killed process left, as the next server does; yield what has no single terminal record then."""
    path = folder / DATABASE_NAME
    live = query(
        path, "SELECT DISTINCT s.id FROM run r JOIN session s USING (sid) WHERE r.state NOT IN (" + ENDED + ")"
    )
    store = open_store(folder)
    try:
        for (name,) in live:
            settle_lost(store, str(name), NOW_MS)
    finally:
        store.close()
    ended = f"e.run = r.id AND e.type IN ({TERMINAL_TYPES})"
    sql = f"""
        SELECT r.run_id, r.state, count(e.id) FROM run r LEFT JOIN event e ON {ended}
        GROUP BY r.id HAVING count(e.id) <> 1 OR r.state NOT IN ({ENDED})
    """
    for run, state, count in query(path, sql):
        yield f"run {run} is {state} with {count} terminal records"
    yield from unsound(folder, "settled", frozenset())
