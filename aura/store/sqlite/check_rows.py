"""Checks how rows belong together: owners, heads, requests, live runs. Each rule is one query.

Every query is a statement of its own, so a row that a server commits between two of them is no finding: rows that
belong together are committed together, and queries that read two tables see one state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from aura.store.sqlite.database import fetch_all
from aura.store.sqlite.inspection import Inspection
from aura.store.sqlite.locks import is_session_locked

LIVE = "('accepted', 'running', 'finished')"


@dataclass(frozen=True, slots=True)
class Rule:
    """A query whose rows (session id or None, text) break a rule. `message` says what of the text."""

    code: str
    table: str
    message: str
    sql: str
    repairable: bool = False


RULES = (
    Rule(
        "head",
        "session",
        "the session has no head",
        "SELECT id, id FROM session WHERE head IS NULL AND sid NOT IN (SELECT sid FROM removal)",
    ),
    Rule(
        "head",
        "session",
        "its head is not its newest revision, which is number {}",
        """
        SELECT s.id, n.n FROM session s
        JOIN (SELECT sid, max(n) AS n FROM revision GROUP BY sid) n ON n.sid = s.sid
        LEFT JOIN revision r ON r.id = s.head
        WHERE s.head IS NOT NULL AND (r.n IS NOT n.n OR r.sid IS NOT s.sid)
        """,
    ),
    Rule(
        "half_removed",
        "session",
        "its removal was not finished",
        "SELECT s.id, s.id FROM removal JOIN session s USING (sid)",
        True,
    ),
    Rule(
        "orphan",
        "removal",
        "the removal of session row {}, which is not there",
        "SELECT NULL, sid FROM removal WHERE sid NOT IN (SELECT sid FROM session)",
        True,
    ),
    Rule(
        "run_live_twice",
        "run",
        "{} runs of the session have not settled",
        f"""
        SELECT s.id, count(*) FROM run r JOIN session s USING (sid)
        WHERE r.state IN {LIVE} GROUP BY sid HAVING count(*) > 1
        """,
    ),
    Rule(
        "request",
        "run",
        "run {} has no request, or one with another id or digest",
        """
        SELECT s.id, r.run_id FROM run r LEFT JOIN session s USING (sid)
        WHERE NOT EXISTS (SELECT 1 FROM request q WHERE q.scope IN (r.sid, 0) AND q.request_id = r.request_id
                          AND q.run = r.id AND q.digest = r.request_digest)
        """,
    ),
    Rule(
        "orphan",
        "request",
        "request {} belongs to no run",
        "SELECT NULL, request_id FROM request WHERE run NOT IN (SELECT id FROM run)",
        True,
    ),
    Rule(
        "orphan",
        "event",
        "events of session row {}, which is not there",
        "SELECT DISTINCT NULL, sid FROM event WHERE sid NOT IN (SELECT sid FROM session)",
    ),
    Rule(
        "orphan",
        "revision",
        "revisions of session row {}, which is not there",
        "SELECT DISTINCT NULL, sid FROM revision WHERE sid NOT IN (SELECT sid FROM session)",
    ),
    Rule(
        "orphan",
        "chain",
        "chain {} belongs to no session",
        "SELECT NULL, id FROM chain WHERE sid NOT IN (SELECT sid FROM session)",
    ),
    Rule(
        "orphan",
        "message",
        "messages of chain {}, which is not there",
        "SELECT DISTINCT NULL, chain FROM message WHERE chain NOT IN (SELECT id FROM chain)",
    ),
    Rule(
        "orphan",
        "run",
        "run {} belongs to no session",
        "SELECT NULL, run_id FROM run WHERE sid NOT IN (SELECT sid FROM session)",
    ),
    Rule(
        "orphan",
        "tool_call",
        "tool call {} belongs to no run",
        "SELECT NULL, call_id FROM tool_call WHERE run NOT IN (SELECT id FROM run)",
        True,
    ),
    Rule(
        "orphan",
        "usage",
        "the usage at seq {} belongs to no run",
        "SELECT NULL, seq FROM usage WHERE run NOT IN (SELECT id FROM run)",
        True,
    ),
    Rule(
        "orphan",
        "input",
        "question {} belongs to no run",
        "SELECT NULL, input_id FROM input WHERE run NOT IN (SELECT id FROM run)",
        True,
    ),
    Rule(
        "orphan",
        "journal_anchor",
        "the anchor of session row {}, which is not there",
        "SELECT NULL, sid FROM journal_anchor WHERE sid NOT IN (SELECT sid FROM session)",
        True,
    ),
    Rule(
        "orphan",
        "prompt",
        "no revision has prompt {}",
        "SELECT NULL, id FROM prompt WHERE id NOT IN (SELECT prompt FROM revision)",
        True,
    ),
    Rule(
        "orphan",
        "message",
        "no revision reaches the end of chain {}",
        """
        SELECT s.id, c.id FROM chain c JOIN session s USING (sid)
        LEFT JOIN (SELECT chain, max(length) AS length FROM revision GROUP BY chain) r ON r.chain = c.id
        LEFT JOIN (SELECT base, max(base_length) AS length FROM chain GROUP BY base) b ON b.base = c.id
        WHERE s.sid NOT IN (SELECT sid FROM removal)
          AND (max(coalesce(r.length, 0), coalesce(b.length, 0))
               < coalesce((SELECT max(idx) + 1 FROM message WHERE chain = c.id), 0)
               OR (r.length IS NULL AND b.length IS NULL))
        """,
        True,
    ),
    *(
        Rule(
            "owner",
            table,
            f"row {{}} of {table} and its {other} are of different sessions",
            f"""
            SELECT s.id, t.{key} FROM {table} t JOIN {other} o ON o.id = t.{other} JOIN session s ON s.sid = t.sid
            WHERE o.sid <> t.sid
            """,
        )
        for table, other, key in (
            ("event", "run", "seq"),
            ("revision", "run", "n"),
            ("revision", "chain", "n"),
            ("input", "run", "input_id"),
            ("tool_call", "run", "call_id"),
            ("usage", "run", "seq"),
        )
    ),
)


def check(inspection: Inspection) -> None:
    """Check every rule, and that each live run has a process that holds its session."""
    for number, rule in enumerate(RULES):
        inspection.progress("rows", number, len(RULES))
        with inspection.guarded(f"table {rule.table}", table=rule.table), inspection.watched(f"rows of {rule.table}"):
            for session_id, text in fetch_all(inspection.connection, rule.sql):
                message = rule.message.format(text)
                owner = None if session_id is None else str(session_id)
                inspection.report(rule.code, message, table=rule.table, session_id=owner, repairable=rule.repairable)
    with inspection.guarded("table run", table="run"):
        _check_live_runs(inspection)


def _check_live_runs(inspection: Inspection) -> None:
    sql = f"SELECT s.id, r.run_id FROM run r JOIN session s USING (sid) WHERE r.state IN {LIVE}"
    for session_id, run_id in cast("list[tuple[str, str]]", fetch_all(inspection.connection, sql)):
        if is_session_locked(inspection.path.parent, session_id):
            continue
        again = f"SELECT 1 FROM run WHERE run_id = ? AND state IN {LIVE}"
        if fetch_all(inspection.connection, again, run_id):  # else it settled while we looked
            message = f"run {run_id} has not settled, and no process holds its session"
            inspection.report("run_unowned", message, table="run", session_id=session_id, repairable=True)
