"""Planted secrets: whatever a file does wrong, no error and no repr shows a value of the environment."""

from __future__ import annotations

import pytest

from aura.config.gateway import load_gateway
from aura.errors import ConfigInvalid
from tests.unit.config.home import Home
from tests.unit.config.toml_kit import AGENT, LLM, TomlFolder

SECRET = "sk-planted-0123456789"
REFERENCE = "{{ env.SECRET }}"

# Every key that takes a text: with the secret in it, the file may be right or wrong, and never shows it.
TEXTS = [
    f'alias = "{REFERENCE}"',
    f'description = "{REFERENCE}"',
    f'context = ["{REFERENCE}"]',
    f'turn_depth = "{REFERENCE}"',
    f'hidden = "{REFERENCE}"',
    f'created_at = "{REFERENCE}"',
    f'model_owner = "{REFERENCE}"',
    f'mcp_filter = ["{REFERENCE}?"]',
    f'client_tool_filter = "{REFERENCE}"',
    f'enable_client_tools = "{REFERENCE}"',
    f'x = "{REFERENCE}"',
    f'skills = "{REFERENCE}"',
]
LLMS = [
    *(f'[agent.llm]\napi_key = "k"\n{key} = "{REFERENCE}"' for key in ("provider", "model", "base_url", "file", "x")),
    *(f'[agent.llm]\napi_key = "k"\n{key} = "{REFERENCE}"' for key in ("max_tokens", "context_window", "temperature")),
    *(f'[agent.llm]\napi_key = "k"\n{key} = "{REFERENCE}"' for key in ("reasoning_effort", "additional_params")),
    f'[agent.llm]\napi_key = "{REFERENCE}\\n\\u0007x"',
    f'[agent.llm]\napi_key = "{REFERENCE}é"',
    f'[agent.llm]\napi_key = "k"\nbase_url = "http://{REFERENCE}@h"',
    f'[agent.llm]\napi_key = "k"\nadditional_params = {{tools = "{REFERENCE}"}}',
    f'[agent.llm]\napi_key = "k"\nadditional_params = {{a = "{REFERENCE}", b = nan}}',
    f'[agent.llm]\nprovider = "script"\nfile = "{REFERENCE}"',
    f'[llm]\napi_key = "{REFERENCE}"',
]
SERVER = '[mcp.servers.s]\ntransport = "{}"\n{} = {}\n'
RESTS = [
    SERVER.format(REFERENCE, "cmd", '["c"]'),
    SERVER.format("stdio", "cmd", f'["{REFERENCE}\\u0000"]'),
    SERVER.format("stdio", "cmd", f'"{REFERENCE}"'),
    SERVER.format("stdio", "cmd", f'["c"]\nargs = ["{REFERENCE}", 1]'),
    SERVER.format("stdio", "cmd", f'["c"]\nenv = {{A = "{REFERENCE}\\u0000"}}'),
    SERVER.format("stdio", "cmd", f'["c"]\nenv = "{REFERENCE}"'),
    SERVER.format("stdio", "description", f'"{REFERENCE}"'),
    SERVER.format("sse", "url", f'"{REFERENCE}"'),
    SERVER.format("sse", "url", f'"http://u:{REFERENCE}@h"'),
    SERVER.format("sse", "url", f'"http://h"\nheaders = {{a = " {REFERENCE}"}}'),
    SERVER.format("sse", "url", f'"http://h"\nheaders_from_request = {{a = "{REFERENCE} "}}'),
    SERVER.format("sse", "url", f'"http://h"\nconnect_timeout_secs = "{REFERENCE}"'),
    f'[hitl]\nrequire_approval = ["{REFERENCE}:x"]',
    f'[hitl]\nrequire_approval = ["{REFERENCE}!"]',
    f'[hitl.route]\nmode = "{REFERENCE}"',
    f'[hitl.route]\nurl = "{REFERENCE}"',
    f'[hitl.route]\nmode = "webhook"\nurl = "{REFERENCE}"',
    f'[hitl.route]\nmode = "webhook"\nurl = "https://h/#{REFERENCE}"',
    f'[hitl.route]\nmode = "webhook"\nurl = "https://h"\nheaders = {{a = "{REFERENCE} "}}',
    f'[hitl.route]\nmode = "webhook"\nurl = "https://h"\nheaders_from_request = {{a = "{REFERENCE} "}}',
    f'[hitl.route]\nmode = "webhook"\nurl = "https://h"\ntool_headers_from_response = ["{REFERENCE}", "{REFERENCE}"]',
    f'[hitl.route]\nmode = "conversational"\nurl = "{REFERENCE}"',
    f'[headless]\npolicy = "{REFERENCE}"',
    f'[tools]\nbuiltin = ["{REFERENCE}?"]',
    f'[tools]\nfilesystem = "{REFERENCE}"',
    f'memory_dir = "{REFERENCE}"\n[hitl]\nx = 1',
    f'[[vector_stores]]\nname = "{REFERENCE}"',
    f'[orchestration]\nname = "{REFERENCE}"',
    f'["{REFERENCE}"]\nx = 1',
]
FILES = [
    *(f"{AGENT}{keys}\n{LLM}" for keys in TEXTS),
    *(f"{AGENT}{table}\n" for table in LLMS),
    *(f"{AGENT}{LLM}{table}\n" for table in RESTS),
    f'[agent]\nname = "{REFERENCE}"\nsystem_prompt = 1\n{LLM}',
    f'[agent]\nname = "{REFERENCE}\\n"\nsystem_prompt = "x"\n{LLM}',
    f'[agent]\nname = "{"x" * 120}{REFERENCE}"\nsystem_prompt = "x"\n{LLM}',
    f'[agent]\nname = ["{REFERENCE}"]\nsystem_prompt = "x"\n{LLM}',
    f'{AGENT}{LLM}x = "{REFERENCE}" y',
    f'{AGENT}{LLM}x = "{REFERENCE}',
    f'{AGENT}{LLM}x = "{REFERENCE}{{{{ env.none }}}}"',
    f'{AGENT}{LLM}x = "{REFERENCE}{{{{ env.NONE }}}}"',
]


