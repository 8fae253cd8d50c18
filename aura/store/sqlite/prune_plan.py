"""Decides what a prune takes: which sessions, up to which event, which revisions. It only reads.

Never a frozen session, one that a process holds, one with a run that has not settled, a head, the origin that a fork
names, or messages that another session contains (docs/store.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import apsw

from aura.store.care import PruneRule, Spared
from aura.store.sqlite.database import fetch_all

HELD = "a process holds it"
FROZEN = "it is frozen"
UNSETTLED = "a run of it has not settled"
ORIGIN = "a session that stays is a fork of it"
LIVE = "('accepted', 'running', 'finished')"

_SESSIONS = f"""
    SELECT s.sid, s.id, s.updated_at_ms, s.frozen,
           EXISTS (SELECT 1 FROM run WHERE sid = s.sid AND state IN {LIVE})
    FROM session s WHERE s.head IS NOT NULL ORDER BY s.updated_at_ms DESC, s.id DESC
"""
_FORKS = """
    SELECT DISTINCT own.sid, other.sid FROM chain other JOIN chain own ON own.id = other.base WHERE own.sid <> other.sid
"""
_SIZES = {
    "event": """
        SELECT count(*), coalesce(sum(octet_length(data) + coalesce(octet_length(ext), 0)), 0) FROM event WHERE sid = ?
    """,
    "message": """
        SELECT count(*), coalesce(sum(octet_length(body)), 0)
        FROM message WHERE chain IN (SELECT id FROM chain WHERE sid = ?)
    """,
    "revision": "SELECT count(*), coalesce(sum(octet_length(tail)), 0) FROM revision WHERE sid = ?",
    "run": """
        SELECT count(*), coalesce(sum(octet_length(text) + coalesce(octet_length(result), 0)), 0) FROM run WHERE sid = ?
    """,
}
_EVENTS_BELOW = """
    SELECT count(*), coalesce(sum(octet_length(data) + coalesce(octet_length(ext), 0)), 0)
    FROM event WHERE sid = ? AND seq < ?
"""
_FIRST_KEPT = "SELECT min(seq) FROM event WHERE sid = ? AND seq >= ? AND at_ms >= ?"
_OLD_REVISIONS = """
    SELECT v.id, octet_length(v.tail) FROM revision v JOIN session s USING (sid)
    WHERE v.sid = ?1 AND v.id <> s.head AND (?2 IS NULL OR v.at_ms < ?2)
      AND v.n < (SELECT min(n) FROM (SELECT n FROM revision WHERE sid = ?1 ORDER BY n DESC LIMIT ?3))
      AND NOT EXISTS (SELECT 1 FROM session f WHERE f.parent_id = s.id AND f.parent_revision = v.sha256)
    ORDER BY v.n
"""


@dataclass(frozen=True, slots=True)
class Target:
    """A session that a rule asks for."""

    sid: int
    session_id: str


def find_targets(
    connection: apsw.Connection, rule: PruneRule, is_held: Callable[[str], bool]
) -> tuple[list[Target], list[Spared]]:
    """Return the sessions that a rule takes something of, forks before what they come from, and those that are spared.

    `is_held` tells whether a process holds the session with an id.
    """
    rows = cast("list[tuple[int, str, int, int, int]]", fetch_all(connection, _SESSIONS))[rule.keep :]
    targets, spared = list[Target](), list[Spared]()
    for sid, session_id, updated_at_ms, frozen, live in rows:
        if rule.what == "sessions" and rule.before_ms is not None and updated_at_ms >= rule.before_ms:
            continue
        if frozen:
            spared.append(Spared(session_id, FROZEN))
        elif is_held(session_id):
            spared.append(Spared(session_id, HELD))
        elif live:
            spared.append(Spared(session_id, UNSETTLED))
        else:
            targets.append(Target(sid, session_id))
    if rule.what == "sessions":
        targets = _without_origins(connection, targets, spared)
    return targets, spared


def find_removals(connection: apsw.Connection) -> list[Target]:
    """Return the sessions whose removal was begun and not finished."""
    sql = "SELECT s.sid, s.id FROM removal JOIN session s USING (sid) ORDER BY s.sid DESC"
    return [Target(sid, session_id) for sid, session_id in cast("list[tuple[int, str]]", fetch_all(connection, sql))]


def is_origin(connection: apsw.Connection, sid: int) -> bool:
    """Tell whether another session contains messages of this one."""
    sql = """
        SELECT 1 FROM chain own JOIN chain other ON other.base = own.id WHERE own.sid = ?1 AND other.sid <> ?1 LIMIT 1
    """
    return bool(fetch_all(connection, sql, sid))


def measure_session(connection: apsw.Connection, sid: int) -> tuple[Mapping[str, int], int]:
    """Return how many rows of each table belong to a session, and the bytes of their texts."""
    found = {table: cast("tuple[int, int]", fetch_all(connection, sql, sid)[0]) for table, sql in _SIZES.items()}
    return {table: count for table, (count, _) in found.items()}, sum(size for _, size in found.values())


def find_floor(connection: apsw.Connection, sid: int, rule: PruneRule) -> int:
    """Return the seq of the first event that stays: all of a run's events stay, or none."""
    sql = "SELECT journal_floor, last_seq FROM session WHERE sid = ?"
    old, last_seq = cast("tuple[int, int]", fetch_all(connection, sql, sid)[0])
    floor = last_seq + 1
    if rule.before_ms is not None:
        first = fetch_all(connection, _FIRST_KEPT, sid, old, rule.before_ms)[0][0]
        floor = floor if first is None else cast(int, first)
    sql = "SELECT min(accepted_seq) FROM run WHERE sid = ? AND accepted_seq < ? AND last_seq >= ?"
    around = fetch_all(connection, sql, sid, floor, floor)[0][0]
    return max(old, floor if around is None else cast(int, around))


def measure_events(connection: apsw.Connection, sid: int, floor: int) -> tuple[int, int]:
    """Return how many events lie below a floor, and the bytes of their texts."""
    return cast("tuple[int, int]", fetch_all(connection, _EVENTS_BELOW, sid, floor)[0])


def find_old_revisions(connection: apsw.Connection, sid: int, rule: PruneRule) -> list[tuple[int, int]]:
    """Return (row id, bytes of text) of the revisions that a rule takes, the oldest first."""
    keep = max(rule.keep_revisions, 1)
    return cast("list[tuple[int, int]]", fetch_all(connection, _OLD_REVISIONS, sid, rule.before_ms, keep))


def _without_origins(connection: apsw.Connection, targets: Sequence[Target], spared: list[Spared]) -> list[Target]:
    """Leave out what a session that stays comes from. A fork always has the larger row id."""
    forks: dict[int, set[int]] = {}
    for own, other in cast("list[tuple[int, int]]", fetch_all(connection, _FORKS)):
        forks.setdefault(own, set()).add(other)
    going: set[int] = set()
    kept: list[Target] = []
    for target in sorted(targets, key=lambda target: -target.sid):
        if forks.get(target.sid, set()) <= going:
            going.add(target.sid)
            kept.append(target)
        else:
            spared.append(Spared(target.session_id, ORIGIN))
    return kept
