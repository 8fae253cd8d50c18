"""One run of the gateway at work on its thread: agent, conversation, turn, terminal record.

It ends in exactly one terminal record, whatever happens; then the session is let go. Who reads, and how long somebody
may take, is decided elsewhere: it obeys its scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from aura import events as e
from aura.clock import format_time
from aura.config.spec import AgentSpec
from aura.engine.lane import TurnOutcome
from aura.engine.scope import Scope
from aura.errors import AuraError
from aura.ids import new_message_id
from aura.runs import Run, RunError
from aura.runtime.gateway.agents import AgentMaker, Ready
from aura.runtime.gateway.conversation import reconcile
from aura.runtime.lane import MainLane, Session
from aura.runtime.log import Log
from aura.runtime.selection import store_selection
from aura.wire.chat_request import ChatMessage, OfferedTool


@dataclass(frozen=True, slots=True)
class Job:
    """What a run is to do. `headers` are those of its request, by lower-cased name: they live as long as the run, in
    memory only.
    """

    spec: AgentSpec
    conversation: tuple[ChatMessage, ...]
    prompt: str | None
    tools: tuple[OfferedTool, ...] = ()
    observer: e.Observer | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def work(job: Job, run: Run, session: Session, scope: Scope, maker: AgentMaker, log: Log) -> TurnOutcome:
    """Return how the run ended; nothing terminal is recorded yet. Run thread only; raises nothing."""
    try:
        ready = maker.make(job.spec, run.id, job.tools, job.headers)
    except AuraError as error:
        return TurnOutcome("failed", RunError(error.code, error.message, error.retryable, error.details))
    except Exception as error:  # noqa: BLE001 a fault of ours must not leave a run without its terminal record
        return _fault(run, error, log)
    try:
        return _turn(job, run, session, scope, ready)
    except Exception as error:  # noqa: BLE001 the same
        return _fault(run, error, log)
    finally:
        ready.close()


def _turn(job: Job, run: Run, session: Session, scope: Scope, ready: Ready) -> TurnOutcome:
    from aura.engine.turn import run_turn

    history, clock = session.saver.history, session.clock
    now_ms = clock.now_ms()
    reconcile(history, job.conversation, partial(new_message_id, now_ms), format_time(now_ms))
    history.system = ready.agent.prompt
    store_selection(history.meta, job.spec, job.spec)
    return run_turn(_lane(job, run, session, scope, ready), ready.agent, history, job.prompt)


def _lane(job: Job, run: Run, session: Session, scope: Scope, ready: Ready) -> MainLane:
    model = job.spec.model
    opening: list[e.Event] = [e.SessionInfo(model=model.name, context_limit=model.context)]
    if ready.servers:
        opening.append(e.McpStatus(servers=ready.servers))
    if job.observer is not None:
        opening.append(e.ObserverAttached(observer=job.observer))
    return MainLane(session, run, scope, full=True, opening=tuple(opening))


def _fault(run: Run, error: Exception, log: Log) -> TurnOutcome:
    fault_id = log.fault(run.id, error)
    return TurnOutcome("failed", RunError("internal", f"unexpected fault {fault_id}; the server's log has more"))
