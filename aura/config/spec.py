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

ProviderType = Literal["script", "openai", "llamacpp", "llamaswap", "openrouter", "ollama"]
Think = Literal["off", "on", "low", "medium", "high"]
Liveness = Literal["continue", "cancel"]
PROVIDER_TYPES: tuple[ProviderType, ...] = ("script", "openai", "llamacpp", "llamaswap", "openrouter", "ollama")
THINK_LEVELS: tuple[Think, ...] = ("off", "on", "low", "medium", "high")
LIVENESS_POLICIES: tuple[Liveness, ...] = ("continue", "cancel")


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
    """One entry of `config/providers/**.yaml`, or the provider of one agent in a TOML file. `source` is the file.

    `name` is lower case and one of a kind; an agent's own provider is called `<type>@<agent id>`, which no entry of the
    homes can be. `file` is the script of a `script` provider, absolute; it was there when the configuration was read.
    `url` has no trailing slash. `token_variables` names the environment variables that may hold the token.
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
    shown_name: str = ""

    @property
    def wire_name(self) -> str:
        """What callers of the gateway read before the slash of `provider/model`."""
        return self.shown_name or self.name


@dataclass(frozen=True, slots=True)
class StdioTarget:
    """A command to start. All of it may hold secrets, because variables are expanded in all of it."""

    command: Secret
    args: tuple[Secret, ...] = ()
    env: tuple[tuple[str, Secret], ...] = ()


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An address to speak to, by streamable HTTP, or with `legacy_sse` by the transport before it.

    `headers_from_request` maps a header to be sent to the one of the caller's request that it is taken from, both in
    lower case. It wins over the one of `headers`; where the caller sends none, that one stays.
    """

    url: Secret
    headers: tuple[tuple[str, Secret], ...] = ()
    headers_from_request: tuple[tuple[str, str], ...] = ()
    legacy_sse: bool = False


@dataclass(frozen=True, slots=True)
class McpServerSpec:
    """One enabled entry of `config/mcp/**.yaml` (engine.md section 9), or of `[mcp.servers]` of a TOML file. `name` is
    lower case, `source` the file.

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
    description: str = ""


@dataclass(frozen=True, slots=True)
class ParamsSpec:
    """A table that somebody wants merged into the provider's request. It may hold secrets.

    `sent` is its JSON text, an object. `written` is the same with variables by name, for the fingerprint.
    """

    sent: Secret
    written: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """`model.generation`. None means that nothing is sent.

    `reasoning_effort` is sent as it is and wins over the agent's `think`. Keys of `additional` win over everything else
    of the request; those that the program itself needs are not in it.
    """

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    additional: ParamsSpec | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """`model` of an agent. `context` in tokens wins over what the provider says; None: ask the provider."""

    provider: ProviderSpec
    name: str
    context: int | None = None
    think: Think | None = None
    generation: GenerationSpec = field(default_factory=GenerationSpec)

    @property
    def wire_name(self) -> str:
        """The model as the gateway renders it: `provider/model`."""
        return f"{self.provider.wire_name}/{self.name}"


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
    the approved call to an MCP server. Header names are lower case. `secret_variables` names the environment variables
    that url and headers were made of.
    """

    url: Secret
    headers: tuple[tuple[str, Secret], ...] = ()
    headers_from_request: tuple[tuple[str, str], ...] = ()
    tool_headers: tuple[str, ...] = ()
    secret_variables: tuple[str, ...] = ()


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
class HeadlessSpec:
    """What becomes of a run of the gateway that nobody watches, where its request does not say (interfaces.md 8)."""

    policy: Liveness = "continue"
    grace_ms: int = 0


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent, complete: what a run pins. It comes from a Markdown file of a home, or from a TOML file.

    `prompt` is the body as written, not rendered; it is a template unless `prompt_is_template` is false.
    `prompt_source` is the file it stands in, which is a parent's where the agent has no body of its own. `home` is the
    config home of `source`, of a TOML file its folder. `fingerprint` is the SHA-256 of the spec without secrets and
    machine paths.

    For the gateway: `owner` and `created_at_ms` (None: when it was loaded) are what its list of models says.
    `client_tools` lets the tools of a request through, those that `client_tool_filter` names if it names any.
    `mcp_filter` are globs over the bare names of MCP tools: None lets all pass, an empty one none.
    """

    name: str
    prompt: str = field(repr=False)
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
    alias: str = ""
    owner: str = ""
    created_at_ms: int | None = None
    prompt_is_template: bool = True
    mcp_filter: tuple[str, ...] | None = None
    client_tools: bool = False
    client_tool_filter: tuple[str, ...] = ()
    headless: HeadlessSpec = field(default_factory=HeadlessSpec)

    @property
    def id(self) -> str:
        """What the agent is called by: its alias, or else its name."""
        return self.alias or self.name

    def accepts_mcp_tool(self, name: str) -> bool:
        """Tell whether the agent has an MCP tool that its server calls `name`. `tools` decides, too."""
        return self.mcp_filter is None or any(_matches(glob, name) for glob in self.mcp_filter)

    def accepts_client_tool(self, name: str) -> bool:
        """Tell whether a tool of this name, which a request brings along, is let through."""
        globs = self.client_tool_filter
        return self.client_tools and (not globs or any(_matches(glob, name) for glob in globs))


@dataclass(frozen=True, slots=True)
class SharedSpec:
    """What the features of the homes say for an agent that does not come from them.

    `sandbox_problem` is the error for every agent, None when there is none.
    """

    tools: ToolsSpec = field(default_factory=ToolsSpec)
    hitl: HitlSpec | None = None
    headless: HeadlessSpec = field(default_factory=HeadlessSpec)
    sandbox_problem: str | None = None


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
    shared: SharedSpec = field(default_factory=SharedSpec)


def _matches(glob: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, glob.split("*"))), text, re.DOTALL) is not None
