"""What is said of runs whose server is gone: pure, for the next server, for freezing and for imports alike."""

from __future__ import annotations

from collections.abc import Sequence

from aura.conversation import Summary
from aura.events import InputResolved, RunLost, Stamped
from aura.runs import Run
from aura.store.protocol import Input

ANSWERED_BY = "recovery"


def lost_events(
    runs: Sequence[Run], inputs: Sequence[Input], session: Summary, persisted_seq: int, at_ms: int
) -> tuple[Stamped, ...]:
    """Return the events that settle `runs` as lost, each directly after the dismissal of its pending inputs.

    `session` is the session as it was found, `persisted_seq` the seq of its latest save (interfaces.md section 9).
    """
    events: list[Stamped] = []
    for run in runs:
        for item in inputs:
            if item.run_id == run.id and item.state == "pending":
                resolved = InputResolved(input_id=item.id, answer=None, answered_by=ANSWERED_BY)
                events.append(Stamped(at_ms, resolved, run.id))
        lost = RunLost(revision=session.revision, messages=session.messages, persisted_seq=persisted_seq)
        events.append(Stamped(at_ms, lost, run.id))
    return tuple(events)
