"""Fills the disk under a live host from its Nth write on, or lets it fail, and makes it well again: a run ends all the
same, and the host works on."""

from __future__ import annotations

import io
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aura.clock import SystemClock
from aura.config.homes import Homes
from aura.errors import AuraError, StoreFull, StoreUnavailable
from aura.runs import Run
from aura.runtime.assembly import Assembly, Plan, assemble
from aura.runtime.log import Log
from aura.runtime.signals import ThreadSignal
from tests.support.fault_vfs import Fault, FaultVfs, Kind
from tests.support.raw_server import lay_home
from tests.support.store_faults import Tally, unsound

FULL_WAIT_S = 1.0  # a run that has not ended by then waits for room
ROOM_WAIT_S = 20.0


def fill_each(vfs: FaultVfs, root: Path, kind: Kind, step: int = 1, first: int = 1) -> Tally:
    """Fault operation `first`, `first + step`, … of a run and all later ones, until the run has none of that number."""
    tally = Tally("host", f"{kind}, from")
    at = first
    while True:
        place = root / f"full-{at}"
        with host(place) as assembly:
            fault = Fault(kind, "from", at)
            run, refusal = run_on_bad_disk(vfs, assembly, place, fault)
            problems = [*find_problems(assembly, run, refusal)]
        problems += unsound(place / "home" / "sessions", "afterwards")
        shutil.rmtree(place)
        if not fault.hits:
            return tally
        tally.attempts += 1
        ended_well = run is not None and run.state == "persisted"
        tally.done += ended_well
        tally.refused += not ended_well
        tally.violations += [f"operation {at}: {problem}" for problem in problems]
        at += step


def run_on_bad_disk(
    vfs: FaultVfs, assembly: Assembly, place: Path, fault: Fault
) -> tuple[Run | None, AuraError | None]:
    """Run a prompt while the disk is bad, and wait for its end until some time after it is well again.

    Return the run, None if it was refused, and how it was refused.
    """
    refusal: AuraError | None = None
    run: Run | None = None
    with vfs.failing(place / "home" / "sessions", fault):
        try:
            run = assembly.service.submit("first", "prompt", "bash", "block").run
            wait_terminal(assembly, run.id, FULL_WAIT_S)
        except AuraError as error:
            refusal = error
    if run is not None:
        run = wait_terminal(assembly, run.id, ROOM_WAIT_S) or run
    return run, refusal


def find_problems(assembly: Assembly, run: Run | None, refusal: AuraError | None) -> Iterator[str]:
    """Yield what is wrong with a run on a bad disk, and with one after it, when the disk is well."""
    if refusal is not None and not isinstance(refusal, (StoreFull, StoreUnavailable)):
        yield f"it failed with {type(refusal).__name__}: {refusal}"
    if run is not None and run.state not in ("persisted", "persist_failed"):
        yield f"the run is {run.state}"
    elif run is not None and run.outcome == "failed" and (run.error is None or run.error.code != "persist_failed"):
        yield f"the run failed with {run.error}"
    again = submit_again(assembly)
    if again is None or (again.state, again.outcome) != ("persisted", "completed"):
        yield f"with the disk well again a run is {again.state if again else 'refused'}"


def submit_again(assembly: Assembly) -> Run | None:
    """Submit another prompt, for a while if it is refused, and wait for its end."""
    deadline_s = time.monotonic() + ROOM_WAIT_S
    while time.monotonic() < deadline_s:
        try:
            run = assembly.service.submit("second", "prompt", "hello", "block").run
        except AuraError:
            threading.Event().wait(0.05)
            continue
        return wait_terminal(assembly, run.id, ROOM_WAIT_S)
    return None


def wait_terminal(assembly: Assembly, run_id: str, wait_s: float) -> Run | None:
    """Return the terminal record, or None when there is none within `wait_s`."""
    deadline_s = time.monotonic() + wait_s
    while time.monotonic() < deadline_s:
        run = assembly.service.get_run(run_id)
        if run.terminal:
            return run
        threading.Event().wait(0.01)
    return None


@contextmanager
def host(place: Path) -> Iterator[Assembly]:
    """A session's host in this process, on a store of its own."""
    home, workspace = place / "home", place / "workspace"
    lay_home(home)
    workspace.mkdir(parents=True)
    clock = SystemClock()
    plan = Plan(Homes((home,), home, workspace), workspace)
    made = assemble(plan, url=None, make_signal=ThreadSignal, clock=clock, log=Log(clock, io.StringIO()))
    try:
        yield made
    finally:
        made.service.stop("request")
        made.service.wait_stopped(60_000)
        made.close()
