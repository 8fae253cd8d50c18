"""All that the api sees of a gateway: its agents, chats as runs with a claiming observer, health, and the way down.

Methods block: native threads only, never a hub; the waiter of the api takes them there. What a chat shows is read from
committed events like anything else; nothing is handed over on the side.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from aura import __version__
from aura import events as e
from aura.clock import Clock, format_time
from aura.config.gateway import GatewayAgents
from aura.config.spec import AgentSpec
from aura.errors import AuraError, BadRequest
from aura.events import Transient
from aura.ids import check_session_id, new_run_id
from aura.jsontypes import JsonValue
from aura.runs import NewRun, Run
from aura.runtime.feeds import Feed, Feeds
from aura.runtime.gateway.info import agent_info, model_entry
from aura.runtime.gateway.sessions import Sessions
from aura.runtime.gateway.work import Job
from aura.runtime.log import Log
from aura.runtime.place import Place
from aura.store.protocol import EventRow as EventRow
from aura.store.protocol import RunFilter, Store
from aura.wire import canonical
from aura.wire.automation import request_digest
from aura.wire.chat_request import ChatRequest

Fields = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Chat:
    """A run that somebody watches: its events come through `feed` after `after`, live items through `live`."""

    run: Run
    observer: e.Observer
    spec: AgentSpec
    feed: Feed
    live: deque[Transient]
    after: int
    leave: Callable[[], object]


class GatewayService:
    """The served agents. Any native thread; see each method for what it raises."""

    def __init__(
        self,
        agents: GatewayAgents,
        store: Store,
        sessions: Sessions,
        feeds: Feeds,
        place: Place,
        clock: Clock,
        log: Log,
        *,
        timeout_ms: int,
    ) -> None:
        self._agents = agents
        self._store = store
        self._sessions = sessions
        self._feeds = feeds
        self._place = place
        self._clock = clock
        self._timeout_ms = timeout_ms
        self.log = log

    # --- what there is ------------------------------------------------------------------------------------------

    def read_place(self) -> Fields:
        """Return what the ready file says (interfaces.md section 8)."""
        return self._place.ready_fields()

    def read_models(self) -> Fields:
        """Return `GET /v1/models` (gateway.md 2.4): agents that are not hidden."""
        shown = [model_entry(name, spec) for name, spec in self._agents.agents.items() if not spec.hidden]
        return {"object": "list", "data": shown}

    def read_info(self) -> Fields:
        """Return `GET /aura/info` (gateway.md 2.5): nothing of it is a secret, or could hold one."""
        shown = [agent_info(name, spec) for name, spec in self._agents.agents.items() if not spec.hidden]
        default: Fields = {"default_agent": self._agents.default} if self._agents.default is not None else {}
        return {**default, "agents": shown}

    def read_health(self) -> Fields:
        """Return `GET /health` (gateway.md 2.3): the store is asked, and its failure is part of the answer."""
        begun = time.monotonic_ns()
        try:
            self._store.list_runs(RunFilter(), limit=1)
            latency_ms = (time.monotonic_ns() - begun) // 1_000_000
            ping: Fields = {"ok": True, "latency_ms": latency_ms}
        except AuraError as error:
            ping = {"ok": False, "error": error.message}
        return {
            "status": "healthy" if ping["ok"] else "degraded",
            "timestamp": format_time(self._clock.now_ms()),
            "aura_version": __version__,
            "session_store": {"backend": "sqlite", "ping": ping},
        }

    @property
    def runs_count(self) -> int:
        """How many runs are at work. Any thread, a hub too."""
        return self._sessions.count

    def select_agent(self, model: str | None) -> AgentSpec:
        """Return the agent that a request means. Raises what says that there is none. Any thread, a hub too."""
        return self._agents.select(model)

    # --- chats --------------------------------------------------------------------------------------------------

    def start_chat(
        self, request: ChatRequest, spec: AgentSpec, request_id: str, session_id: str, headers: Mapping[str, str]
    ) -> Chat:
        """Start a run that answers `request`, in a session that is made as needed, and watch it.

        Raises `InvalidId`, `BadRequest`, `Busy`, `Overloaded`, `ShuttingDown`, `SessionLocked`, `SessionFrozen` and
        store errors. The caller calls `leave` of what is returned, in every case.
        """
        check_session_id(session_id)
        prompt = canonical.clean(request.prompt) if request.prompt is not None else None
        if prompt is not None and not prompt.strip():
            raise BadRequest("the last message has no content", details={"param": "messages"})
        now_ms = self._clock.now_ms()
        text = prompt if prompt is not None else _last_prompt(request)
        digest = request_digest("prompt", "wait", text)
        new = NewRun(new_run_id(now_ms), request_id, "prompt", text, "block", digest, now_ms)
        observer = e.Observer(f"obs_{request_id.removeprefix('req_')}", "claiming", presence=request.stream)
        job = Job(spec, request.earlier, prompt, request.tools, observer, headers)
        self._sessions.ensure(session_id)
        with ExitStack() as stack:
            feed = self._feeds.open(session_id)
            stack.callback(self._feeds.release, feed)
            live = stack.enter_context(feed.transients())
            run = self._sessions.start(session_id, new, job, self._timeout_ms)
            return Chat(run, observer, spec, feed, live, run.accepted_seq, stack.pop_all().close)

    def abandon(self, chat: Chat) -> None:
        """Note that the claiming observer of a live run is gone, which ends the run (gateway.md 7.7: cancel, no grace).

        Nothing happens to a run that has settled.
        """
        held = self._sessions.find_live(chat.run.id)
        if held is None or held.session is None:
            return
        detached = e.ObserverDetached(observer=chat.observer, because="released")
        decided = e.LivenessDecided(policy="cancel")
        held.session.recorder.record(detached, chat.run.id, e.ClaimsExhausted(), decided)
        self._request_cancel(chat, "unclaimed", "the caller is gone")

    def expire(self, chat: Chat, message: str) -> None:
        """Cancel a run because its stream took too long."""
        self._request_cancel(chat, "deadline", message)

    def read_events(self, session_id: str, after: int, limit: int) -> list[EventRow]:
        """Return events of a session after `after`. Raises store errors."""
        return self._store.read_events(session_id, after, limit)

    def _request_cancel(self, chat: Chat, reason: str, message: str) -> None:
        try:
            self._store.request_cancel(chat.run.id, reason=reason, message=message, at_ms=self._clock.now_ms())
        except AuraError as error:
            self.log.warning("gateway", f"{chat.run.id} is cancelled without a record: {error.message}")
            held = self._sessions.find_live(chat.run.id)
            if held is not None and held.scope is not None:
                held.scope.cancel("unclaimed" if reason == "unclaimed" else "deadline")

    # --- the way down -------------------------------------------------------------------------------------------

    def refuse_runs(self) -> None:
        """Accept no run from now on."""
        self._sessions.refuse()

    def cancel_runs(self) -> None:
        """Cancel all runs because the server ends."""
        self._sessions.cancel_all("shutdown")

    def wait_idle(self, timeout_ms: int) -> bool:
        """Return True once no run is at work, False after `timeout_ms`."""
        return self._sessions.wait_idle(timeout_ms)

    def give_up(self) -> None:
        """Stop trying to record the ends of runs: the next server will find them."""
        self._sessions.give_up()


def _last_prompt(request: ChatRequest) -> str:
    """Return the user message that a caller's tool results belong to; there is one."""
    return next(message.content for message in reversed(request.messages) if message.role == "user")
