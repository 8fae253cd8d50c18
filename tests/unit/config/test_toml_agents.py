"""What a TOML agent becomes: every key, the defaults, and how it relates to the features of the homes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aura.config.homes import Homes
from aura.config.prompt import prompt_variables, render_prompt
from aura.config.spec import (
    AgentSpec,
    BashSpec,
    HeadlessSpec,
    HitlSpec,
    HttpTarget,
    PolicySpec,
    Secret,
    SharedSpec,
    StdioTarget,
    ToolsSpec,
)
from aura.errors import ConfigInvalid
from tests.unit.config.toml_kit import AGENT, LLM, TomlFolder

# gateway.md 1.11, word for word.
MINIMAL = """
memory_dir = "./state"
[agent]
name = "ops"
system_prompt = "You operate the cluster."
[agent.llm]
provider = "openai"
api_key = "{{ env.OPENAI_API_KEY | default: 'none' }}"
model = "any"
base_url = "http://127.0.0.1:9999/v1"
context_window = 128000
[mcp.servers.k8s]
transport = "http_streamable"
url = "http://127.0.0.1:9000/mcp"
headers_from_request = { "authorization" = "x-user-authorization" }
[hitl]
require_approval = ["restart_*"]
[hitl.route]
mode = "conversational"
timeout_secs = 60
"""


def test_the_minimal_example_of_the_specification_is_read(folder: TomlFolder) -> None:
    path = folder.put(MINIMAL)
    read = folder.read()
    (agent,) = read.agents
    assert (agent.name, agent.id, agent.prompt) == ("ops", "ops", "You operate the cluster.")
    assert (agent.source, agent.prompt_source, agent.home) == (path, path, folder.path)
    assert (agent.model.name, agent.model.context, agent.model.wire_name) == ("any", 128_000, "openai/any")
    assert agent.model.provider.token == Secret("none")
    assert agent.hitl == HitlSpec(("restart_*",), 60_000)
    (server,) = agent.mcp
    assert (server.name, server.timeout_ms, server.required) == ("k8s", 10_000, False)
    assert server.target == HttpTarget(
        Secret("http://127.0.0.1:9000/mcp"), headers_from_request=(("authorization", "x-user-authorization"),)
    )
    assert read.notices == (f"{path}: memory_dir: nothing is kept there yet",)


def test_the_defaults_are_those_of_the_specification(folder: TomlFolder) -> None:
    folder.agent()
    agent = folder.one()
    assert agent.tools.enabled == ("mcp__*",)
    assert agent.tools.max_steps == 6  # five tool turns, and the answer
    assert (agent.alias, agent.owner, agent.description, agent.hidden) == ("", "", "", False)
    assert (agent.mcp_filter, agent.client_tools, agent.client_tool_filter) == (None, False, ())
    assert (agent.hitl, agent.headless, agent.created_at_ms) == (None, HeadlessSpec("continue", 0), None)
    assert (agent.model.generation.temperature, agent.model.generation.max_output_tokens) == (None, None)
    assert agent.mcp == ()
    assert not agent.prompt_is_template


def test_every_key_of_an_agent_is_read(folder: TomlFolder) -> None:
    folder.agent(
        'alias = "night"\ndescription = "at night"\ncontext = ["First.", "", "Second."]\nturn_depth = 7\n'
        'created_at = 1700000000000\nmodel_owner = "me"\nmcp_filter = ["list_*", "get"]\nenable_client_tools = true\n'
        'client_tool_filter = ["ui_*"]\nhidden = true\n',
        '[tools]\nbuiltin = ["Read", "Todo*"]\nfilesystem = false\ncustom_tools = []\n'
        '[headless]\npolicy = "cancel"\ngrace_ms = 500\n[mcp]\nsanitize_schemas = false\n',
    )
    read = folder.read()
    (agent,) = read.agents
    assert (agent.id, agent.alias, agent.name) == ("night", "night", "ops")
    assert agent.description == "at night"
    assert agent.prompt == "You operate the cluster.\n\nFirst.\n\n\n\nSecond."
    assert agent.tools.max_steps == 8
    assert agent.tools.enabled == ("mcp__*", "Read", "Todo*")
    assert (agent.created_at_ms, agent.owner, agent.hidden) == (1_700_000_000_000, "me", True)
    assert [agent.accepts_mcp_tool(name) for name in ("list_pods", "get", "get_all")] == [True, True, False]
    assert [agent.accepts_client_tool(name) for name in ("ui_ask", "ask")] == [True, False]
    assert agent.headless == HeadlessSpec("cancel", 500)
    assert read.notices == ()


def test_an_empty_filter_lets_no_mcp_tool_and_every_client_tool_pass(folder: TomlFolder) -> None:
    folder.agent("mcp_filter = []\nenable_client_tools = true\nclient_tool_filter = []")
    agent = folder.one()
    assert agent.mcp_filter == ()
    assert not agent.accepts_mcp_tool("anything")
    assert agent.accepts_client_tool("anything")


def test_without_the_switch_no_client_tool_passes(folder: TomlFolder) -> None:
    folder.agent('client_tool_filter = ["ui_*"]')
    assert not folder.one().accepts_client_tool("ui_ask")


@pytest.mark.parametrize(("written", "steps"), [("0", 1), ("12", 13), ('"12"', 13), ('" 12 "', 13)])
def test_the_turn_depth_may_be_text(folder: TomlFolder, written: str, steps: int) -> None:
    folder.agent(f"turn_depth = {written}")
    assert folder.one().tools.max_steps == steps


def test_the_turn_depth_may_come_from_the_environment(folder: TomlFolder) -> None:
    folder.agent('turn_depth = "{{ env.DEPTH }}"\nhidden = "{{ env.HIDE }}"')
    agent = folder.one({"DEPTH": "3", "HIDE": "True"})
    assert (agent.tools.max_steps, agent.hidden) == (4, True)


@pytest.mark.parametrize(
    ("written", "hidden"),
    [("true", True), ("false", False), ('"TRUE"', True), ('"0"', False), ("1", True), ("0", False)],
)
def test_hidden_is_read_leniently(folder: TomlFolder, written: str, hidden: bool) -> None:
    folder.agent(f"hidden = {written}")
    assert folder.one().hidden is hidden


def test_a_prompt_is_text_and_no_template(folder: TomlFolder) -> None:
    folder.put(f'[agent]\nname = "ops"\nsystem_prompt = "{{{{ Agent }}}} {{% raw %}} {{{{ env.X }}}}"\n{LLM}')
    agent = folder.one({"X": "{{ WorkDir }}"})
    homes = Homes((folder.path,), folder.path, folder.path)
    assert render_prompt(agent, prompt_variables(agent, homes, folder.path)) == "{{ Agent }} {% raw %} {{ WorkDir }}"


# --- models ------------------------------------------------------------------------------------------------------


def test_every_key_of_a_model_is_read(folder: TomlFolder) -> None:
    llm = (
        '[agent.llm]\nprovider = "openai"\napi_key = " sk-1 "\nmodel = "m"\nbase_url = "http://h/v1/"\n'
        'max_tokens = 100\ncontext_window = 2000\ntemperature = 1\nreasoning_effort = "xhigh"\n'
        '[agent.llm.additional_params]\ntop_k = 5\nuser = "{{ env.WHO }}"\n'
        'nested = {list = [1, 2.5, true, "{{ env.WHO }}"]}\n'
    )
    path = folder.agent(llm=llm)
    model = folder.one({"WHO": "me"}).model
    assert (model.name, model.context) == ("m", 2_000)
    provider = model.provider
    assert (provider.name, provider.type, provider.wire_name) == ("openai@ops", "openai", "openai")
    assert (provider.url, provider.token, provider.source) == ("http://h/v1", Secret("sk-1"), path)
    assert provider.token_variables == ("WHO",)
    generation = model.generation
    assert (generation.max_output_tokens, generation.temperature, generation.reasoning_effort) == (100, 1.0, "xhigh")
    assert generation.additional is not None
    nested = {"list": [1, 2.5, True, "me"]}
    assert json.loads(generation.additional.sent.reveal()) == {"top_k": 5, "user": "me", "nested": nested}
    assert "{{ env.WHO }}" in generation.additional.written


@pytest.mark.parametrize(
    ("llm", "kind", "url", "name", "token"),
    [
        ('api_key = "k"', "openai", "https://api.openai.com/v1", "gpt-4o", "k"),
        (
            'provider = "openrouter"\napi_key = "k"\nmodel = "a/b"',
            "openrouter",
            "https://openrouter.ai/api/v1",
            "a/b",
            "k",
        ),
        ('provider = "ollama"\nmodel = "qwen"', "ollama", "http://localhost:11434", "qwen", None),
        ('provider = "ollama"\nmodel = "q"\napi_key = "k"\nbase_url = "https://o/"', "ollama", "https://o", "q", "k"),
    ],
)
def test_each_provider_has_its_address(
    folder: TomlFolder, llm: str, kind: str, url: str, name: str, token: str | None
) -> None:
    folder.agent(llm=f"[agent.llm]\n{llm}\n")
    model = folder.one().model
    assert (model.provider.type, model.provider.url, model.name) == (kind, url, name)
    assert model.wire_name == f"{kind}/{name}"
    assert (model.provider.token.reveal() if model.provider.token else None) == token


def test_a_script_is_relative_to_its_file(folder: TomlFolder) -> None:
    folder.put("turns: []\n", "script.yaml")
    folder.agent(llm='[agent.llm]\nprovider = "script"\nfile = "script.yaml"\n')
    model = folder.one().model
    assert (model.provider.file, model.name, model.wire_name) == (
        folder.path / "script.yaml",
        "scripted",
        "script/scripted",
    )


def test_agents_with_one_provider_do_not_share_it(folder: TomlFolder) -> None:
    folder.agent()
    folder.put(f'[agent]\nname = "dev"\nsystem_prompt = ""\n{LLM.replace("none", "other")}', "dev.toml")
    dev, ops = folder.read().agents
    assert {dev.model.provider.name, ops.model.provider.name} == {"openai@dev", "openai@ops"}
    assert dev.model.provider.token != ops.model.provider.token


# --- MCP servers -------------------------------------------------------------------------------------------------


def test_a_stdio_server_has_a_command_of_parts(folder: TomlFolder) -> None:
    folder.agent(
        rest='[mcp.servers.Files]\ntransport = "stdio"\ncmd = ["npx", "-y"]\nargs = ["server", ""]\n'
        'env = {TOKEN = "{{ env.TOKEN }}"}\ndescription = "files"\n'
    )
    (server,) = folder.one({"TOKEN": "long-secret"}).mcp
    assert (server.name, server.description, server.secret_variables) == ("files", "files", ())
    assert server.target == StdioTarget(
        Secret("npx"), (Secret("-y"), Secret("server"), Secret("")), (("TOKEN", Secret("long-secret")),)
    )
    assert server.written == ("stdio", "npx", "-y", "server", "", "TOKEN")
    assert Secret("long-secret") in server.secrets


def test_an_http_server_has_headers_of_its_own_and_of_the_request(folder: TomlFolder) -> None:
    folder.agent(
        rest='[mcp.servers.a]\ntransport = "sse"\nurl = "http://h/sse?key={{ env.K }}"\nconnect_timeout_secs = 3\n'
        'headers = {Authorization = "Bearer {{ env.TOKEN }}", X-Home = "{{ env.HOME }}"}\n'
        'headers_from_request = {Authorization = "X-User-Authorization"}\n'
    )
    (server,) = folder.one({"K": "key-value", "TOKEN": "long-secret", "HOME": "/home/me"}).mcp
    assert server.target == HttpTarget(
        Secret("http://h/sse?key=key-value"),
        (("authorization", Secret("Bearer long-secret")), ("x-home", Secret("/home/me"))),
        (("authorization", "x-user-authorization"),),
        legacy_sse=True,
    )
    assert (server.timeout_ms, server.secret_variables) == (3_000, ("TOKEN",))
    assert server.written == ("sse", "http://h/sse", "Authorization", "X-Home", "Authorization=X-User-Authorization")
    assert {secret.reveal() for secret in server.secrets} >= {"key-value", "long-secret", "Bearer long-secret"}


def test_servers_are_in_the_order_of_their_names(folder: TomlFolder) -> None:
    tables = (f'[mcp.servers.{name}]\ntransport = "stdio"\ncmd = ["c"]\n' for name in ("c", "A", "b"))
    folder.agent(rest="".join(tables))
    assert [server.name for server in folder.one().mcp] == ["a", "b", "c"]


def test_asking_for_repaired_schemas_is_a_notice(folder: TomlFolder) -> None:
    path = folder.agent(rest="[mcp]\nsanitize_schemas = true")
    assert folder.read().notices == (
        f"{path}: mcp.sanitize_schemas: schemas are not repaired yet; providers get them as the servers give them",
    )


# --- files -------------------------------------------------------------------------------------------------------


def test_a_directory_is_read_in_the_order_of_its_paths(folder: TomlFolder) -> None:
    for name in ("b", "a", "c"):
        folder.put(AGENT.replace("ops", name) + LLM, f"{name}.toml")
    folder.put("no toml", "readme.md")
    folder.put("no toml", ".hidden.toml")
    assert [agent.name for agent in folder.read().agents] == ["a", "b", "c"]


def test_a_relative_path_becomes_absolute(folder: TomlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    from aura.config.toml_agents import read_toml_agents

    path = folder.agent()
    monkeypatch.chdir(folder.path.parent)
    (agent,) = read_toml_agents(Path("agents/ops.toml"), {}).agents
    assert agent.source == path


def test_a_directory_without_agents_is_refused(folder: TomlFolder) -> None:
    assert folder.refusal().message == f"{folder.path}: there is no *.toml"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be read: No such file"):
        TomlFolder.read(_Missing(tmp_path / "none.toml"))


class _Missing(TomlFolder):
    def __init__(self, path: Path) -> None:
        self.path = path


@pytest.mark.parametrize("key", ["name", "alias"])
def test_two_agents_of_one_name_or_alias_are_refused(folder: TomlFolder, key: str) -> None:
    first = folder.put(f'{AGENT}alias = "x"\n{LLM}', "a.toml")
    text = AGENT.replace("ops", "OPS" if key == "name" else "other") + f'alias = "{"y" if key == "name" else "X"}"\n'
    second = folder.put(text + LLM, "b.toml")
    assert folder.refusal().message == f"{second}: agent.{key}: {first} has an agent of this {key} already"


# --- what holds for every agent ----------------------------------------------------------------------------------

SHARED = SharedSpec(
    ToolsSpec(max_steps=99, token_budget=5, policy=PolicySpec(deny=("Bash",)), bash=BashSpec(max_lines=9)),
    HitlSpec(("shared_*",)),
    HeadlessSpec("cancel", 700),
)


def test_limits_policies_and_approvals_of_the_homes_hold(folder: TomlFolder) -> None:
    folder.agent(rest='[tools]\nbuiltin = ["*"]')
    agent = folder.one(shared=SHARED)
    assert (agent.tools.token_budget, agent.tools.policy.deny, agent.tools.bash.max_lines) == (5, ("Bash",), 9)
    assert (agent.tools.max_steps, agent.tools.enabled) == (6, ("mcp__*", "*"))
    assert agent.hitl == HitlSpec(("shared_*",))
    assert agent.headless == HeadlessSpec("cancel", 700)


def test_an_agents_own_approvals_win_whole(folder: TomlFolder) -> None:
    folder.agent(rest='[hitl]\nrequire_approval = ["own_*"]\n[headless]\ngrace_ms = 5')
    agent = folder.one(shared=SHARED)
    assert agent.hitl == HitlSpec(("own_*",))
    assert agent.headless == HeadlessSpec("continue", 5)


# --- fingerprints ------------------------------------------------------------------------------------------------


def fingerprint(folder: TomlFolder, agent: str = "", rest: str = "", llm: str = LLM, **environ: str) -> str:
    folder.agent(agent, rest, llm)
    return folder.one(environ).fingerprint


def test_a_fingerprint_changes_with_what_an_agent_does_and_with_no_secret(folder: TomlFolder) -> None:
    server = '[mcp.servers.a]\ntransport = "http_streamable"\nurl = "http://h"\n'
    params = LLM + '[agent.llm.additional_params]\nuser = "{{ env.K }}"\n'
    plain = fingerprint(folder)
    others = [
        fingerprint(folder, "mcp_filter = []"),
        fingerprint(folder, "enable_client_tools = true"),
        fingerprint(folder, 'context = ["More."]'),
        fingerprint(folder, rest='[hitl]\nrequire_approval = ["a"]'),
        fingerprint(folder, rest=server),
        fingerprint(folder, rest=server + 'headers_from_request = {a = "b"}'),
        fingerprint(folder, rest=server.replace("http_streamable", "sse")),
        fingerprint(folder, llm=params, K="1"),
        fingerprint(folder, llm=LLM + 'reasoning_effort = "low"\n'),
    ]
    assert len({plain, *others}) == len(others) + 1
    assert fingerprint(folder, llm=LLM.replace("none", "{{ env.K }}"), K="other") == plain
    assert fingerprint(folder, "created_at = 1") == plain
    assert fingerprint(folder, llm=params, K="2") == others[7]


def test_a_spec_can_be_a_key(folder: TomlFolder) -> None:
    folder.agent(llm=LLM + "[agent.llm.additional_params]\na = {b = [1]}\n")
    agent: AgentSpec = folder.one()
    assert hash(agent) == hash(folder.one())
