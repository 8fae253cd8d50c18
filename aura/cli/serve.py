"""`aura serve`: one session over HTTP for a controller (contract.md). It orders the start-up; the work is elsewhere."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

import click

from aura import limits
from aura.api.server import Waiter, make_waiter, serve
from aura.cli.hosting import leave_at_once, make_log, make_plan
from aura.cli.listening import listen, url_of
from aura.cli.options import RootOptions
from aura.clock import SystemClock
from aura.errors import AuraError, StartupFailed, Unauthorized
from aura.jsontypes import JsonValue
from aura.runtime.assembly import Assembly, assemble
from aura.runtime.environ import erase_from_environ
from aura.runtime.launcher import Launcher
from aura.runtime.log import Log
from aura.runtime.ready import ReadyFile, as_startup_error
from aura.runtime.transcript import Transcript

TOKEN_VARIABLE = "AURA_SERVE_TOKEN"


@click.command(
    "serve",
    help="Serve one session over HTTP. The bearer token is read from AURA_SERVE_TOKEN. "
    "Without the root flag --resume a fresh session is made.",
)
@click.option(
    "--bind", default="127.0.0.1:0", show_default=True, metavar="HOST:PORT", help="Where to listen; port 0 picks one."
)
@click.option(
    "--ready-file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Written when the server is up, or with the reason why it is not.",
)
@click.option(
    "--launcher-fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Read end of the launcher's pipe: a byte releases this server, end-of-file stops it.",
)
@click.option(
    "--server",
    type=click.Choice(("gevent", "waitress")),
    default="gevent",
    show_default=True,
    help="HTTP server: one hub, or plain threads with fewer streams.",
)
@click.option(
    "--settle-ms",
    type=click.IntRange(0),
    default=limits.SETTLE_MS,
    hidden=True,
    help="How long a run may take to settle at shutdown.",
)
@click.pass_obj
def command(
    options: RootOptions,
    bind: str,
    ready_file: Path,
    launcher_fd: int | None,
    server: Literal["gevent", "waitress"],
    settle_ms: int,
) -> None:
    """Serve until a signal, a request or the launcher's death; exit 0 if everything was saved, else 1."""
    ready = ReadyFile(ready_file.absolute())
    ready.clear()
    log = make_log(options)
    try:
        launcher = Launcher(launcher_fd) if launcher_fd is not None else None
        token = _take_token()
        listener = listen(bind)
        waiter = make_waiter(server)
        output = options.output.absolute() if options.output else None
        assembly = _assemble(options, settle_ms, listener, waiter, log)
        transcript = Transcript(assembly.service, output) if output else None
    except AuraError as error:
        raise _reported(ready, error) from error
    saved = _serve(assembly, listener, token, waiter, ready, launcher)
    if transcript is not None:
        transcript.close()
    if not saved:
        leave_at_once(1)
    assembly.close()


def _serve(
    assembly: Assembly, listener: socket.socket, token: str, waiter: Waiter, ready: ReadyFile, launcher: Launcher | None
) -> bool:
    service = assembly.service

    def announce() -> None:
        if launcher is not None:
            launcher.check()
            launcher.call_when_lost(lambda: service.stop("launcher_lost"))
        try:
            ready.announce(_ready_fields(assembly))
        except OSError as error:
            raise StartupFailed(f"the ready file cannot be written: {error.strerror}") from error

    try:
        serve(service, listener, token, waiter=waiter, on_ready=announce)
    except AuraError as error:
        service.stop("launcher_lost")
        service.wait_stopped()
        raise _reported(ready, error) from error
    return service.saved


def _reported(ready: ReadyFile, error: AuraError) -> AuraError:
    """Return `error` as a start-up error, after the ready file has told the launcher, if that can be written."""
    failure = as_startup_error(error)
    try:
        ready.report(failure)
    except OSError as unwritable:
        failure.hint = f"The ready file could not be written either: {unwritable.strerror}."
    return failure


def _assemble(options: RootOptions, settle_ms: int, listener: socket.socket, waiter: Waiter, log: Log) -> Assembly:
    plan = make_plan(options, settle_ms=settle_ms)
    return assemble(plan, url=url_of(listener), make_signal=waiter.make_signal, clock=SystemClock(), log=log)


def _ready_fields(assembly: Assembly) -> dict[str, JsonValue]:
    server = assembly.service.read_server()
    names = ("url", "pid", "session_id", "aura_version", "commit", "workdir", "write_home")
    return {name: server[name] for name in names}


def _take_token() -> str:
    """Return the server's token and erase it from the environment before any child process can see it."""
    token = erase_from_environ(TOKEN_VARIABLE) or ""
    if len(token) < limits.TOKEN_MIN_CHARS:
        raise Unauthorized(
            f"{TOKEN_VARIABLE} is {'too short' if token else 'not set'}",
            hint=f"Set it to a random secret of at least {limits.TOKEN_MIN_CHARS} characters.",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Unauthorized(
            f"{TOKEN_VARIABLE} holds characters that no header can carry", hint="Use letters, digits and punctuation."
        )
    return token
