"""The resolved configuration as frozen values: what a run pins. It reads no file and knows no key of one.

It is imported by offline commands too, so it needs the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from aura import limits
from aura.config.homes import Homes

ProviderType = Literal["script", "openai", "llamacpp", "llamaswap"]
Think = Literal["off", "on", "low", "medium", "high"]
PROVIDER_TYPES: tuple[ProviderType, ...] = ("script", "openai", "llamacpp", "llamaswap")
THINK_LEVELS: tuple[Think, ...] = ("off", "on", "low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that must not be shown: `repr`, `str` and format never reveal it."""

    _value: str

    def reveal(self) -> str:
        """Return the secret itself. Call it where it is sent, nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class RetrySpec:
    """How often and how patiently a model call is tried again: never after its first streamed chunk."""

    max_attempts: int = 0
    base_delay_ms: int = 1_000
    max_delay_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class NamesSpec:
    """Which names, of models or of servers, may be used. Globs know `*` only; an empty `include` means all."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def accept(self, name: str) -> bool:
        """Tell whether `name` may be used. Exclude beats include; case matters."""
        if any(_matches(glob, name) for glob in self.exclude):
            return False
        return not self.include or any(_matches(glob, name) for glob in self.include)


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """One entry of `config/providers/**.yaml`. `name` is lower case, `source` the YAML file.

    `file` is the script of a `script` provider, absolute; it was there when the configuration was read. `url` has no
    trailing slash. `token_variables` names the environment variables that may hold the token.
    """

    name: str
    type: ProviderType
    source: Path
    url: str = ""
    token: Secret | None = None
    file: Path | None = None
    timeout_ms: int = limits.PROVIDER_TIMEOUT_MS
    retry: RetrySpec = field(default_factory=RetrySpec)
    models: NamesSpec = field(default_factory=NamesSpec)
    token_variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StdioTarget:
    """A command to start. All of it may hold secrets, because variables are expanded in all of it."""

    command: Secret
    args: tuple[Secret, ...] = ()
    env: tuple[tuple[str, Secret], ...] = ()


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An address to speak to."""

    url: Secret
    headers: tuple[tuple[str, Secret], ...] = ()


@dataclass(frozen=True, slots=True)
class McpServerSpec:
    """One enabled entry of `config/mcp/**.yaml` (engine.md section 9). `name` is lower case, `source` the YAML file.

    `timeout_ms` is for connecting, initializing and listing together. `written` is what identifies the target, as it
    was written: variables by name, and no value of `env` or `headers`. `secrets` are the values that no message may
    show; `secret_variables` names the environment variables that are kept from other child processes.
    """

    name: str
    source: Path
    target: StdioTarget | HttpTarget
    written: tuple[str, ...] = ()
    timeout_ms: int = limits.MCP_TIMEOUT_MS
    required: bool = False
    secrets: tuple[Secret, ...] = ()
    secret_variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """`model.generation`. None means that nothing is sent."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """`model` of an agent. `context` in tokens wins over what the provider says; None: ask the provider."""

    provider: ProviderSpec
    name: str
    context: int | None = None
    think: Think | None = None
    generation: GenerationSpec = field(default_factory=GenerationSpec)


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """Patterns `Name` or `Name:argument` with `*` (engine.md 6.4). Deny beats confirm; auto beats confirm."""

    auto: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BashSpec:
    """How much of a command's output the model sees: bytes per stream, then lines kept at head and tail."""

    max_output_bytes: int = 1024 * 1024
    max_lines: int = 200
    head_lines: int = 100
    tail_lines: int = 80


@dataclass(frozen=True, slots=True)
class ToolsSpec:
    """Which tools an agent has and how they are limited. Globs know `*` only."""

    enabled: tuple[str, ...] = ("*",)
    disabled: tuple[str, ...] = ()
    policy: PolicySpec = field(default_factory=PolicySpec)
    max_steps: int = limits.MAX_STEPS_DEFAULT
    token_budget: int = 0
    result_max_tokens: int = 20_000
    result_max_percentage: int = 95
    read_before_write: bool = True
    parallel: bool = True
    bash: BashSpec = field(default_factory=BashSpec)


@dataclass(frozen=True, slots=True)
class WebhookSpec:
    """Where approvals are asked for over HTTP (gateway.md 5.2). `headers_from_request` maps a header to be sent to the
    one of the incoming request that it is taken from; `tool_headers` names headers of the webhook's answer that go with
    the approved call to an MCP server. Header names are lower case.
    """

    url: Secret
    headers: tuple[tuple[str, Secret], ...] = ()
    headers_from_request: tuple[tuple[str, str], ...] = ()
    tool_headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HitlSpec:
    """Which calls a person must approve, and how the person is asked (gateway.md 1.10 and 5).

    `require_approval` are globs over bare tool names, or `server:glob`. `webhook` None: conversational, the people who
    watch the run are asked.
    """

    require_approval: tuple[str, ...] = ()
    timeout_ms: int = limits.APPROVAL_TIMEOUT_MS
    webhook: WebhookSpec | None = None


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent, complete: what a run pins.

    `prompt` is the body as written, not rendered; `prompt_source` is the file it stands in, which is a parent's where
    the agent has no body of its own. `home` is the config home of `source`. `fingerprint` is the SHA-256 of the spec
    without secrets and machine paths.
    """

    name: str
    prompt: str
    model: ModelSpec
    source: Path
    prompt_source: Path
    home: Path
    description: str = ""
    hidden: bool = False
    default: bool = False
    tools: ToolsSpec = field(default_factory=ToolsSpec)
    mcp: tuple[McpServerSpec, ...] = ()
    hitl: HitlSpec | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A custom slash command. `name` has no slash; `body` is the message, with `$1` … `$n` and `$ARGUMENTS` in it.

    `hints` says to people what the arguments are.
    """

    name: str
    body: str
    source: Path
    description: str = ""
    hints: str = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """All agents, providers, custom commands and enabled MCP servers of the homes, by lower-cased name and in the order
    of these names.

    `notices` says, one line each, what somebody should know although nothing is wrong enough to stop. `mirror`: a
    server keeps its session and journal as files, too.
    """

    homes: Homes
    agents: Mapping[str, AgentSpec]
    providers: Mapping[str, ProviderSpec]
    notices: tuple[str, ...] = ()
    commands: Mapping[str, CommandSpec] = field(default_factory=dict)
    servers: Mapping[str, McpServerSpec] = field(default_factory=dict)
    mirror: bool = False


def _matches(glob: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, glob.split("*"))), text, re.DOTALL) is not None