@pytest.mark.parametrize("text", FILES, ids=[str(number) for number in range(len(FILES))])
def test_no_error_shows_a_value_of_the_environment(folder: TomlFolder, text: str) -> None:
    folder.put(text)
    try:
        folder.read({"SECRET": SECRET})
    except ConfigInvalid as error:
        shown = f"{error.message} {error.hint} {error.details} {error!r}"
        assert SECRET not in shown
        assert error.__cause__ is None or SECRET not in repr(error.__cause__)


def test_most_of_these_files_are_refused(folder: TomlFolder) -> None:
    refused = 0
    for text in FILES:
        folder.put(text)
        try:
            folder.read({"SECRET": SECRET})
        except ConfigInvalid:
            refused += 1
    assert refused > len(FILES) - 12


ALL_SECRET = f"""
[agent]
name = "ops"
system_prompt = "You know {REFERENCE}."
context = ["{REFERENCE}"]
[agent.llm]
api_key = "{REFERENCE}"
additional_params = {{key = "{REFERENCE}", literal = "{SECRET}", list = ["{REFERENCE}"]}}
[mcp.servers.a]
transport = "stdio"
cmd = ["{REFERENCE}"]
args = ["--key={REFERENCE}", "{REFERENCE}"]
env = {{KEY = "{REFERENCE}", LITERAL = "{SECRET}"}}
[mcp.servers.b]
transport = "http_streamable"
url = "http://h/{REFERENCE}?q={SECRET}"
headers = {{a = "{REFERENCE}", b = "{SECRET}"}}
[hitl]
require_approval = ["a"]
[hitl.route]
mode = "webhook"
url = "https://h/{SECRET}?q={REFERENCE}"
headers = {{a = "{REFERENCE}", b = "{SECRET}"}}
"""


def test_no_spec_shows_what_is_secret(home: Home, folder: TomlFolder) -> None:
    folder.put(ALL_SECRET)
    gateway = load_gateway(home.load(), folder.path, {"SECRET": SECRET}, None)
    agent = gateway.agents["ops"]
    assert SECRET in agent.prompt
    for value in (gateway, agent, agent.model, agent.mcp, agent.hitl, gateway.configuration):
        assert SECRET not in f"{value!r} {value}"
    assert "SECRET" in gateway.secret_variables
    assert SECRET in gateway.secret_values


def test_no_notice_shows_a_value_of_the_environment(home: Home, folder: TomlFolder) -> None:
    folder.put(
        f'memory_dir = "{REFERENCE}"\n{AGENT}{LLM}[mcp]\nsanitize_schemas = true\n'
        f'[hitl]\nrequire_approval = ["{REFERENCE}"]\n'
    )
    gateway = load_gateway(home.load(), folder.path, {"SECRET": SECRET}, None, inactivity_timeout_ms=1)
    assert len(gateway.notices) == 3
    assert SECRET not in " ".join(gateway.notices)
