"""Ends a run: exactly one terminal record, whatever the disk does (contract.md, Runs; DESIGN.md section 4, Full disk).

The session's save and the terminal record are one commit. If the store refuses it, the run ends `persist_failed`,
with the ballast's room; if even that is refused, it is tried again until the server stops, and the next server
records the loss.
"""

from __future__ import annotations

import threading

from aura import events as e
from aura import limits
from aura.engine.lane import TurnOutcome
from aura.errors import AuraError, Internal, LeaseLost
from aura.events import Event, Reason
from aura.runs import RunError, RunResult
from aura.runtime.lane import Session, persist_error
from aura.runtime.log import Log


def settle(
    session: Session, run_id: str, outcome: TurnOutcome, reason: Reason, stop: threading.Event, log: Log
) -> bool:
    """Save the session and end the run; return True once it is terminal, False if `stop` was set before.

    Run thread only.
    """
    finished = _finished(outcome)
    try:
        session.recorder.save(reason, run_id, before=(finished,), after=(e.RunPersisted(),))
        return True
    except LeaseLost as error:
        log.warning("run", f"{run_id}: {error.message}")
        return False
    except AuraError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 a fault of ours must not leave a run without its terminal record
        failure = Internal(f"unexpected fault {log.fault(run_id, error)}; the server's log has more")
    log.warning("run", f"{run_id}: the last save failed: {failure.message}")
    return _settle_failed(session, run_id, finished, persist_error(failure), reason, stop, log)


def _settle_failed(
    session: Session,
    run_id: str,
    finished: e.RunFinished,
    error: RunError,
    reason: Reason,
    stop: threading.Event,
    log: Log,
) -> bool:
    events: tuple[Event, ...] = (
        finished,
        e.SessionPersistFailed(error=error, reason=reason),
        e.RunPersistFailed(error=error),
    )
    while True:
        try:
            session.recorder.settle_earlier()  # a commit that was in doubt may have come true
            if session.store.get_run(run_id).terminal:
                return True
            session.recorder.commit(events, run_id, essential=True)
            return True
        except LeaseLost as lost:
            log.warning("run", f"{run_id}: {lost.message}")
            return False
        except AuraError as again:
            log.warning("run", f"{run_id}: the terminal record is refused: {again.message}")
        if stop.wait(limits.SETTLE_RETRY_MS / 1000):
            return False


def _finished(outcome: TurnOutcome) -> e.RunFinished:
    result = None if outcome.content is None else RunResult(outcome.content)
    return e.RunFinished(outcome=outcome.outcome, error=outcome.error, result=result)
