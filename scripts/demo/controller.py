"""An unattended controller: works through a list of jobs with `aura serve`, and may be killed at any moment.

    python controller.py JOBS STATE -- aura --home "" --config HOME

JOBS is a file with one JSON object per line, {"id": "job-1", "prompt": "..."}; the id becomes a session's id. STATE is
a directory that this program owns. What follows -- is how to call aura; the workspace is the current directory. Start
it again after a crash with the same words: it goes on where it was. Exit status: 0 all jobs are done, 1 some
failed, 2 it cannot go on, or JOBS has a mistake (then nothing is begun), 3 it was told to stop by SIGTERM or Ctrl-C
(the agent goes on working), 4 another controller has the state.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import signal
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aura_automation import (
    Aura,
    AutomationError,
    Client,
    Error,
    Event,
    NetworkError,
    NotFound,
    NotPending,
    ProgramFailed,
    Run,
    Server,
    ServerHandle,
    SessionLocked,
    ShuttingDown,
    StopRequested,
    Store,
)

ATTEMPTS_MAX = 50  # of one job: prompts submitted
OUTAGES_MAX = 20  # in a row, without a word from any server
PAUSE_S = 0.2
LOCKED_WAIT_S = 90  # a server on its way down may take 60 s to settle its run
OUTAGE_S = 2.0  # then the server is looked for, and started again if it is gone
ALLOWED_TOOLS = frozenset(("Bash", "Read", "Ls"))
JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # it names files here, too
CONTINUE = (
    "You were interrupted while you worked on this: {prompt}\nLook at what is there, and go on. Attempt {attempt}."
)


@dataclass(frozen=True)
class Progress:
    """What is written down of a job, always before it is acted on."""

    job: str
    attempt: int = 1
    launches: int = 0
    ready_file: str | None = None  # of the last server that was released
    verdict: str | None = None  # how the job ended
    revision: str | None = None

    @property
    def request_id(self) -> str:
        """The same for the same attempt, whichever life of the controller submits it."""
        return f"{self.job}:{self.attempt}"


class Notebook:
    """The state directory: one file per job, replaced atomically, so that it holds either the old or the new."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("jobs", "mirror", "ready", "export"):
            (directory / name).mkdir(parents=True, exist_ok=True)

    def lock(self) -> bool:
        """Keep other controllers out until this process ends."""
        self._lock = (self.directory / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def token(self) -> str:
        """Return the servers' token. It outlives the controller: the next one must be able to attach."""
        path = self.directory / "token"
        if not path.exists():
            replace_file(path, secrets.token_urlsafe(32))
        return path.read_text()

    def read(self, job: str) -> Progress:
        """Return what is known of a job."""
        path = self.directory / "jobs" / f"{job}.json"
        return Progress(**json.loads(path.read_text())) if path.exists() else Progress(job)

    def write(self, progress: Progress) -> Progress:
        """Return `progress` when it is safe on disk."""
        replace_file(self.directory / "jobs" / f"{progress.job}.json", json.dumps(asdict(progress)))
        return progress


class Mirror:
    """A copy of one session's events, each exactly once. Its last line is the cursor: there is nothing to get out of
    step with it."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a+b")
        self.file.seek(0)
        lines = self.file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # killed while writing it: it will come again
            self.file.truncate(sum(map(len, lines[:-1])))
            lines.pop()
        self.seq = int(json.loads(lines[-1])["seq"]) if lines else 0

    def append(self, event: Event) -> None:
        """Keep an event, durably."""
        self.file.write(json.dumps(asdict(event)).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.seq = event.seq


class Controller:
    """Works through jobs, one at a time. `stopping` is looked at between events."""

    def __init__(self, aura: Aura, notebook: Notebook) -> None:
        self.aura = aura
        self.store = Store(aura)
        self.notebook = notebook
        self.token = notebook.token()
        self.stopping = False

    def work(self, job: str, prompt: str) -> Progress:
        """Bring one job to its end, whatever was done of it before. It has no verdict if we were told to stop."""
        progress = self.notebook.read(job)
        if progress.verdict is not None:
            return progress
        mirror = Mirror(self.notebook.directory / "mirror" / f"{job}.jsonl")
        self.ensure_session(job)
        outages_count = 0
        while not self.stopping:
            try:
                progress, handle = self.find_server(self.notebook.read(job))
                run = self.attempt(progress, handle, prompt, mirror)
            except (NetworkError, ProgramFailed, ShuttingDown):
                # The server is gone, or on its way: the next one knows what became of the run.
                outages_count += 1
                if outages_count > OUTAGES_MAX:
                    raise
                time.sleep(PAUSE_S)
                continue
            outages_count = 0
            verdict = judge(run, progress)
            if verdict is not None:
                handle.stop()
                return self.notebook.write(replace(progress, verdict=verdict, revision=self.export(job)))
            progress = self.notebook.write(replace(progress, attempt=progress.attempt + 1))
            if run.error is not None and run.error.retryable:
                self.pause(run.error)
        return progress

    def pause(self, error: Error) -> None:
        """Wait as long as the provider asks, or until we are told to stop."""
        until_s = time.monotonic() + int(str(error.details.get("retry_after_ms") or 1000)) / 1000
        while not self.stopping and time.monotonic() < until_s:
            time.sleep(PAUSE_S)

    def ensure_session(self, job: str) -> None:
        """Make the job's session if it is not there. `import` of the same document again changes nothing."""
        try:
            self.store.show(job)
        except NotFound:
            document = self.notebook.directory / "empty.json"
            replace_file(document, json.dumps({"messages": []}))
            self.store.import_(document, id=job)

    def find_server(self, progress: Progress) -> tuple[Progress, ServerHandle]:
        """Attach to the job's server if it still runs, else start one."""
        if progress.ready_file is not None:
            try:
                return progress, Server.attach(ready_file=progress.ready_file, token=self.token)
            except AutomationError:
                pass  # it is gone, or on its way: the session's lock, not the file, says who has the session
        progress = self.notebook.write(replace(progress, launches=progress.launches + 1))
        ready_file = self.notebook.directory / "ready" / f"{progress.job}.{progress.launches}.json"
        handle = self.launch(progress.job, ready_file)
        progress = self.notebook.write(replace(progress, ready_file=str(ready_file)))
        handle.release()  # only now: a server that nobody wrote down dies with us
        return progress, handle

    def launch(self, session_id: str, ready_file: Path) -> ServerHandle:
        """Start a server, and wait while an earlier one still has the session."""
        deadline_s = time.monotonic() + LOCKED_WAIT_S
        log = self.notebook.directory / "serve.log"
        while True:
            try:
                return Server.launch(
                    self.aura, ready_file=ready_file, token=self.token, resume=session_id, hold=True, log=log
                )
            except SessionLocked:
                if self.stopping or time.monotonic() > deadline_s:
                    raise
                time.sleep(PAUSE_S)

    def attempt(self, progress: Progress, handle: ServerHandle, prompt: str, mirror: Mirror) -> Run:
        """Submit this attempt, or find it submitted, and follow it to its terminal record."""
        text = prompt if progress.attempt == 1 else CONTINUE.format(prompt=prompt, attempt=progress.attempt)
        with handle.client(retry_s=OUTAGE_S) as client:
            run = client.submit(progress.request_id, prompt=text, on_input="wait")

            def on_event(event: Event) -> None:
                if event.type == "input.required":
                    self.answer(client, event)  # first answered, then written down: after a crash it comes again
                mirror.append(event)

            return client.wait(
                run.id, on_event=on_event, stop=lambda: self.stopping, poll_s=1, after=mirror.seq, reconnect_s=OUTAGE_S
            )

    def answer(self, client: Client, event: Event) -> None:
        """Decide what the agent asks. Nobody is there, so the rule is written here."""
        assert event.run_id is not None, "a question belongs to a run"
        input_id = str(event.data["input_id"])
        try:
            if event.data["kind"] == "confirm":
                action = "allow" if event.data["tool"] in ALLOWED_TOOLS else "deny"
                client.decide(event.run_id, input_id, action=action)
            else:
                client.answer(event.run_id, input_id, answer="Decide yourself, and say what you decided.")
        except NotPending:
            pass  # answered in an earlier life, or the run has ended

    def export(self, job: str) -> str:
        """Keep the session's bytes as a file, and check that they are what the revision says."""
        target = self.notebook.directory / "export" / f"{job}.json"
        target.unlink(missing_ok=True)  # of a life that was killed before it wrote down that it was done
        exported = self.store.export(job, target)
        sha256 = hashlib.sha256(target.read_bytes()).hexdigest()
        if not sha256 == exported.sha256 == self.store.show(job).revision:
            raise RuntimeError(f"{target} is not revision {exported.sha256}")
        return sha256


def judge(run: Run, progress: Progress) -> str | None:
    """Return how the job ended, or None to go on with another attempt."""
    if run.outcome == "completed" and run.state == "persisted":
        return "completed"
    interrupted = run.state == "lost" or (run.error is not None and run.error.details.get("reason") == "shutdown")
    passing = run.error is not None and run.error.retryable
    if not (interrupted or passing) or progress.attempt >= ATTEMPTS_MAX:
        error = run.error or run.persist_error
        return f"{run.outcome or run.state}: {error.code if error else 'no error'}"
    return None


def read_jobs(path: str) -> dict[str, str]:
    """Return each job's prompt. Raises `OSError` and, for a list with a mistake in it, `ValueError`."""
    jobs: dict[str, str] = {}
    for number, line in enumerate(Path(path).read_text().split("\n"), 1):
        if not line.strip():
            continue
        try:
            match json.loads(line):
                case {"id": str(job), "prompt": str(prompt)} if JOB_ID.fullmatch(job) and job not in jobs:
                    jobs[job] = prompt
                    continue
        except ValueError:
            pass
        raise ValueError(f'line {number} is not {{"id": "job-1", "prompt": "..."}} with an id of its own')
    return jobs


def replace_file(path: Path, text: str) -> None:
    """Let `path` hold `text`, readable by us alone; a crash leaves the old content or the new."""
    new = path.with_name(path.name + ".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(fd)
    new.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def main() -> int:
    """Work through the list."""
    if len(sys.argv) < 5 or sys.argv[3] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    jobs_file, state, _, program, *root_flags = sys.argv[1:]
    try:
        jobs = read_jobs(jobs_file)
    except (OSError, ValueError) as error:
        print(f"{jobs_file}: {error}", file=sys.stderr)
        return 2
    notebook = Notebook(Path(state).absolute())
    if not notebook.lock():
        print("another controller has this state", file=sys.stderr)
        return 4
    controller = Controller(Aura(program, root_flags), notebook)

    def stop(*_: object) -> None:
        controller.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    failed_count = 0
    for job, prompt in jobs.items():
        try:
            done = controller.work(job, prompt)
        except StopRequested:
            return 3
        except AutomationError as error:
            print(f"{job}: {error}", file=sys.stderr)
            return 3 if controller.stopping else 2
        if done.verdict is None:
            return 3
        print(f"{done.job}: {done.verdict} after {done.attempt} attempts, revision {done.revision}", flush=True)
        failed_count += done.verdict != "completed"
    return 1 if failed_count else 0


if __name__ == "__main__":
    sys.exit(main())
