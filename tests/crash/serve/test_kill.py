"""kill -9 of a busy server at random points, again and again, on one session; then: nothing that anybody was told is
lost.

`AURA_CRASH_POINTS` scales it, `AURA_CRASH_SEED` repeats it.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura.store.open import open_store
from aura_automation import AutomationError, Client, Event
from tests.support.serving import TOKEN, WAIT_S, Running, Site, bash, calls, until

POINTS = int(os.environ.get("AURA_CRASH_POINTS", "50"))
SEED = int(os.environ.get("AURA_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
STEPS = 3
WORK_S = 0.35  # a run takes about a fifth of it: kills fall into every part of several runs
START_S = 0.7  # a start takes a little less: such kills fall into the start and its recovery
TERMINAL = frozenset(("run.persisted", "run.persist_failed", "run.lost"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose model makes three rounds of calls for every prompt; each command leaves a line behind."""
    made = Site(tmp_path)
    turns = []
    for step in range(1, STEPS + 1):
        command = bash(f"echo '{{{{user}}}} step {step}' >> ran; sleep 0.005; echo did {step}", f"call_{step}")
        last = "^work " if step == 1 else f"did {step - 1}"
        look = {"id": f"look_{step}", "name": "Ls", "arguments": {"path": "."}}
        turns.append(calls(look, command, when={"last": last}, repeat="forever", thinking="hm"))
    turns.append({"content": "all done", "repeat": "forever"})
    made.script(*turns)
    yield made
    made.end()


class Witness:
    """Everything that a controller and a reader were ever told."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.runs: dict[str, str] = {}  # request id -> run id, as acknowledged
        self.request = 1
        self.contradictions: list[str] = []
        self._lock = threading.Lock()

    def see(self, event: Event) -> None:
        """Note an event; it must be what was told before."""
        with self._lock:
            if self.events.setdefault(event.seq, event) != event:
                self.contradictions.append(f"event {event.seq} was {self.events[event.seq]}, is {event}")

    def acknowledge(self, request_id: str, run_id: str) -> None:
        """Note which run a request made; it must be the same for ever."""
        with self._lock:
            if self.runs.setdefault(request_id, run_id) != run_id:
                self.contradictions.append(f"{request_id} made {self.runs[request_id]} and {run_id}")

    def control(self, server: Running) -> None:
        """Submit one run after another and follow each, until the server is gone. A thread's work."""
        with server.handle.client(retry_s=0) as client:
            try:
                while True:
                    request_id = f"r{self.request}"
                    run = client.submit(request_id, prompt=f"work {request_id}")
                    self.acknowledge(request_id, run.id)
                    self._follow(client, run.id)
                    self.request += 1
            except AutomationError:
                return

    def read(self, server: Running) -> None:
        """Read the stream until the server is gone. A thread's work."""
        with server.handle.client(retry_s=0) as client:
            try:
                for event in client.events(max(self.events, default=0), transient=True, reconnect_s=0):
                    if isinstance(event, Event):
                        self.see(event)
            except AutomationError:
                return

    def _follow(self, client: Client, run_id: str) -> None:
        client.wait(run_id, on_event=self.see, reconnect_s=0)


@pytest.mark.requirement("process.survives-controllers", "journal.durable")
def test_whatever_was_told_survives_kills_at_random_points(site: Site) -> None:
    dice = random.Random(SEED)
    witness = Witness()
    server = site.launch()
    session_id = server.session_id
    checked_revisions = 0
    for point in range(1, POINTS + 1):
        work(server, witness, dice.uniform(0, WORK_S))
        if dice.random() < 0.2:
            kill_while_starting(site, session_id, dice.uniform(0.1, START_S))
        server = site.launch(session_id)
        told = f"point {point} of seed {SEED}"
        events = server.events()
        check_events(events, witness, told)
        check_runs(events, witness, told)
        check_work(events, site.lines("ran"), told)
        checked_revisions = check_revisions(site, checked_revisions, told)
        until(lambda: not site.strays(), f"the end of the killed server's processes, {told}")
    assert server.stop() == 0
    assert check_revisions(site, 0, f"the end of seed {SEED}") > POINTS / 2, "the kills came before much was saved"
    assert len(witness.runs) > POINTS / 2, "the kills came before any work was done"
    assert not site.rows("SELECT 1 FROM run WHERE state NOT IN ('persisted', 'lost')")
    assert site.rows("PRAGMA integrity_check") == [("ok",)]


def work(server: Running, witness: Witness, for_s: float) -> None:
    """Keep the server busy for a while, then kill it."""
    threads = [threading.Thread(target=role, args=(server,), daemon=True) for role in (witness.control, witness.read)]
    for thread in threads:
        thread.start()
    threading.Event().wait(for_s)
    server.kill()
    server.end()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the client does not notice that its server is dead"


def kill_while_starting(site: Site, session_id: str, after_s: float) -> None:
    """Start a server and kill it before, or just after, it is ready."""
    process = site.spawn(
        "serve",
        "--ready-file",
        str(site.root / "unused.json"),
        flags=["--resume", session_id],
        environment={"AURA_SERVE_TOKEN": TOKEN},
    )
    threading.Event().wait(after_s)
    process.kill()
    process.wait(WAIT_S)


def check_events(events: list[Event], witness: Witness, told: str) -> None:
    """What was received is what is stored, and there is no hole."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), told
    stored = {event.seq: event for event in events}
    lost = [event for seq, event in witness.events.items() if stored.get(seq) != event]
    assert (lost, witness.contradictions) == ([], []), told


def check_runs(events: list[Event], witness: Witness, told: str) -> None:
    """Every accepted run has one terminal record, and no request made two runs."""
    accepted = Counter(event.run_id for event in events if event.type == "run.accepted")
    ended = Counter(event.run_id for event in events if event.type in TERMINAL)
    assert accepted == ended, told
    assert set(accepted.values()) <= {1}, told
    requests = Counter(str(event.data["run"]["request_id"]) for event in events if event.type == "run.accepted")
    assert set(requests.values()) <= {1}, told
    assert set(witness.runs.values()) <= set(accepted), told


def check_work(events: list[Event], lines: list[str], told: str) -> None:
    """No command ran twice, none ran without a record, and a run that completed has done all its work."""
    started = Counter(
        str(event.data["args"]["command"])
        for event in events
        if event.type == "tool.started" and event.data["name"] == "Bash"
    )
    done = Counter(lines)
    assert set(started.values()) | set(done.values()) <= {1}, told
    for line in done:
        assert any(f"echo '{line}'" in command for command in started), f"{line}: {told}"
    for event in events:
        if event.type == "run.persisted" and event.data["run"]["outcome"] == "completed":
            request_id = event.data["run"]["request_id"]
            steps = [f"work {request_id} step {step}" for step in range(1, STEPS + 1)]
            assert [line for line in lines if line.startswith(f"work {request_id} ")] == steps, told


def check_revisions(site: Site, after: int, told: str) -> int:
    """Every stored revision exports to bytes that hash to its name; return the newest one's number."""
    store = open_store(site.sessions)
    newest = after
    try:
        for session_id, number, sha256 in site.rows(
            "SELECT s.id, v.n, v.sha256 FROM revision v JOIN session s ON s.sid = v.sid WHERE v.n > ? ORDER BY v.n",
            after,
        ):
            digest = hashlib.sha256()
            for piece in store.export(session_id, sha256)[1]:
                digest.update(piece)
            assert digest.hexdigest() == sha256, told
            newest = number
    finally:
        store.close()
    return newest
