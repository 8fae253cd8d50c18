"""SIGKILL at random moments, and several processes in one store: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aura.store import protocol as p
from aura.store.open import open_store
from aura.store.sqlite.journal import GENESIS_HASH
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, exported, header, query, sha256

ROOT = Path(__file__).resolve().parents[3]
CHILD = Path(__file__).with_name("writing_child.py")
POINTS = int(os.environ.get("AURA_CRASH_POINTS", "50"))
EVENTS_OF_A_RUN = 11
LONGEST_S = 0.12  # from the first acknowledgement to the kill: some dozens of commits


def spawn(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, arguments)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def kill_after(child: subprocess.Popen[bytes], delay_s: float) -> list[int]:
    """Kill the child `delay_s` after its first word; return every seq that it had acknowledged by then."""
    assert child.stdout is not None
    fd = child.stdout.fileno()
    heard, deadline = b"", None
    while True:
        now = time.monotonic()
        if deadline is None and heard:
            deadline = now + delay_s
        left = 30.0 if deadline is None else deadline - now
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            break
        piece = os.read(fd, 65536)
        if not piece:
            break
        heard += piece
    child.send_signal(signal.SIGKILL)
    heard += child.stdout.read()
    child.stdout.close()
    assert child.wait(10) == -signal.SIGKILL, "it did not end by itself"
    return [int(line) for line in heard.decode().split("\n")[:-1]]


def check(store: SqliteStore, folder: Path, session_id: str, acknowledged: int) -> None:
    """Everything that must be true of a session whatever happened to its writer."""
    rows = store.read_events(session_id, 0, 1_000_000)
    assert len(rows) >= acknowledged, "an acknowledged event is lost"
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    stored = query(
        folder / "aura.db",
        "SELECT e.chain_hash FROM event e JOIN session s USING (sid) WHERE s.id = ? ORDER BY seq",
        session_id,
    )
    expected = GENESIS_HASH
    for row, (chain_hash,) in zip(rows, stored, strict=True):
        expected = hashlib.sha256(expected + row.line).digest()
        assert chain_hash == expected
    live = store.list_runs(p.RunFilter(session_id, live=True)).items
    accepted = {row.run_id for row in rows if row.type == "run.accepted"}
    settled = {row.run_id for row in rows if row.type in ("run.persisted", "run.persist_failed", "run.lost")}
    assert {run.id for run in live} == accepted - settled
    assert len(live) <= 1
    assert query(folder / "aura.db", "PRAGMA integrity_check") == [("ok",)]
    assert query(folder / "aura.db", "PRAGMA foreign_key_check") == []


def check_revisions(store: SqliteStore, session_id: str, newest: int) -> None:
    for revision in store.list_revisions(session_id)[:newest]:
        assert sha256(exported(store, session_id, revision.sha256)) == revision.sha256


@pytest.mark.requirement("process.survives-controllers", "store.atomic-writes")
@pytest.mark.timeout(300)
def test_kill_at_random_moments_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    seed = int(os.environ.get("AURA_CRASH_SEED", str(random.randrange(1 << 30))))
    chance = random.Random(seed)
    print(f"AURA_CRASH_SEED={seed}")
    folder = tmp_path / "sessions"
    store = open_store(folder)
    store.create_session(header("s0"))
    store.close()
    session_id, acknowledged, seen = "s0", 0, set[int]()
    for point in range(POINTS):
        child = spawn(folder, session_id)
        said = kill_after(child, chance.random() * LONGEST_S)
        assert said, f"point {point}: the child never began"
        store = open_store(folder)
        check(store, folder, session_id, max(said))
        check_revisions(store, session_id, newest=6)
        acknowledged += max(said) - said[0]
        live = store.list_runs(p.RunFilter(session_id, live=True)).items
        seen.add(len(store.read_events(session_id, 0, 1_000_000)) % EVENTS_OF_A_RUN)
        if live:
            assert store.freeze(session_id, at_ms=NOW_MS).changed, "its lock is free at once"
            assert store.get_run(live[0].id).state == "lost"
            check_revisions(store, session_id, newest=1_000_000)
            session_id = f"s{point + 1}"
            store.create_session(header(session_id))
        store.close()
    assert acknowledged > POINTS, "the kills came too early to prove anything"
    assert len(seen) > 3, "the kills came at too few different places"


@pytest.mark.timeout(120)
def test_four_processes_write_four_sessions_of_one_store_without_an_error(tmp_path: Path) -> None:
    folder, rounds = tmp_path / "sessions", 25
    store = open_store(folder)
    for index in range(4):
        store.create_session(header(f"s{index}"))
    children = [spawn(folder, f"s{index}", rounds) for index in range(4)]
    for child in children:
        said, _ = child.communicate(timeout=100)
        assert child.returncode == 0
        seqs = [int(line) for line in said.split()]
        assert seqs[-1] == rounds * EVENTS_OF_A_RUN and seqs == sorted(seqs)
    for index in range(4):
        check(store, folder, f"s{index}", rounds * EVENTS_OF_A_RUN)
        check_revisions(store, f"s{index}", newest=3)
        assert store.list_runs(p.RunFilter(f"s{index}", live=True)).items == ()
        assert len(store.list_runs(p.RunFilter(f"s{index}")).items) == rounds
    store.close()


@pytest.mark.timeout(120)
def test_four_processes_may_make_the_same_new_store_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from aura.store.open import open_store\n"
        "from tests.unit.store.store_kit import header\n"
        "store = open_store(Path(sys.argv[1])); sys.stdin.read()\n"
        "store.create_session(header(sys.argv[2])); store.close()"
    )
    for attempt in range(3):
        folder = tmp_path / str(attempt) / "sessions"
        children = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(folder), f"s{index}"],
                stdin=subprocess.PIPE,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            for index in range(4)
        ]
        for child in children:
            child.communicate(timeout=60)
        assert [child.returncode for child in children] == [0, 0, 0, 0]
        store = open_store(folder)
        assert len(store.list_sessions(p.SessionFilter()).items) == 4
        store.close()
