"""`aura webserver`: the configured agents over HTTP, for chat front ends and SDKs. It orders the start-up only."""

from __future__ import annotations

from typing import Literal

import click

from aura import limits
from aura.api.gateway.chat import ChatSettings
from aura.api.gateway.lifecycle import serve_gateway
from aura.api.server import make_waiter
from aura.cli.hosting import enter, leave_at_once, make_log
from aura.cli.listening import listen, url_of
from aura.cli.options import RootOptions, current_directory
from aura.clock import SystemClock
from aura.runtime.gateway.assembly import GatewayPlan, assemble_gateway


@click.command("webserver", help="Serve the configured agents over HTTP, to chat front ends and OpenAI SDKs.")
@click.option("--host", default="127.0.0.1")
@click.option("--port", type=int, default=8080)
@click.option("--server", type=click.Choice(("gevent", "waitress")), default="gevent")
@click.pass_obj
def command(options: RootOptions, host: str, port: int, server: Literal["gevent", "waitress"]) -> None:
    """Serve until a signal; exit 0 if every run had its end recorded, else 1."""
    log = make_log(options)
    homes = options.resolve_homes()
    workdir = (options.workdir or current_directory()).absolute()
    enter(workdir)
    listener = listen(f"{host}:{port}")
    waiter = make_waiter(server)
    plan = GatewayPlan(homes, workdir)
    assembly = assemble_gateway(
        plan, url=url_of(listener), make_signal=waiter.make_signal, clock=SystemClock(), log=log
    )
    url = url_of(listener)
    settled = serve_gateway(
        assembly.service,
        listener,
        None,
        ChatSettings(),
        waiter=waiter,
        grace_ms=limits.SHUTDOWN_GRACE_MS,
        on_ready=lambda: log.info("gateway", f"listening on {url}"),
    )
    if not settled:
        leave_at_once(1)
    assembly.close()
