"""Fails the Nth operation of the disk for N = 1, 2, 3 … until a scenario meets no failure, and cuts the power at each
sync. After each it checks that the process said so, and that the store is sound."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aura.errors import AuraError, CommitInDoubt, StoreFull, StoreUnavailable
from tests.support.fault_vfs import Fault, FaultVfs, Kind, Mode
from tests.support.store_scenarios import Stage, check_store

SAID_CLEARLY = (StoreUnavailable, StoreFull, CommitInDoubt)
WAYS: tuple[tuple[Kind, Mode], ...] = (("io", "once"), ("io", "from"), ("full", "once"), ("full", "from"))
LEFT_TO_THE_NEXT_SERVER = frozenset(("run_unowned",))


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
            error = attempt(stage, directory)
        if not fault.hits:
            return tally
        judge(stage, directory, error, f"operation {at}", tally)
        at += step


def cut_each(vfs: FaultVfs, stage: Stage, chance: random.Random, step: int = 1, first: int = 1) -> Tally:
    """Cut the power at sync `first`, `first + step`, …, and after the last one."""
    tally = Tally(stage.scenario.name, "power cut")
    at = first
    while True:
        directory = stage.copy()
        with vfs.forgetting(directory, at) as disk:
            error = attempt(stage, directory)
        after = directory.with_name(f"{directory.name}-after")
        disk.cut(after, chance)
        was_cut = vfs.is_cut
        judge(stage, after, error, f"sync {at}", tally)
        remove(after)
        if not was_cut:
            return tally
        at += step


def attempt(stage: Stage, directory: Path) -> BaseException | None:
    """Do the verb; return how it failed, or None."""
    try:
        stage.scenario.act(directory)
    except Exception as error:  # noqa: BLE001 whatever it is, it is judged
        return error
    return None


def judge(stage: Stage, directory: Path, error: BaseException | None, where: str, tally: Tally) -> None:
    """Note what is wrong after an attempt: with its error, with the store, with doing it again."""
    tally.attempts += 1
    tally.refused += error is not None
    tally.done += error is None
    problems = list(find_problems(stage, directory, error))
    tally.violations += [f"{where}: {problem}" for problem in problems]


def find_problems(stage: Stage, directory: Path, error: BaseException | None) -> Iterator[str]:
    """Yield what is wrong."""
    if error is not None and not isinstance(error, SAID_CLEARLY):
        yield f"it failed with {type(error).__name__}: {error}"
    try:
        yield from unsound(directory, "afterwards")
        if error is None and (missing := stage.scenario.holds(directory)):
            yield f"it was acknowledged, but {missing}"
        stage.scenario.again(directory)
        if missing := stage.scenario.holds(directory):
            yield f"done again: {missing}"
        yield from unsound(directory, "done again")
    except AuraError as failure:
        yield f"without a fault: {type(failure).__name__}: {failure}"


def unsound(directory: Path, when: str) -> Iterator[str]:
    """Yield what a whole check finds, but for what the next server settles."""
    report = check_store(directory)
    for finding in report.findings if report else ():
        if finding.code not in LEFT_TO_THE_NEXT_SERVER:
            yield f"{when}: {finding.code}: {finding.message}"


def remove(directory: Path) -> None:
    """Remove the files of a store that was cut."""
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()
