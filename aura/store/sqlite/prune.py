"""Makes a store smaller by a rule, beside servers: what `prune_plan` finds, `prune_parts` removes in pieces.

A session is worked on only while its lock is held, so no server can begin with it meanwhile. Pages that become free are
used again by what is written next; the file itself becomes smaller by a vacuum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import apsw

from aura import limits
from aura.store.care import Progress, Pruned, PruneReport, PruneRule, Spared
from aura.store.sqlite import prune_parts, prune_plan
from aura.store.sqlite.care_writer import CareWriter
from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.locks import find_session_lock, is_session_locked
from aura.store.sqlite.prune_plan import Target


def plan(reader: apsw.Connection, path: Path, rule: PruneRule, progress: Progress) -> PruneReport:
    """Return what `prune` would do now, without doing it."""
    removals = prune_plan.find_removals(reader)
    targets, spared = prune_plan.find_targets(reader, rule, partial(is_session_locked, path.parent))
    pruned = [Pruned(target.session_id, *prune_plan.measure_session(reader, target.sid)) for target in removals]
    for number, target in enumerate(targets):
        progress("sessions", number, len(targets))
        found = _measure(reader, target, rule)
        if any(found.rows.values()):
            pruned.append(found)
    return PruneReport(tuple(pruned), tuple(spared), prompts=0, longest_ms=0, dry_run=True)


def prune(
    reader: apsw.Connection, writer: CareWriter, path: Path, rule: PruneRule, at_ms: int, progress: Progress
) -> PruneReport:
    """Remove what `rule` says, and finish removals that were interrupted. `at_ms` dates removals."""
    pruned = [_resume(reader, writer, path, target) for target in prune_plan.find_removals(reader)]
    targets, spared = prune_plan.find_targets(reader, rule, partial(is_session_locked, path.parent))
    for number, target in enumerate(targets):
        progress("sessions", number, len(targets))
        with _locked(path, target) as locked:
            done = _prune(reader, writer, target, rule, at_ms) if locked else prune_plan.HELD
        if isinstance(done, str):
            spared.append(Spared(target.session_id, done))
        else:
            pruned.append(done)
    prompts = prune_parts.remove_prompts(writer, _find_unused_prompts(reader))
    gone = tuple(item for item in pruned if item is not None and any(item.rows.values()))
    return PruneReport(gone, tuple(spared), prompts, writer.longest_ms, dry_run=False)


def finish_removals(reader: apsw.Connection, writer: CareWriter, path: Path) -> list[str]:
    """Finish removals that were interrupted; return the ids of the sessions that are gone now."""
    done = [_resume(reader, writer, path, target) for target in prune_plan.find_removals(reader)]
    return [item.session_id for item in done if item is not None]


def _measure(reader: apsw.Connection, target: Target, rule: PruneRule) -> Pruned:
    if rule.what == "sessions":
        return Pruned(target.session_id, *prune_plan.measure_session(reader, target.sid))
    if rule.what == "journal":
        floor = prune_plan.find_floor(reader, target.sid, rule)
        events, size = prune_plan.measure_events(reader, target.sid, floor)
        return Pruned(target.session_id, {"event": events}, size)
    revisions = prune_plan.find_old_revisions(reader, target.sid, rule)
    return Pruned(target.session_id, {"revision": len(revisions)}, sum(size for _, size in revisions))


def _prune(reader: apsw.Connection, writer: CareWriter, target: Target, rule: PruneRule, at_ms: int) -> Pruned | str:
    """Prune one session, or return why it stays."""
    found = _measure(reader, target, rule)
    why = writer.run(partial(_begin, target, rule, at_ms), target.session_id)
    if why is not None:
        return why
    if rule.what == "sessions":
        prune_parts.finish_removal(writer, target)
        return found
    if rule.what == "journal":
        floor = prune_plan.find_floor(reader, target.sid, rule)
        return replace(found, rows={"event": prune_parts.remove_events(writer, target, floor)})
    revisions = [id for id, _ in prune_plan.find_old_revisions(reader, target.sid, rule)]
    count, messages, size = prune_parts.remove_revisions(writer, target, revisions)
    return Pruned(target.session_id, {"revision": count, "message": messages}, found.text_bytes + size)


def _resume(reader: apsw.Connection, writer: CareWriter, path: Path, target: Target) -> Pruned | None:
    found = Pruned(target.session_id, *prune_plan.measure_session(reader, target.sid))
    with _locked(path, target) as locked:
        if not locked:
            return None  # somebody else is at it
        prune_parts.finish_removal(writer, target)
        return found


def _begin(target: Target, rule: PruneRule, at_ms: int, connection: apsw.Connection) -> str | None:
    """Look again at what may have changed since the plan, and begin a removal. Returns why the session stays."""
    sql = f"""
        SELECT frozen, updated_at_ms, EXISTS (SELECT 1 FROM run WHERE sid = s.sid AND state IN {prune_plan.LIVE})
        FROM session s WHERE sid = ? AND id = ? AND head IS NOT NULL
    """
    rows = fetch_all(connection, sql, target.sid, target.session_id)
    if not rows:
        return "it was removed meanwhile"
    frozen, updated_at_ms, live = cast("tuple[int, int, int]", rows[0])
    if frozen:
        return prune_plan.FROZEN
    if live:
        return prune_plan.UNSETTLED
    if rule.what != "sessions":
        return None
    if prune_plan.is_origin(connection, target.sid):
        return prune_plan.ORIGIN
    if rule.before_ms is not None and updated_at_ms >= rule.before_ms:
        return "it was used meanwhile"
    prune_parts.begin_removal(connection, target, at_ms)
    return None


@contextmanager
def _locked(path: Path, target: Target) -> Iterator[bool]:
    lock = find_session_lock(path.parent, target.session_id)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.close()


def _find_unused_prompts(reader: apsw.Connection) -> list[int]:
    """Return the prompts that no revision has; none where it takes so long to see that removing one would be felt."""
    begin = time.monotonic()
    rows = fetch_all(reader, "SELECT id FROM prompt WHERE id NOT IN (SELECT prompt FROM revision)")
    slow = (time.monotonic() - begin) * 1000 > limits.PROMPTS_SCAN_MS
    return [] if slow else [cast(int, row[0]) for row in rows]
