"""Feature tables and the feature files of the homes: `config/sandbox/**` and `config/features/**` (engine.md 1.6).

The same tables read the `features` key of an agent. What the values mean is the engine's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from aura import limits
from aura.config.files import YAML_SUFFIXES, list_files, read_text
from aura.config.headless import HEADLESS_TABLE
from aura.config.hitl import HITL_TABLE
from aura.config.readers import Flag, Texts, Whole
from aura.config.schema import Later, Place, Settings, Table, overlay, read_settings
from aura.config.spec import BashSpec, McpServerSpec, NamesSpec, PolicySpec, ToolsSpec
from aura.config.yaml_text import parse_yaml

POLICY_TABLE: Table = {"auto": Texts("Read"), "confirm": Texts("Bash:git push*"), "deny": Texts("Bash:sudo *")}
MAX_STEPS = Whole(1, limits.MAX_STEPS_MAX_COUNT, "model calls of one run")
TOKEN_BUDGET = Whole(0, limits.TOKEN_BUDGET_MAX_TOKENS, "tokens; 0 is no limit")

_LINES = Whole(0, limits.OUTPUT_LINES_MAX_COUNT, "lines")
_PATHS = Texts("/tmp")
_ACCESS: Table = {"ro": _PATHS, "rw": _PATHS}
_TOOLS: Table = {
    "max_steps": MAX_STEPS,
    "token_budget": TOKEN_BUDGET,
    "result": {
        "max_tokens": Whole(1, limits.CONTEXT_MAX_TOKENS, "tokens"),
        "max_percentage": Whole(1, 100, "percent of the context window"),
    },
    "read_before": {"write": Flag(), "delete": Later("read_before.delete is")},
    "parallel": Flag(),
    "bash": {
        "truncation": {
            "max_output_bytes": Whole(1, limits.OUTPUT_MAX_BYTES, "bytes"),
            "max_lines": Whole(1, limits.OUTPUT_LINES_MAX_COUNT, "lines"),
            "head_lines": _LINES,
            "tail_lines": _LINES,
        },
        "rewrite": Later("rewriting commands is"),
    },
    "policy": POLICY_TABLE,
    "mode": Later("choosing the size guard is"),
    "read_small_file_tokens": Later("read_small_file_tokens is"),
    "rejection_message": Later("rejection_message is"),
    "user_input_max_percentage": Later("user_input_max_percentage is"),
    "enabled": Later("filtering tools for all agents is"),
    "disabled": Later("filtering tools for all agents is"),
    "opt_in": Later("opt-in tools are"),
    "deferred": Later("deferred tools are"),
    "webfetch_max_body_size": Later("WebFetch is"),
}
_SANDBOX: Table = {"enabled": Flag(), "required": Flag(), "restrictions": _ACCESS, "extra": _ACCESS}
FEATURES_TABLE: Table = {
    "tools": _TOOLS,
    "sandbox": _SANDBOX,
    "mcp": {"enabled": Texts("git*"), "disabled": Texts("git*")},
    "hitl": HITL_TABLE,
    "headless": HEADLESS_TABLE,
    "compaction": Later("compaction is"),
    "title": Later("generating titles is"),
    "thinking": Later("handling earlier thinking is"),
    "vision": Later("vision is"),
    "embeddings": Later("embeddings are"),
    "stt": Later("speech to text is"),
    "tts": Later("text to speech is"),
    "subagent": Later("sub-agents are"),
    "plugins": Later("plugins are"),
    "estimation": Later("choosing the token estimate is"),
    "guardrail": Later("the guardrail is"),
    "mirror": Later("switching the mirror for one agent is"),
}
SERVER_FEATURES_TABLE: Table = {"mirror": {"enabled": Flag()}}  # of a home only: they are the server's, not an agent's
_KINDS = ("sandbox", "features")  # in this order: a feature file wins over a sandbox file of the same home
_TABLES: Mapping[str, Table] = {
    "sandbox": {"sandbox": _SANDBOX},
    "features": {**FEATURES_TABLE, **SERVER_FEATURES_TABLE},
}


def read_features(home: Path) -> Settings:
    """Return the features of one home, its files laid over one another key by key in the order of their paths."""
    layers = []
    for kind in _KINDS:
        for path in list_files(home, kind, YAML_SUFFIXES):
            tree = parse_yaml(read_text(path), path)
            layers.append(read_settings(tree, _TABLES[kind], Place(path, tree.line)))
    return overlay(layers)


def build_tools(settings: Settings) -> ToolsSpec:
    """Return the tools section of an agent from its own keys and its features, these under `features.`.

    The policies are united: a pattern of either holds.
    """
    default, prefix = ToolsSpec(), "features.tools"
    return ToolsSpec(
        enabled=settings.texts("tools.enabled", default.enabled),
        disabled=settings.texts("tools.disabled", default.disabled),
        policy=_policy(settings),
        max_steps=settings.get(f"{prefix}.max_steps", default.max_steps),
        token_budget=settings.get(f"{prefix}.token_budget", default.token_budget),
        result_max_tokens=settings.get(f"{prefix}.result.max_tokens", default.result_max_tokens),
        result_max_percentage=settings.get(f"{prefix}.result.max_percentage", default.result_max_percentage),
        read_before_write=settings.get(f"{prefix}.read_before.write", default.read_before_write),
        parallel=settings.get(f"{prefix}.parallel", default.parallel),
        bash=_bash(settings),
    )


def choose_servers(settings: Settings, servers: Iterable[McpServerSpec]) -> tuple[McpServerSpec, ...]:
    """Return the servers that an agent's features let it use: all by default, and a disabled one never."""
    names = NamesSpec(_lower(settings.texts("features.mcp.enabled")), _lower(settings.texts("features.mcp.disabled")))
    return tuple(server for server in servers if names.accept(server.name))


def sandbox_notice(settings: Settings) -> str | None:
    """Return the notice for a sandbox that is asked for but not required, None when none is asked for.

    Raises `ConfigInvalid` when one is asked for and required, which it is by default (interfaces.md section 7).
    """
    enabled = settings.items.get("features.sandbox.enabled")
    if enabled is None or enabled.value is not True:
        return None
    problem = "the sandbox is asked for, and this version has none"
    if settings.get("features.sandbox.required", True):
        hint = "Set sandbox.required: false to run without it, or sandbox.enabled: false."
        raise enabled.place.error(problem, hint=hint)
    return f"{enabled.place}: {problem}; tools run without it"


def _lower(globs: Iterable[str]) -> tuple[str, ...]:
    return tuple(glob.lower() for glob in globs)


def _policy(settings: Settings) -> PolicySpec:
    both = ("features.tools.policy", "tools.policy")
    lists = [
        tuple(dict.fromkeys(pattern for prefix in both for pattern in settings.texts(f"{prefix}.{kind}")))
        for kind in ("auto", "confirm", "deny")
    ]
    return PolicySpec(*lists)


def _bash(settings: Settings) -> BashSpec:
    default, prefix = BashSpec(), "features.tools.bash.truncation"
    return BashSpec(
        max_output_bytes=settings.get(f"{prefix}.max_output_bytes", default.max_output_bytes),
        max_lines=settings.get(f"{prefix}.max_lines", default.max_lines),
        head_lines=settings.get(f"{prefix}.head_lines", default.head_lines),
        tail_lines=settings.get(f"{prefix}.tail_lines", default.tail_lines),
    )
