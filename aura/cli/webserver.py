"""`aura webserver`: the configured agents over HTTP, for chat front ends and SDKs. It orders the start-up; the work is
elsewhere.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from aura.api.gateway.chat import ChatSettings
from aura.api.gateway.lifecycle import serve_gateway
from aura.api.server import make_waiter
from aura.cli.hosting import enter, leave_at_once, make_log
from aura.cli.listening import listen, url_of
from aura.cli.options import RootOptions, current_directory
from aura.clock import SystemClock
from aura.config.dotenv import with_dotenv
from aura.config.gateway_options import OPTION_SECRET_VARIABLES, GatewayOptions, Given, read_gateway_options
from aura.errors import AuraError, ConfigInvalid, StartupFailed
from aura.runtime.environ import erase_from_environ
from aura.runtime.gateway.assembly import GatewayAssembly, GatewayPlan, assemble_gateway
from aura.runtime.log import Log
from aura.runtime.ready import ReadyFile, as_startup_error
from aura.wire.chat import ChatOptions


@click.command(
    "webserver",
    help="Serve the configured agents over HTTP, to chat front ends and OpenAI SDKs. Each option has a variable of the "
    "environment, in brackets, which a .env file in the working directory may set; the flag wins. AURA_API_KEY, if it "
    "is set, is what callers must present as a bearer token.",
)
@click.option("--host", metavar="HOST", help="Where to listen [HOST]; 127.0.0.1 by default.")
@click.option("--port", metavar="PORT", help="Port, 0 for a free one [PORT]; 8080 by default.")
@click.option("--agents", metavar="PATH", help="TOML file, or directory of them, with more agents [CONFIG_PATH].")
@click.option("--default-agent", metavar="ID", help="Agent of requests that name none [DEFAULT_AGENT].")
@click.option(
    "--tool-result-mode",
    metavar="MODE",
    help="How results of tools are shown: none, open-web-ui or aura [TOOL_RESULT_MODE].",
)
@click.option(
    "--tool-result-max-length",
    metavar="CHARS",
    help="Where a shown result is cut, 0 for nowhere [TOOL_RESULT_MAX_LENGTH]; 1000 by default.",
)
@click.option(
    "--streaming-buffer-size",
    metavar="FRAMES",
    help="Frames joined to one write at most [STREAMING_BUFFER_SIZE]; 400 by default.",
)
@click.option(
    "--aura-custom-events", is_flag=True, default=None, help="Send aura.* events in streams [AURA_CUSTOM_EVENTS]."
)
@click.option(
    "--aura-emit-reasoning", is_flag=True, default=None, help="And the model's reasoning [AURA_EMIT_REASONING]."
)
@click.option(
    "--streaming-timeout-secs",
    metavar="SECONDS",
    help="How long a request may take, 0 for ever [STREAMING_TIMEOUT_SECS]; 900 by default.",
)
@click.option(
    "--first-chunk-timeout-secs",
    metavar="SECONDS",
    help="How long a provider may be silent at first, 0 for ever [FIRST_CHUNK_TIMEOUT_SECS]; 90 by default.",
)
@click.option(
    "--stream-inactivity-timeout-secs",
    metavar="SECONDS",
    help="How long a stream may be silent later, 0 for ever [STREAM_INACTIVITY_TIMEOUT_SECS]; 0 by default.",
)
@click.option(
    "--shutdown-timeout-secs",
    metavar="SECONDS",
    help="How long requests may go on at shutdown [SHUTDOWN_TIMEOUT_SECS]; 30 by default.",
)
@click.option(
    "--ready-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Written when the server is up, or with the reason why it is not.",
)
@click.option("--insecure", is_flag=True, help="Serve without AURA_API_KEY although others can reach this host.")
@click.option(
    "--server",
    type=click.Choice(("gevent", "waitress")),
    default="gevent",
    show_default=True,
    help="HTTP server: one hub, or plain threads with fewer streams.",
)
@click.pass_obj
def command(
    options: RootOptions,
    /,
    ready_file: Path | None,
    insecure: bool,
    server: Literal["gevent", "waitress"],
    **flags: Given,
) -> None:
    """Serve until a signal; exit 0 if every run had its end recorded, else 1."""
    ready = ReadyFile(ready_file.absolute()) if ready_file is not None else None
    if ready is not None:
        ready.clear()
    log = make_log(options)
    try:
        settled, assembly = _serve(options, flags, server, ready, log, insecure=insecure)
    except AuraError as error:
        raise _reported(ready, error) from error
    if not settled:
        leave_at_once(1)
    assembly.close()


def _serve(
    root: RootOptions,
    flags: dict[str, Given],
    server: Literal["gevent", "waitress"],
    ready: ReadyFile | None,
    log: Log,
    *,
    insecure: bool,
) -> tuple[bool, GatewayAssembly]:
    homes = root.resolve_homes()
    workdir = (root.workdir or current_directory()).absolute()
    launch_dir = current_directory()
    enter(workdir)
    environ = with_dotenv(os.environ, workdir)
    options = read_gateway_options(flags, environ)
    for name in sorted(OPTION_SECRET_VARIABLES & os.environ.keys()):
        erase_from_environ(name)
    _check_exposed(options, insecure=insecure)
    listener = listen(f"[{options.host}]:{options.port}" if ":" in options.host else f"{options.host}:{options.port}")
    waiter, url = make_waiter(server), url_of(listener)
    agents = launch_dir / options.agents if options.agents is not None else None
    plan = GatewayPlan(homes, workdir, replace(options, agents=agents), environ)
    assembly = assemble_gateway(plan, url=url, make_signal=waiter.make_signal, clock=SystemClock(), log=log)

    def announce() -> None:
        if ready is not None:
            try:
                ready.announce(assembly.service.read_place())
            except OSError as error:
                raise StartupFailed(f"the ready file cannot be written: {error.strerror}") from error
        log.info("gateway", f"listening on {url}")

    settled = serve_gateway(
        assembly.service,
        listener,
        options.api_key.reveal() if options.api_key is not None else None,
        _settings(options),
        waiter=waiter,
        grace_ms=options.shutdown_timeout_ms,
        on_ready=announce,
    )
    return settled, assembly


def _check_exposed(options: GatewayOptions, *, insecure: bool) -> None:
    if options.api_key is None and not options.is_loopback and not insecure:
        raise ConfigInvalid(
            f"anybody who reaches {options.host} could use these agents and their tools",
            hint="Set AURA_API_KEY, or serve without it by --insecure.",
        )


def _settings(options: GatewayOptions) -> ChatSettings:
    shown = ChatOptions(
        options.tool_result_mode, options.tool_result_max_length, options.custom_events, options.emit_reasoning
    )
    return ChatSettings(
        shown,
        first_chunk_ms=options.first_chunk_timeout_ms,
        inactivity_ms=options.inactivity_timeout_ms,
        buffer_count=options.streaming_buffer_size,
        debug_provider_errors=options.debug_provider_errors,
    )


def _reported(ready: ReadyFile | None, error: AuraError) -> AuraError:
    """Return `error` as a start-up error, after the ready file, if there is one, has told the launcher."""
    failure = as_startup_error(error)
    if ready is None:
        return failure
    try:
        ready.report(failure)
    except OSError as unwritable:
        failure.hint = f"The ready file could not be written either: {unwritable.strerror}."
    return failure
