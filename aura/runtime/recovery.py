"""What the next server does about a crash: ends the processes that were left, and says which runs were lost."""

from __future__ import annotations

from dataclasses import dataclass

from aura.engine.executors.groups import end_group
from aura.events import Stamped
from aura.runtime.log import Log
from aura.store.lost import lost_events
from aura.store.protocol import RunFilter, Store


@dataclass(frozen=True, slots=True)
class Recovered:
    """The events that settle what a dead server left behind, and how many runs that are."""

    events: tuple[Stamped, ...]
    run_count: int


def recover(store: Store, session_id: str, persisted_seq: int, now_ms: int, log: Log) -> Recovered:
    """Return what must be recorded of unsettled runs; their process groups have ended when this returns.

    The caller holds the session's lease, so no live run of it can exist.
    """
    runs = tuple(reversed(store.list_runs(RunFilter(session_id, live=True)).items))
    inputs = [item for run in runs for item in store.list_inputs(run.id)]
    for run in runs:
        for pid, start_time in store.list_processes(run.id):
            if end_group(pid, start_time):
                log.warning("recovery", f"ended process group {pid}, left by run {run.id}")
    events = lost_events(runs, inputs, store.get_session(session_id), persisted_seq, now_ms)
    return Recovered(events, len(runs))
