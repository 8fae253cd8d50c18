"""TOML agents on disk, for the tests of this folder. It is a test tool, not a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from aura.config.spec import AgentSpec, SharedSpec
from aura.config.toml_agents import TomlAgents, read_toml_agents
from aura.errors import ConfigInvalid

AGENT = '[agent]\nname = "ops"\nsystem_prompt = "You operate the cluster."\n'
LLM = '[agent.llm]\nprovider = "openai"\napi_key = "none"\nmodel = "any"\nbase_url = "http://127.0.0.1:9999/v1"\n'


class TomlFolder:
    """A folder of TOML agents. `put` writes a file; without one of its own an agent gets a valid `[agent.llm]`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def put(self, text: str, name: str = "ops.toml") -> Path:
        path = self.path / name
        path.write_text(text)
        return path

    def agent(self, agent: str = "", rest: str = "", llm: str = LLM, name: str = "ops.toml") -> Path:
        """Write a valid agent with `agent` as further keys of `[agent]` and `rest` as further tables."""
        return self.put(f"{AGENT}{agent}\n{llm}\n{rest}\n", name)

    def read(self, environ: Mapping[str, str] | None = None, shared: SharedSpec | None = None) -> TomlAgents:
        return read_toml_agents(self.path, environ or {}, shared)

    def one(self, environ: Mapping[str, str] | None = None, shared: SharedSpec | None = None) -> AgentSpec:
        (agent,) = self.read(environ, shared).agents
        return agent

    def refusal(self, environ: Mapping[str, str] | None = None) -> ConfigInvalid:
        """Read, which must fail, and return the error."""
        with pytest.raises(ConfigInvalid) as caught:
            self.read(environ)
        assert "\n" not in caught.value.message
        return caught.value
