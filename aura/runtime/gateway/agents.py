"""Makes an agent ready for one run of the gateway: provider, MCP servers, tools, rendered prompt (gateway.md 2.6).

Providers and MCP connections are the process's; what a run must not share with another one, it gets anew: the gauge,
which files were read, the place for long outputs, and connections that carry headers of its own request. It contacts
no provider. Native threads only, several at once.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from aura import events as e
from aura.clock import Clock
from aura.config.homes import Homes
from aura.config.prompt import prompt_variables, render_prompt
from aura.config.spec import AgentSpec, HttpTarget, McpServerSpec, ProviderSpec, Secret, ToolsSpec
from aura.engine.agent import Agent, Gauge
from aura.engine.io import IoThread
from aura.engine.mcp.servers import McpServers
from aura.engine.providers.base import Provider
from aura.engine.providers.registry import build_provider
from aura.engine.tools.base import Tool
from aura.engine.tools.client import make_client_tool
from aura.engine.tools.reads import ReadTracker
from aura.engine.tools.registry import BUILT_IN
from aura.engine.tools.toolbox import Toolbox
from aura.errors import BadRequest
from aura.runtime.agents import refuse_approvals
from aura.runtime.gateway.mcp import SharedServers
from aura.wire.chat_request import OfferedTool


@dataclass(frozen=True, slots=True)
class Ready:
    """An agent at the disposal of one run, and how its MCP servers stand. `close` after the run."""

    agent: Agent
    servers: tuple[e.McpServerStatus, ...]
    close: Callable[[], object]


class AgentMaker:
    """Makes agents. `environment` is what child processes get, without secrets."""

    def __init__(self, homes: Homes, workdir: Path, io: IoThread, clock: Clock, environment: Mapping[str, str]) -> None:
        self._homes = homes
        self._workdir = workdir
        self._io = io
        self._clock = clock
        self._environment = environment
        self._servers = SharedServers(io, workdir, clock)
        self._providers: dict[ProviderSpec, Provider] = {}
        self._lock = threading.Lock()
        self._spill_dir = Path(tempfile.mkdtemp(prefix="aura-output-"))

    def check(self, spec: AgentSpec) -> None:
        """Raise `ConfigInvalid` for an agent that no run could use, such as one whose script does not exist."""
        refuse_approvals(spec)
        self._provider(spec.model.provider)

    def make(self, spec: AgentSpec, run_id: str, offered: Sequence[OfferedTool], headers: Mapping[str, str]) -> Ready:
        """Return the agent for one run. `headers` are those of its request, by lower-cased name.

        Connects MCP servers that are not connected, within their own time-outs. Raises `ConfigInvalid`, and
        `McpUnavailable` for a server that is required, and `BadRequest` for an offered tool that the agent has itself.
        """
        with ExitStack() as stack:
            provider = self._provider(spec.model.provider)
            spill_dir = self._spill_dir / run_id
            stack.callback(shutil.rmtree, spill_dir, ignore_errors=True)
            tools, servers = self._connect(spec, headers, stack)
            client = tuple(make_client_tool(tool.name, tool.description, tool.parameters) for tool in offered)
            gauge = Gauge()
            toolbox = Toolbox(
                spec=_with_client_tools(spec.tools, offered),
                workdir=self._workdir,
                environment=self._environment,
                spill_dir=spill_dir,
                reads=ReadTracker(),
                context_use=gauge.read,
                tools=(*BUILT_IN, *tools, *client),
            )
            _check_names(replace(toolbox, spec=spec.tools, tools=(*BUILT_IN, *tools)), offered)
            prompt = render_prompt(spec, prompt_variables(spec, self._homes, self._workdir))
            return Ready(Agent(spec, provider, toolbox, prompt, gauge), servers, stack.pop_all().close)

    def close(self) -> None:
        """Close the MCP servers and remove the long outputs that were put aside."""
        self._servers.close()
        shutil.rmtree(self._spill_dir, ignore_errors=True)

    def _connect(
        self, spec: AgentSpec, headers: Mapping[str, str], stack: ExitStack
    ) -> tuple[tuple[Tool, ...], tuple[e.McpServerStatus, ...]]:
        """Return the tools of the agent's servers and how these stand; those that get headers of the request are
        connected for this run alone."""
        own = tuple(_with_headers(server, headers) for server in spec.mcp if _forwards(server))
        shared = [server for server in spec.mcp if not _forwards(server)]
        tools, statuses = self._servers.connect(shared, self._environment, spec.accepts_mcp_tool)
        if not own:
            return tools, statuses
        servers = McpServers(self._io, self._workdir)
        stack.callback(servers.close)
        own_tools = servers.connect(own, self._environment, spec.accepts_mcp_tool)
        return (*tools, *own_tools), (*statuses, *servers.describe(own))

    def _provider(self, spec: ProviderSpec) -> Provider:
        with self._lock:
            if spec not in self._providers:
                self._providers[spec] = build_provider(spec, self._io, self._clock)
            return self._providers[spec]


def _forwards(server: McpServerSpec) -> bool:
    return isinstance(server.target, HttpTarget) and bool(server.target.headers_from_request)


def _with_headers(server: McpServerSpec, headers: Mapping[str, str]) -> McpServerSpec:
    """Return the server with headers of the request in place of its own; they are secrets like these."""
    target = server.target
    assert isinstance(target, HttpTarget)
    taken = {to: Secret(headers[name]) for to, name in target.headers_from_request if name in headers}
    kept = tuple((name, value) for name, value in target.headers if name.lower() not in taken)
    secrets = (*server.secrets, *taken.values())
    return replace(server, target=replace(target, headers=(*kept, *taken.items())), secrets=secrets)


def _with_client_tools(tools: ToolsSpec, offered: Sequence[OfferedTool]) -> ToolsSpec:
    if not tools.enabled:
        return tools
    return replace(tools, enabled=(*tools.enabled, *(tool.name for tool in offered)))


def _check_names(own: Toolbox, offered: Sequence[OfferedTool]) -> None:
    clash = next((tool.name for tool in offered if own.find(tool.name) is not None), None)
    if clash is not None:
        raise BadRequest(f"the agent has a tool named {clash} itself", hint="Offer it under another name.")
