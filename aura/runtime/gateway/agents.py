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
from dataclasses import dataclass
from pathlib import Path

from aura import events as e
from aura.clock import Clock
from aura.config.homes import Homes
from aura.config.prompt import prompt_variables, render_prompt
from aura.config.spec import AgentSpec, ProviderSpec
from aura.engine.agent import Agent, Gauge
from aura.engine.io import IoThread
from aura.engine.providers.base import Provider
from aura.engine.providers.registry import build_provider
from aura.engine.tools.client import make_client_tool
from aura.engine.tools.reads import ReadTracker
from aura.engine.tools.registry import BUILT_IN
from aura.engine.tools.toolbox import Toolbox
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
        self._provider(spec.model.provider)

    def make(self, spec: AgentSpec, run_id: str, offered: Sequence[OfferedTool], headers: Mapping[str, str]) -> Ready:
        """Return the agent for one run. `headers` are those of its request, by lower-cased name.

        Connects MCP servers that are not connected, within their own time-outs. Raises `ConfigInvalid`, and
        `McpUnavailable` for a server that is required.
        """
        with ExitStack() as stack:
            provider = self._provider(spec.model.provider)
            spill_dir = self._spill_dir / run_id
            stack.callback(shutil.rmtree, spill_dir, ignore_errors=True)
            tools, servers = self._servers.connect(spec.mcp, self._environment, spec.accepts_mcp_tool)
            client = tuple(make_client_tool(tool.name, tool.description, tool.parameters) for tool in offered)
            gauge = Gauge()
            toolbox = Toolbox(
                spec=spec.tools,
                workdir=self._workdir,
                environment=self._environment,
                spill_dir=spill_dir,
                reads=ReadTracker(),
                context_use=gauge.read,
                tools=(*BUILT_IN, *tools, *client),
            )
            prompt = render_prompt(spec, prompt_variables(spec, self._homes, self._workdir))
            return Ready(Agent(spec, provider, toolbox, prompt, gauge), servers, stack.pop_all().close)

    def close(self) -> None:
        """Close the MCP servers and remove the long outputs that were put aside."""
        self._servers.close()
        shutil.rmtree(self._spill_dir, ignore_errors=True)

    def _provider(self, spec: ProviderSpec) -> Provider:
        with self._lock:
            if spec not in self._providers:
                self._providers[spec] = build_provider(spec, self._io, self._clock)
            return self._providers[spec]
