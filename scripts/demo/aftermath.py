"""What is left of a run once its server has gone: the record, the session, its bytes, and the database itself.

Each function shows one thing and returns whether it holds. None of them needs a server.
"""

from __future__ import annotations

import hashlib
import shlex
import sqlite3
import subprocess
from contextlib import closing

from job import Job
from problem import Problem
from view import View

from aura_automation import Aura, Run, Store

QUERY = """SELECT r.request_id, c.started_seq AS seq, c.name, c.status, c.duration_ms, c.result_bytes
FROM v_tool_call c JOIN v_run r USING (run_id)
ORDER BY c.started_seq"""
COMMAND_TIMEOUT_S = 60  # `session show` takes a fifth of a second


def show_run(view: View, run: Run) -> None:
    """Show the record that the controller got: the answer, and the revision that holds it."""
    persisted = run.persisted
    calls = ", ".join(f"{count} {name}" for name, count in run.stats.tool_calls.items()) or "none"
    view.fields(
        {
            "id": run.id,
            "request_id": run.request_id,
            "state": run.state,
            "outcome": run.outcome,
            "error": f"{run.error.code}: {run.error.message}" if run.error else "none",
            "result": run.result.content if run.result else "none",
            "persisted": f"revision {persisted.revision}, {persisted.messages} messages" if persisted else "nothing",
            "stats": f"{run.stats.iterations} model calls; tools: {calls}",
        }
    )


def show_session(view: View, aura: Aura, job: Job, session_id: str) -> None:
    """Show what `aura session show` prints. Raises `Problem` when it fails."""
    words = ["session", "show", session_id]
    view.command(f"cd {shlex.quote(str(job.root))} && aura {shlex.join(words)}")
    done = subprocess.run(
        aura.command(*words),
        cwd=aura.cwd,
        env=aura.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise Problem(f"aura session show failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    view.output(done.stdout.decode("utf-8", "replace"))


def check_export(view: View, aura: Aura, job: Job, run: Run) -> bool:
    """Export the session and compare the file's own hash with the revision that the run record names."""
    path = job.root / f"{run.session_id}.json"
    view.command(f"aura session export {run.session_id} --output {path.name} && sha256sum {path.name}")
    Store(aura).export(run.session_id, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    revision = run.persisted.revision if run.persisted else "none"
    view.fields({"sha256 of the file": digest, "revision": revision})
    equal = digest == revision
    view.verdict(
        "They are equal: the revision is the hash of these bytes." if equal else "They differ, which must not be.",
        good=equal,
    )
    return equal


def show_calls(view: View, job: Job) -> bool:
    """Ask the database about the tool calls, read-only and without aura; tell whether there were any."""
    view.command(f'sqlite3 -readonly .aura/sessions/{job.database.name} "\n{QUERY}"')
    try:
        with closing(sqlite3.connect(f"{job.database.as_uri()}?mode=ro", uri=True)) as connection:
            cursor = connection.execute(QUERY)
            rows = cursor.fetchall()
            head = [column[0] for column in cursor.description]
    except sqlite3.Error as error:
        version = sqlite3.sqlite_version
        hint = f"Python's own SQLite is {version}; reading the database takes 3.37 or newer."
        raise Problem(f"the query failed: {error}", hint=hint) from error
    view.rows(head, rows)
    return bool(rows)
