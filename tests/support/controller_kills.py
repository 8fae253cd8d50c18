"""Kills a controller and its servers at random while they work, and lets them end.

What is left is checked by `controller_promises`. The controller is `scripts/demo/controller.py`, the program of
docs/controller.md, in processes of its own. Everything happens in one directory. It ends only processes that it
started, or that a ready file in that directory names.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CONTROLLER = CHECKOUT / "scripts" / "demo" / "controller.py"
AGENT = """---
name: main
default: true
model: {provider: script, name: scripted}
tools: {enabled: ["*"]}
---
Be careful.
"""
# Two commands whose effects can be counted, and a question between them. An effect holds the prompt on one line, which
# says the attempt, so that each effect belongs to one run.
SCRIPT = """
turns:
  - when: {last: "^(do |You were)"}
    repeat: forever
    calls:
      - name: Bash
        arguments: {command: "echo 'first {{ user.split() | join(' ') }}' >> effects; sleep 0.1; echo first done"}
  - when: {last: "first done"}
    repeat: forever
    calls: [{name: Ask, arguments: {question: "Which way?"}}]
  - when: {last: "Decide yourself"}
    repeat: forever
    calls:
      - name: Bash
        arguments: {command: "echo 'second {{ user.split() | join(' ') }}' >> effects; sleep 0.1; echo second done"}
  - repeat: forever
    content: all done
"""
LIFE_MIN_S, LIFE_MAX_S = 0.02, 1.1  # a job takes about a second alone: kills fall into every part of it
BATCH_COUNT = 8  # jobs at first, and again when all are done and kills are left
END_S = 240
GONE_S = 20


@dataclass(frozen=True, slots=True)
class Kills:
    """How many kills of each kind."""

    controller: int
    server: int


@dataclass(slots=True)
class Report:
    """What happened, and what was found wrong."""

    seed: int
    controller_kills: int = 0
    server_kills: int = 0
    starts: int = 0
    jobs: int = 0
    runs: int = 0
    lost_runs: int = 0
    events: int = 0
    revisions: int = 0
    effects: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)


class Place:
    """The directory: a home, a workspace, a list of jobs and the controller's state."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.workspace, self.state = root / "home", root / "workspace", root / "state"
        self.jobs_path, self.log_path = root / "jobs.jsonl", root / "controller.log"
        self.jobs: list[str] = []
        self.program = root / "aura"
        for name, text in (
            ("config/agents/main.md", AGENT),
            ("config/providers/script.yaml", "script: {type: script, file: script.yaml}\n"),
            ("script.yaml", SCRIPT),
        ):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        self.workspace.mkdir()
        self.program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aura "$@"\n')
        self.program.chmod(0o700)
        self.environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'clients' / 'python'}"}

    def add_jobs(self, count: int) -> None:
        """Append jobs to the list."""
        names = [f"job-{len(self.jobs) + 1 + n}" for n in range(count)]
        self.jobs += names
        with self.jobs_path.open("a") as file:
            file.writelines(json.dumps({"id": name, "prompt": f"do {name}"}) + "\n" for name in names)

    def start_controller(self) -> subprocess.Popen[bytes]:
        """Start the controller, in a process group of its own."""
        command = [sys.executable, str(CONTROLLER), str(self.jobs_path), str(self.state), "--"]
        command += [str(self.program), "--home", "", "--config", str(self.home)]
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.workspace, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def aura(self, *words: str) -> bytes:
        """Run an offline command that must succeed; return its output."""
        command = [str(self.program), "--home", "", "--config", str(self.home), *words]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, timeout=60).stdout

    def find_failure(self, *words: str) -> str | None:
        """Run an offline command; return what it says if it fails."""
        try:
            self.aura(*words)
        except subprocess.CalledProcessError as error:
            return str((error.stdout + error.stderr).decode("utf-8", "replace")).strip()
        return None

    def find_servers(self) -> list[int]:
        """Return the processes of live servers that ready files name."""
        pids = []
        for path in (self.state / "ready").glob("*.json"):
            try:
                pid = json.loads(path.read_text())["pid"]
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError, KeyError):
                continue
            if str(path).encode() in words:
                pids.append(pid)
        return pids

    def find_processes(self) -> list[str]:
        """Return what still runs in this directory: by its working directory or its command line.

        One that has ended and waits to be reaped has no directory. One that is about to begin has no words yet.
        """
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                where = os.readlink(entry / "cwd")
            except OSError:
                continue
            if where.startswith(f"{self.root}/") or f"{self.root}/" in words:
                found.append(f"{entry.name}: {words.strip()[:120]}")
        return found


def play(
    root: Path, kills: Kills, seed: int, say: Callable[[str], object], *, batch_count: int = BATCH_COUNT
) -> tuple[Place, Report]:
    """Work through jobs while killing; return once all jobs are done and nothing that was started is left.

    `say` gets a line now and then. What did not end in time, or ended with another status than 0, is a violation.
    """
    chance = random.Random(seed)
    place, report = Place(root), Report(seed)
    left = ["controller"] * kills.controller + ["server"] * kills.server
    chance.shuffle(left)
    place.add_jobs(batch_count)
    started_s = time.monotonic()
    controller = place.start_controller()
    report.starts += 1
    try:
        while left:
            pause(controller, chance.uniform(LIFE_MIN_S, LIFE_MAX_S))
            if controller.poll() is not None:
                check_end(place, controller, report)
                place.add_jobs(batch_count)
            elif left[-1] == "controller":
                left.pop()
                controller.send_signal(signal.SIGKILL)
                controller.wait()
                report.controller_kills += 1
            elif kill_servers(place.find_servers(), chance):
                left.pop()
                report.server_kills += 1
                continue
            else:
                continue
            controller = place.start_controller()
            report.starts += 1
            if report.starts % 20 == 0:
                say(f"{len(left)} kills left, {len(place.jobs)} jobs")
        controller.wait(END_S)
        check_end(place, controller, report)
    except subprocess.TimeoutExpired:
        report.violations.append(f"the controller did not end within {END_S} s")
    finally:
        clean_up(place, controller, report)
    report.jobs, report.seconds = len(place.jobs), time.monotonic() - started_s
    return place, report


def kill_servers(servers: list[int], chance: random.Random) -> bool:
    """Kill servers, each alone or with its process group, which it leads; tell whether one was there to kill."""
    killed = False
    for pid in servers:
        kill = chance.choice((os.kill, os.killpg))
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
            killed = True
    return killed


def pause(controller: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait, or until the controller ends."""
    with suppress(subprocess.TimeoutExpired):
        controller.wait(seconds)


def check_end(place: Place, controller: subprocess.Popen[bytes], report: Report) -> None:
    """Note a controller that did not end well."""
    if controller.returncode != 0:
        tail = place.log_path.read_text()[-800:]
        report.violations.append(f"a controller ended with status {controller.returncode}: {tail}")


def clean_up(place: Place, controller: subprocess.Popen[bytes], report: Report) -> None:
    """End what should have ended by itself, and say so."""
    if controller.poll() is None:
        controller.kill()
        controller.wait()
    deadline_s = time.monotonic() + GONE_S
    while (found := place.find_processes()) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    report.violations += [f"still running: {line}" for line in found]
    for line in found:
        with suppress(ProcessLookupError):
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
