"""Puts a served session together, in order, and takes it apart again: store, threads, agent, host, service.

Both `aura serve` and `aura run` start here, so that they differ in how they are talked to and in nothing else. Main
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aura
from aura import events as e
from aura import limits
from aura.clock import Clock, format_time
from aura.config.homes import Homes
from aura.config.resolve import Overrides
from aura.conversation import Header
from aura.engine.io import IoThread
from aura.errors import NotFound
from aura.ids import check_session_id, new_session_id
from aura.runtime.agents import AgentFactory, make_factory
from aura.runtime.alarm import AlarmThread
from aura.runtime.commit import find_commit
from aura.runtime.current import mcp_notices, restore_agent
from aura.runtime.feeds import Feeds, Signal
from aura.runtime.host import HostParts, open_host
from aura.runtime.inbox import Inbox
from aura.runtime.log import Log
from aura.runtime.mirror import Mirror
from aura.runtime.mirror_files import MirrorFiles
from aura.runtime.place import Place
from aura.runtime.selection import Selection
from aura.runtime.service import Service
from aura.store.open import find_store, open_store
from aura.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Plan:
    """What to serve. `resume` is a session id or a unique prefix of one; None makes a fresh session."""

    homes: Homes
    workdir: Path
    agent: str | None = None
    resume: str | None = None
    overrides: Overrides = field(default_factory=Overrides)
    settle_ms: int = limits.SETTLE_MS


@dataclass(frozen=True, slots=True)
class Assembly:
    """A served session and the parts under it. `close` after the service has stopped."""

    service: Service
    place: Place
    _closers: tuple[Callable[[], object], ...]

    def close(self) -> None:
        """Close everything that was opened, the newest first."""
        for closer in self._closers:
            closer()


def assemble(plan: Plan, *, url: str | None, make_signal: Callable[[], Signal], clock: Clock, log: Log) -> Assembly:
    """Open the store, take the session, recover what a crash left, save it, and return the service.

    When this returns, the session's start events are committed. Raises `ConfigInvalid`, `NotFound`, `InvalidId`,
    `SessionLocked`, `SessionFrozen`, `ResumeFailed`, `McpUnavailable`, a provider's failure where a model is restored,
    and store errors; everything opened before is closed again then.
    """
    closers: list[Callable[[], object]] = []
    try:
        io = IoThread()
        closers.append(io.close)
        factory = make_factory(plan.homes, plan.workdir, io, clock)
        closers.append(factory.close)
        start = Selection(plan.agent, plan.overrides)
        resumed = plan.resume is not None
        if not resumed:
            factory.make(start)  # a bad configuration must leave neither a store nor an empty session behind
        store = _open_store(plan)
        closers.append(store.close)
        alarm = AlarmThread(clock)
        closers.append(alarm.close)
        inbox = Inbox(store, log)
        closers.append(inbox.close)
        feeds = Feeds(store, make_signal, log)
        closers.append(feeds.close)
        parts = HostParts(store, feeds, inbox, clock, alarm, log)
        session_id = _find_session(store, plan.resume) if plan.resume else _create_session(store, clock)
        notices = partial(_notices, factory)
        restore = partial(restore_agent, factory, start)
        host = open_host(
            parts, session_id, restore, url=url, resumed=resumed, notices=notices, settle_ms=plan.settle_ms
        )
        if factory.configuration.mirror:
            mirror = Mirror(MirrorFiles(store, plan.homes.store_dir, session_id), host.notify, log)
            closers.append(mirror.close)
            host.call_after_runs(mirror.request)
        commit = find_commit(Path(aura.__file__).parent)
        place = Place(url, plan.workdir, plan.homes.write_home, commit, clock.now_ms())
        service = Service(store, host, feeds, place, clock, log)
        return Assembly(service, place, tuple(reversed(closers)))
    except BaseException:
        for closer in reversed(closers):
            closer()
        raise


def _open_store(plan: Plan) -> Store:
    """Return the store, made for a fresh session as needed; one that does not exist has no session to resume."""
    if plan.resume is None:
        return open_store(plan.homes.store_dir)
    check_session_id(plan.resume)
    store = find_store(plan.homes.store_dir)
    if store is None:
        raise NotFound(f"there is no session {plan.resume}: the store is empty", hint="Import one first.")
    return store


def _find_session(store: Store, prefix: str) -> str:
    check_session_id(prefix)
    candidates = store.find_session_ids(prefix)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise NotFound(f"there is no session {prefix}", hint="`aura session list` shows what there is.")
    raise NotFound(
        f"{prefix!r} is the beginning of several session ids",
        hint="Give the whole id.",
        details={"candidates": candidates},
    )


def _create_session(store: Store, clock: Clock) -> str:
    now = format_time(clock.now_ms())
    return store.create_session(Header(id=new_session_id(), title="", created_at=now, updated_at=now)).id


def _notices(factory: AgentFactory) -> list[e.Notice]:
    """Return what the configuration and, once the agent is made, its MCP servers want said at the start."""
    configuration = factory.configuration
    texts = list(configuration.notices)
    if configuration.commands:
        from aura.runtime.commands.custom import shadowed_notices

        texts += shadowed_notices(configuration.commands)
    config = [e.Notice(level="warning", origin="config", message=text) for text in texts]
    return [*config, *mcp_notices(factory.servers)]
