"""Puts a gateway together, in order, and takes it apart again: store, threads, agents, service. Main thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aura
from aura.clock import Clock
from aura.config.gateway import load_gateway
from aura.config.gateway_options import GatewayOptions
from aura.config.homes import Homes
from aura.config.resolve import load_configuration
from aura.engine.executors.environment import child_environment, erase_from_environ
from aura.engine.io import IoThread
from aura.runtime.alarm import AlarmThread
from aura.runtime.commit import find_commit
from aura.runtime.feeds import Feeds, Signal
from aura.runtime.gateway.agents import AgentMaker
from aura.runtime.gateway.service import GatewayService
from aura.runtime.gateway.sessions import Parts, Sessions
from aura.runtime.inbox import Inbox
from aura.runtime.log import Log
from aura.runtime.place import Place
from aura.store.open import open_store


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """What to serve. `environ` is the environment with what a .env file adds to it; it may hold secrets."""

    homes: Homes
    workdir: Path
    options: GatewayOptions
    environ: Mapping[str, str] = field(repr=False)


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
        options = plan.options
        agents = load_gateway(
            load_configuration(plan.homes, plan.environ),
            options.agents,
            plan.environ,
            options.default_agent,
            signing=options.signing,
            inactivity_timeout_ms=options.inactivity_timeout_ms,
            clock=clock,
        )
        for notice in agents.notices:
            log.warning("config", notice)
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
        commit = find_commit(Path(aura.__file__).parent)
        place = Place(url, plan.workdir, plan.homes.write_home, commit, clock.now_ms())
        service = GatewayService(
            agents, store, sessions, feeds, place, clock, log, timeout_ms=options.streaming_timeout_ms
        )
        return GatewayAssembly(service, tuple(reversed(closers)))
    except BaseException:
        for closer in reversed(closers):
            closer()
        raise
