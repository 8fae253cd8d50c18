"""What acknowledged appends cost: alone, by 32 threads, by 8 processes, and what the WAL does under constant readers.

Run as a program it is one of the processes: `appends.py DIRECTORY SESSION SECONDS` appends as fast as it can and prints
how many appends it made and the longest one, in ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import apsw

from aura import events as e
from aura.clock import format_time
from aura.conversation import Header
from aura.events import Stamped
from aura.store import protocol as p
from aura.store.open import open_store
from aura.store.sqlite.database import DATABASE_NAME
from aura.store.sqlite.store import SqliteStore

NOW_MS = 1_767_225_600_000
EVENT_BYTES = 400  # of its line, about; the raw append writes as many
THREADS_COUNT = 32
PROCESSES_COUNT = 8
READERS_COUNT = 3


@dataclass(frozen=True, slots=True)
class Appends:
    """Medians in ms, rates per second."""

    raw_ms: float
    lone_ms: float
    raw_rate: float
    concurrent_rate: float


class Session:
    """A held session that is appended to."""

    def __init__(self, store: SqliteStore, name: str) -> None:
        self.store = store
        if store.find_session(name) is None:
            at = format_time(NOW_MS)
            store.create_session(Header(name, "Bench", at, at))
        self.lease = store.acquire(name, p.Holder(os.getpid()))
        self.count = 0

    def append(self) -> None:
        """Append one event and wait until it is committed."""
        self.count += 1
        event = e.Notice(level="info", origin="bench", message="x" * (EVENT_BYTES - 150))
        batch = p.Batch(f"{self.lease.session_id}-{os.getpid()}-{self.count}", (Stamped(NOW_MS, event, None),))
        self.store.commit(self.lease, batch).result(30)


def raw_append(fd: int) -> None:
    """Append and sync as many bytes as an event has."""
    os.write(fd, b"x" * EVENT_BYTES)
    os.fsync(fd)


def timed_ms(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def measure_appends(directory: Path, rounds: int) -> Appends:
    """Measure raw and lone appends in turns, then 32 threads that each append to a session of their own."""
    store = open_store(directory)
    fd = os.open(directory / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    alone = Session(store, "alone")
    raw, lone = [], []
    for number in range(rounds + 50):
        times = timed_ms(lambda: raw_append(fd)), timed_ms(alone.append)
        if number >= 50:  # the first ones warm up
            raw.append(times[0])
            lone.append(times[1])
    sessions = [Session(store, f"thread-{n}") for n in range(THREADS_COUNT)]
    each = max(rounds // 4, 20)

    def work(session: Session) -> None:
        for _ in range(each):
            session.append()

    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    seconds = timed_ms(lambda: run_all(threads)) / 1000
    os.close(fd)
    store.close()
    return Appends(
        statistics.median(raw), statistics.median(lone), 1000 / statistics.mean(raw), THREADS_COUNT * each / seconds
    )


def run_all(threads: list[threading.Thread]) -> None:
    """Start all and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure_processes(directory: Path, seconds: float) -> tuple[int, int, float]:
    """Let 8 processes append to one store; return (appends, processes that failed, longest append in ms)."""
    open_store(directory).close()
    command = [sys.executable, str(Path(__file__).resolve()), str(directory)]
    children = [
        subprocess.Popen([*command, f"process-{n}", str(seconds)], stdout=subprocess.PIPE, text=True)
        for n in range(PROCESSES_COUNT)
    ]
    answers = [child.communicate(timeout=seconds + 60)[0].split() for child in children]
    failed = sum(child.returncode != 0 for child in children)
    good = [answer for answer in answers if len(answer) == 2]
    return sum(int(count) for count, _ in good), failed, max((float(longest) for _, longest in good), default=0.0)


def measure_wal(directory: Path, seconds: float) -> float:
    """Append while readers follow one another without a pause; return the largest WAL in MiB."""
    store = open_store(directory)
    session = Session(store, "wal")
    path = directory / DATABASE_NAME
    end_s, largest = time.monotonic() + seconds, 0

    def read() -> None:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        while time.monotonic() < end_s:
            connection.execute("SELECT count(*), max(length(data)) FROM event").fetchall()
        connection.close()

    readers = [threading.Thread(target=read) for _ in range(READERS_COUNT)]
    for reader in readers:
        reader.start()
    while time.monotonic() < end_s:
        session.append()
        largest = max(largest, path.with_name(f"{DATABASE_NAME}-wal").stat().st_size)
    for reader in readers:
        reader.join()
    store.close()
    return largest / (1 << 20)


def main() -> None:
    """Be one of the processes."""
    directory, name, seconds = sys.argv[1:]
    session = Session(open_store(Path(directory)), name)
    longest, count, end_s = 0.0, 0, time.monotonic() + float(seconds)
    while time.monotonic() < end_s:
        longest = max(longest, timed_ms(session.append))
        count += 1
    session.store.release(session.lease)
    session.store.close()
    print(count, longest)


if __name__ == "__main__":
    main()
