"""The controller of the demonstration: it submits a job to `aura serve`, watches it, and checks what is left.

It uses the Python client and nothing else of aura, as a controller of your own would. The order of events is here; the
directory is `job`'s business, the looks are `view`'s, the checks are `aftermath`'s.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import aftermath
from job import DEMO, Job, environment, lay_out
from model import Model, find_model, use_model
from problem import Problem
from view import View

from aura_automation import Aura, AutomationError, Event, Run, Server, ServerHandle, Store

SESSION = "fix-slug"
PROMPT = "A unit test of this project fails. Find out why, fix the code, and show that the test passes."
CONTINUATION = "The server was killed while you worked. Look at what is there, and carry on until the test passes."
DURABLE = "Each line is a durable event: it was in the database before the client got it."
EXIT_INTERRUPTED = 130


class _Killed(Exception):
    """The server was killed, as planned."""


class Demonstration:
    """One whole show. `stack` ends the servers."""

    def __init__(self, view: View, job: Job, stack: ExitStack) -> None:
        self._view = view
        self._job = job
        self._stack = stack
        self._token = secrets.token_urlsafe(32)
        self._shown: list[Event] = []
        binary = Path(sys.executable).with_name("aura")
        if not binary.exists():
            raise Problem(f"there is no aura beside {sys.executable}", hint="Start this with scripts/quickstart.")
        args = ["--home", "", "--config", str(job.home)]
        self._aura = Aura(binary=binary, args=args, cwd=job.workspace, env=environment())

    def play(self, *, crash: bool, model: Model | None) -> bool:
        """Do the job, crash or not; return whether everything that was promised holds. Raises `Problem`."""
        self._show_project()
        handle = self._start_server(model)
        final = self._work_through_crash(handle) if crash else self._work(handle)
        return self._look_back(final, crash=crash)

    def _show_project(self) -> None:
        view, job = self._view, self._job
        view.heading("A small project with a failing test")
        view.fact(f"{job.workspace}: {', '.join(sorted(path.name for path in job.workspace.iterdir()))}")
        before = job.run_test()
        if before.passed:
            raise Problem("the test passes already, so there is nothing to show")
        view.verdict(f"python -m unittest, run by this script: {before.summary}", good=False)

    def _start_server(self, model: Model | None) -> ServerHandle:
        view = self._view
        view.heading("A server that holds one session")
        view.remark(
            "aura serve is started by the Python client, as a controller of yours would. The prompt will go over HTTP, "
            "never on a command line; while the server lives, nobody else can write the session."
        )
        Store(self._aura).import_(DEMO / "session.json")
        handle = self._launch()
        view.fact(f"session {handle.session_id} at {handle.url}, process {handle.pid}")
        model_text = (
            f"the model is {model.name} at {model.url}" if model else "the model is a script: .aura/script.yaml"
        )
        view.fact(model_text)
        return handle

    def _work(self, handle: ServerHandle) -> Run:
        self._view.heading("The run")
        self._view.remark(DURABLE)
        return self._run_to_end(handle, "quickstart:1", PROMPT)

    def _run_to_end(self, handle: ServerHandle, request_id: str, prompt: str) -> Run:
        with handle.client() as client:
            run = client.submit(request_id, prompt=prompt)
            final = client.wait(run.id, on_event=self._mirror)
        status = handle.stop()
        if status != 0:
            raise Problem(f"the server ended with status {status}", hint=self._log_hint())
        return final

    def _work_through_crash(self, handle: ServerHandle) -> Run:
        view = self._view
        view.heading("The run, until its server is killed")
        view.remark(DURABLE)
        lost_id = self._run_until_killed(handle)
        view.fact(f"kill -9 {handle.pid}: the server is gone, in the middle of the agent's command")

        view.heading("The next server on the same session")
        view.remark("It takes over the lock at once, ends what the dead server left running, and says what it knows.")
        handle = self._launch()
        with handle.client() as client:
            lost = client.wait(lost_id, on_event=self._mirror, after=self._shown[-1].seq)
            again = client.submit("quickstart:1", prompt=PROMPT)
            kept = client.journal(self._shown[0].seq - 1).events
        if lost.state != "lost" or again != lost:
            raise Problem(f"run {lost.id} should be lost, and is {lost.state}; submitted again it is {again.state}")
        if list(kept[: len(self._shown)]) != self._shown:
            raise Problem("the journal no longer holds the events that were shown", hint=self._log_hint())
        view.verdict("The run is reported lost, and the journal still holds every event shown above.", good=True)
        view.verdict("Submitting quickstart:1 again returns this record: nothing is executed twice.", good=True)

        view.heading("The continuation")
        view.remark("A new request in the same session: the model sees all that was saved before the crash.")
        return self._run_to_end(handle, "quickstart:2", CONTINUATION)

    def _run_until_killed(self, handle: ServerHandle) -> str:
        def mirror(event: Event) -> None:
            self._mirror(event)
            if event.type == "tool.started" and event.data["name"] == "Bash" and handle.pid is not None:
                os.kill(handle.pid, signal.SIGKILL)
                raise _Killed

        with handle.client() as client:
            run = client.submit("quickstart:1", prompt=PROMPT)
            try:
                client.wait(run.id, on_event=mirror)
            except _Killed:
                handle.stop()
                return run.id
        raise Problem("the run ended before the agent started a command, so nothing was killed", hint="Run it again.")

    def _look_back(self, final: Run, *, crash: bool) -> bool:
        view, job = self._view, self._job
        view.heading("What is left, now that no server runs")
        view.remark("All of it is in one SQLite file:")
        view.fact(str(job.database))
        view.remark("The run record, as the controller got it:")
        aftermath.show_run(view, final)
        aftermath.show_session(view, self._aura, job, SESSION)
        equal = aftermath.check_export(view, self._aura, job, final)
        called = aftermath.show_calls(view, job)
        if crash:
            view.remark("The command that the crash cut off is `unknown`: aura neither guesses nor silently repeats.")

        view.heading("The test")
        after = job.run_test()
        view.verdict(f"python -m unittest, run by this script: {after.summary}", good=after.passed)
        if final.error is not None:
            is_provider = final.error.code.startswith("provider_")
            hint = "Check the model's address, name and token." if is_provider else self._log_hint()
            raise Problem(f"the run {final.outcome}: {final.error.code}: {final.error.message}", hint=hint)
        if not after.passed:
            raise Problem("the run ended, and the test still fails", hint="Try again, or a more capable model.")
        return equal and called and final.state == "persisted"

    def _launch(self) -> ServerHandle:
        # The lease is never released: should this script die, its server stops by itself.
        handle = Server.launch(
            self._aura,
            ready_file=self._job.root / "ready.json",
            token=self._token,
            resume=SESSION,
            hold=True,
            log=self._job.log,
        )
        self._stack.callback(handle.stop)
        return handle

    def _mirror(self, event: Event) -> None:
        self._shown.append(event)
        self._view.event(event)

    def _log_hint(self) -> str:
        return f"The server's log is {self._job.log}."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Problem(message, hint="scripts/quickstart --help shows what it takes.")


def _arguments() -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("--model-url", metavar="URL")
    parser.add_argument("--model", metavar="NAME")
    parser.add_argument("--clean", action="store_true")
    arguments = parser.parse_args()
    if arguments.model and not arguments.model_url:
        raise Problem("--model needs --model-url", hint="Say where the model is served.")
    return arguments


def _play(view: View, at_end: ExitStack) -> bool:
    arguments = _arguments()
    started = time.monotonic()
    model = find_model(arguments.model_url, arguments.model) if arguments.model_url else None
    job = lay_out()
    at_end.callback(_leave, view, job, clean=arguments.clean)
    if model is not None:
        use_model(job, model)
    with ExitStack() as servers:
        good = Demonstration(view, job, servers).play(crash=arguments.crash, model=model)
    if good:
        view.verdict(f"It failed before and passes now. All that took {time.monotonic() - started:.0f} s.", good=True)
    return good


def _leave(view: View, job: Job, *, clean: bool) -> None:
    if clean:
        job.remove()
        return
    view.heading("Kept for you")
    view.fact(str(job.root))
    view.remark("The README says what to do there next: resume, fork, query, your own model, your own controller.")


def _report(view: View, at_end: ExitStack) -> int:
    try:
        return 0 if _play(view, at_end) else 1
    except Problem as problem:
        view.problem(problem.message, problem.hint)
    except AutomationError as error:
        view.problem(f"{error.code}: {error.message}", error.hint)
    except OSError as error:
        view.problem(str(error), "Check the disk and the permissions there.")
    except KeyboardInterrupt:
        view.problem("interrupted; the server was stopped, and what was done until then is saved", None)
        return EXIT_INTERRUPTED
    return 1


def main() -> int:
    """Show it all; return 0 only if the test failed before, passes now, and what is stored is what was promised."""
    with ExitStack() as at_end:
        return _report(View(), at_end)


if __name__ == "__main__":
    sys.exit(main())
