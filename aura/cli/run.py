"""`aura run PROMPT…`: the host of `aura serve` without HTTP, for people and scripts. It renders; it does not decide.

Prompts come from the arguments, or one from standard input. Ctrl-C cancels the run, which is saved like any other; a
second Ctrl-C stops at once.
"""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from aura import limits
from aura.cli import streams
from aura.cli.hosting import make_log, make_plan
from aura.cli.options import RootOptions
from aura.cli.run_view import EventLines, RunView, View
from aura.clock import SystemClock
from aura.errors import BadRequest
from aura.events import Transient
from aura.jsontypes import JsonObject
from aura.runs import OnInput, Run
from aura.runtime.assembly import Assembly, assemble
from aura.runtime.feeds import Feed
from aura.runtime.follow import follow_run
from aura.runtime.service import Service, check_text
from aura.runtime.signals import ThreadSignal
from aura.runtime.transcript import Transcript

EXIT_CANCELLED = 130


@click.command(
    "run",
    help="Run PROMPTs one after another in one session, new or given by the root flag --resume. "
    "Without a PROMPT, standard input is the prompt. The answer goes to standard output, all else to standard error.",
)
@click.argument("prompts", nargs=-1, metavar="[PROMPT]...")
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON instead of the answer.")
@click.pass_obj
def command(options: RootOptions, prompts: tuple[str, ...], as_json: bool) -> None:
    """Run the prompts; exit 0 if all of them completed, 1 at the first that did not, 130 after Ctrl-C."""
    texts = [check_text(text, "prompt") for text in prompts or (_read_prompt(),)]
    log = make_log(options)
    output = options.output.absolute() if options.output else None
    assembly = assemble(make_plan(options), url=None, make_signal=ThreadSignal, clock=SystemClock(), log=log)
    view: View = EventLines(sys.stdout) if as_json else RunView(sys.stdout, sys.stderr)
    interactive = bool(prompts) and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    transcript = Transcript(assembly.service, output) if output else None
    with _interruptions() as interruptions:
        last = _run_all(assembly, texts, view, interruptions, "wait" if interactive else "block")
    _finish(assembly, transcript, view, last)
    if last.outcome == "completed" and last.state == "persisted":
        return
    raise SystemExit(EXIT_CANCELLED if interruptions and last.outcome == "cancelled" else 1)


def _run_all(assembly: Assembly, texts: list[str], view: View, interruptions: list[int], on_input: OnInput) -> Run:
    service = assembly.service
    feed = service.open_feed()
    try:
        for text in texts:
            run = _run_one(service, feed, text, view, interruptions, on_input)
            if run.outcome != "completed":
                return run
        return run
    finally:
        service.release_feed(feed)


def _run_one(service: Service, feed: Feed, text: str, view: View, interruptions: list[int], on_input: OnInput) -> Run:
    run = service.submit(uuid.uuid4().hex, "prompt", text, on_input).run

    def tick() -> None:
        if interruptions:
            service.cancel_run(run.id)

    for item in follow_run(service, feed, run.id, run.accepted_seq - 1, tick):
        _show(service, run.id, item, view)
    return service.get_run(run.id)


def _show(service: Service, run_id: str, item: JsonObject | Transient, view: View) -> None:
    if not isinstance(item, dict):
        view.live(item)  # type: ignore[arg-type]
        return
    view.event(item)
    if item["type"] == "input.required" and (answer := view.ask(item)) is not None:
        service.answer_input(run_id, answer.input_id, answer=answer.answer, action=answer.action)


def _finish(assembly: Assembly, transcript: Transcript | None, view: View, last: Run) -> None:
    service = assembly.service
    service.stop("request")
    service.wait_stopped(limits.SETTLE_MS)
    if transcript is not None:
        transcript.close()
    view.end(last, service.session_id)
    assembly.close()


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM; the second one raises KeyboardInterrupt."""
    caught: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        if len(caught) > 1:
            raise KeyboardInterrupt

    before = [(number, signal.signal(number, note)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield caught
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _read_prompt() -> str:
    if sys.stdin.isatty():
        streams.write_stderr("Type the prompt; end it with Ctrl-D.\n")
    text = sys.stdin.buffer.read(limits.BODY_MAX_BYTES).decode("utf-8", "replace")
    if not text.strip():
        raise BadRequest("there is no prompt", hint="Pass it as an argument or on standard input.")
    return text
