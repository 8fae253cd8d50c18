"""Fails the Nth operation of the disk for N = 1, 2, 3 … until a scenario meets no failure, and cuts the power at each
sync. After each it checks that the process said so, and that the store is sound."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aura.errors import CommitInDoubt, StoreFull, StoreUnavailable
from tests.support.fault_vfs import Fault, FaultVfs, Kind, Mode
from tests.support.store_scenarios import Stage, Told, check_store, find_lost

SAID_CLEARLY = (StoreUnavailable, StoreFull, CommitInDoubt)
WAYS: tuple[tuple[Kind, Mode], ...] = (("io", "once"), ("io", "from"), ("full", "once"), ("full", "from"))
LEFT_TO_THE_NEXT_SERVER = frozenset(("run_unowned",))
LEFT_TO_THE_NEXT_PRUNE = frozenset(("half_removed",))


@dataclass(slots=True)
class Tally:
    """What was tried of one scenario in one way."""

    scenario: str
    way: str
    attempts: int = 0
    refused: int = 0  # the verb failed, and said so
    done: int = 0  # the verb succeeded all the same
    violations: list[str] = field(default_factory=list)


def fail_each(vfs: FaultVfs, stage: Stage, kind: Kind, mode: Mode, step: int = 1, first: int = 1) -> Tally:
    """Fail operation `first`, `first + step`, … until there is none of that number."""
    tally = Tally(stage.scenario.name, f"{kind}, {mode}")
    at = first
    while True:
        directory = stage.copy()
        with vfs.failing(directory, Fault(kind, mode, at)) as fault:
            outcome = attempt(stage, directory)
        if not fault.hits:
            return tally
        judge(stage, directory, outcome, f"operation {at}", tally)
        at += step


def cut_each(
    vfs: FaultVfs, stage: Stage, chance: random.Random, step: int = 1, first: int = 1, *, lose: bool = False
) -> Tally:
    """Cut the power at sync `first`, `first + step`, …, and after the last one.

    With `lose`, that sync fails and loses what it should have kept, the store goes on, and the power is cut at the end.
    """
    tally = Tally(stage.scenario.name, "lost sync" if lose else "power cut")
    at = first
    while True:
        directory = stage.copy()
        with vfs.forgetting(directory, *((None, at) if lose else (at, None))) as disk:
            outcome = attempt(stage, directory)
        after = directory.with_name(f"{directory.name}-after")
        disk.cut(after, chance)
        reached = vfs.is_cut or disk.syncs >= at
        judge(stage, after, outcome, f"sync {at}", tally)
        shutil.rmtree(after)
        if not reached:
            return tally
        at += step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a process was told: seqs that were acknowledged, and how the verb failed, if it did."""

    told: Told
    error: Exception | None


def attempt(stage: Stage, directory: Path) -> Outcome:
    """Do the verb."""
    told: Told = []
    try:
        stage.scenario.act(directory, told)
    except Exception as error:  # noqa: BLE001 whatever it is, it is judged
        return Outcome(told, error)
    return Outcome(told, None)


def judge(stage: Stage, directory: Path, outcome: Outcome, where: str, tally: Tally) -> None:
    """Note what is wrong after an attempt: with its error, with the store, with doing it again."""
    tally.attempts += 1
    tally.refused += outcome.error is not None
    tally.done += outcome.error is None
    tally.violations += [f"{where}: {problem}" for problem in find_problems(stage, directory, outcome)]


def find_problems(stage: Stage, directory: Path, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong."""
    error = outcome.error
    if error is not None and not isinstance(error, SAID_CLEARLY):
        yield f"it failed with {type(error).__name__}: {error}"
    try:
        yield from unsound(directory, "afterwards", LEFT_TO_THE_NEXT_SERVER | LEFT_TO_THE_NEXT_PRUNE)
        yield from find_lost(directory, outcome.told)
        if error is None and (missing := stage.scenario.holds(directory)):
            yield f"it was acknowledged, but {missing}"
        stage.scenario.again(directory)
        if missing := stage.scenario.holds(directory):
            yield f"done again: {missing}"
        yield from find_lost(directory, outcome.told)
        yield from unsound(directory, "done again")
    except Exception as failure:  # noqa: BLE001 with the disk well again nothing may fail
        yield f"without a fault: {type(failure).__name__}: {failure}"


def unsound(directory: Path, when: str, unfinished: frozenset[str] = LEFT_TO_THE_NEXT_SERVER) -> Iterator[str]:
    """Yield what a whole check finds, but for work that may be `unfinished`."""
    report = check_store(directory)
    for finding in report.findings if report else ():
        if finding.code not in unfinished:
            yield f"{when}: {finding.code}: {finding.message}"
