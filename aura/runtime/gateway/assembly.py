"""Puts a gateway together, in order, and takes it apart again: store, threads, agents, service. Main thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aura import limits
from aura.clock import Clock
from aura.config.gateway import load_gateway
from aura.config.homes import Homes
from aura.config.resolve import load_configuration
from aura.engine.executors.environment import child_environment, erase_from_environ
from aura.engine.io import IoThread
from aura.runtime.alarm import AlarmThread
from aura.runtime.feeds import Feeds, Signal
from aura.runtime.gateway.agents import AgentMaker
from aura.runtime.gateway.service import GatewayService
from aura.runtime.gateway.sessions import Parts, Sessions
from aura.runtime.inbox import Inbox
from aura.runtime.log import Log
from aura.store.open import open_store


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """What to serve."""

    homes: Homes
    workdir: Path
    default_agent: str | None = None
    timeout_ms: int = limits.STREAMING_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class GatewayAssembly:
    """A gateway and the parts under it. `close` after it has been served."""

    service: GatewayService
    _closers: tuple[Callable[[], object], ...]

    def close(self) -> None:
        """Close everything that was opened, the newest first."""
        for closer in self._closers:
            closer()


def assemble_gateway(
    plan: GatewayPlan, *, url: str | None, make_signal: Callable[[], Signal], clock: Clock, log: Log
) -> GatewayAssembly:
    """Load the agents, open the store, record what dead processes have left, and return the service.

    Raises `ConfigInvalid` and store errors; everything opened before is closed again then.
    """
    closers: list[Callable[[], object]] = []
    try:
        environ = dict(os.environ)
        configuration = load_configuration(plan.homes, environ)
        agents = load_gateway(configuration, None, environ, plan.default_agent, clock=clock)
        for name in sorted(agents.secret_variables):
            if name in os.environ:
                erase_from_environ(name)
        environment = child_environment(agents.secret_values)
        io = IoThread()
        closers.append(io.close)
        maker = AgentMaker(plan.homes, plan.workdir, io, clock, environment)
        closers.append(maker.close)
        for spec in agents.agents.values():
            maker.check(spec)
        store = open_store(plan.homes.store_dir)
        closers.append(store.close)
        alarm = AlarmThread(clock)
        closers.append(alarm.close)
        inbox = Inbox(store, log)
        closers.append(inbox.close)
        feeds = Feeds(store, make_signal, log)
        closers.append(feeds.close)
        sessions = Sessions(Parts(store, feeds, inbox, maker, clock, alarm, log, url))
        lost = sessions.recover_all()
        if lost:
            log.warning("gateway", f"{lost} runs of a dead process are recorded as lost")
        service = GatewayService(agents, store, sessions, feeds, clock, log, timeout_ms=plan.timeout_ms)
        return GatewayAssembly(service, tuple(reversed(closers)))
    except BaseException:
        for closer in reversed(closers):
            closer()
        raise
