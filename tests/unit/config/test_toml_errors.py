"""What is refused in a TOML file: every key's unhappy path, with the file, the key and what is accepted."""

from __future__ import annotations

import pytest

from tests.unit.config.toml_kit import AGENT, LLM, TomlFolder

SCRIPT = '[agent.llm]\nprovider = "script"\nfile = "ops.toml"\n'
HTTP = '[mcp.servers.s]\ntransport = "http_streamable"\nurl = "http://h"\n'
STDIO = '[mcp.servers.s]\ntransport = "stdio"\ncmd = ["c"]\n'
WEBHOOK = '[hitl.route]\nmode = "webhook"\nurl = "https://h"\n'


def llm(keys: str) -> str:
    return LLM + keys


# key of [agent] | tables after it | the key that the error names | its problem | a part of its hint
AGENT_CASES = [
    ("x = 1", "agent.x", "this key is unknown", "Accepted here: alias, client_tool_filter, context, created_at"),
    ("turn_dept = 1", "agent.turn_dept", "this key is unknown", "Did you mean turn_depth?"),
    ("alias = 1", "agent.alias", "found 1, which is not text", "one line of at most 128"),
    ('alias = ""', "agent.alias", 'found ""', "one line"),
    ('alias = "a\\nb"', "agent.alias", 'found "a\\nb"', "one line"),
    ("description = []", "agent.description", "found a list", "Use text."),
    ('context = "one"', "agent.context", 'found "one"', "a list of texts"),
    ("context = [1]", "agent.context", "item 1 is 1", "a list of texts"),
    ("turn_depth = -1", "agent.turn_depth", "found -1", "a whole number from 0 to 99999 (tool turns of one run)"),
    ('turn_depth = "many"', "agent.turn_depth", 'found "many"', "a whole number"),
    ('turn_depth = "100000"', "agent.turn_depth", 'found "100000"', "a whole number"),
    ("turn_depth = 1.5", "agent.turn_depth", "found 1.5", "a whole number"),
    ("turn_depth = true", "agent.turn_depth", "found true", "a whole number"),
    ("created_at = -1", "agent.created_at", "found -1", "milliseconds since 1970"),
    ('created_at = "1"', "agent.created_at", 'found "1"', "a whole number"),
    ("created_at = 2024-01-01T00:00:00Z", "agent.created_at", "found a date or time, which no key takes", "quotes"),
    ('model_owner = ""', "agent.model_owner", 'found ""', "one line"),
    ('mcp_filter = "a"', "agent.mcp_filter", 'found "a"', "a list of names with * for any characters"),
    ('mcp_filter = ["a?"]', "agent.mcp_filter", 'item 1 is "a?", which is no such name', "list_*"),
    ('mcp_filter = ["a", "[ab]"]', "agent.mcp_filter", 'item 2 is "[ab]", which is no such name', "list_*"),
    ('mcp_filter = ["{a,b}"]', "agent.mcp_filter", 'item 1 is "{a,b}", which is no such name', "list_*"),
    ('mcp_filter = [""]', "agent.mcp_filter", 'item 1 is ""', "list_*"),
    ('mcp_filter = [" a"]', "agent.mcp_filter", 'item 1 is " a"', "list_*"),
    ('enable_client_tools = "true"', "agent.enable_client_tools", 'found "true"', "Use true or false."),
    ('client_tool_filter = ["!a"]', "agent.client_tool_filter", 'item 1 is "!a"', "list_*"),
    ('hidden = "maybe"', "agent.hidden", 'found "maybe"', "Use true or false."),
    ("hidden = 2", "agent.hidden", "found 2", "Use true or false."),
    ("hidden = 1.0", "agent.hidden", "found 1.0", "Use true or false."),
    (
        "nudge_last_turn = true",
        "agent.nudge_last_turn",
        "reminding of the turns that are left is not supported yet",
        "",
    ),
    ("nudge_turns_remaining = 2", "agent.nudge_turns_remaining", "reminding of the turns that", "Leave it out"),
    ('skills = {local = [{source = "s"}]}', "agent.skills", "skills are not supported yet", "Leave it out"),
    ("scratchpad = {enabled = true}", "agent.scratchpad", "the scratchpad is not supported yet", "Leave it out"),
]
LLM_CASES = [
    ("", "agent.llm", "the key api_key is missing or empty", "env.OPENAI_API_KEY"),
    ('[agent.llm]\napi_key = ""', "agent.llm.api_key", "the key api_key is missing or empty", "env.OPENAI_API_KEY"),
    ('[agent.llm]\napi_key = "  "', "agent.llm.api_key", "the key api_key is missing or empty", "takes any text"),
    ("[agent.llm]\napi_key = 1", "agent.llm.api_key", "found a number", "a key, such as"),
    ('[agent.llm]\napi_key = "ä"', "agent.llm.api_key", "the key holds characters that an HTTP header", "ASCII"),
    ('[agent.llm]\nprovider = "openrouter"\nmodel = "m"', "agent.llm", "the key api_key is missing", ""),
    ('[agent.llm]\nprovider = "openrouter"\napi_key = "k"', "agent.llm", "the key model is missing", "openrouter"),
    ('[agent.llm]\nprovider = "ollama"', "agent.llm", "the key model is missing", "ollama"),
    ('[agent.llm]\nprovider = "acme"', "agent.llm.provider", 'found "acme"', "one of openai, openrouter, ollama"),
    ("[agent.llm]\nprovider = 1", "agent.llm.provider", "found 1", "one of openai"),
    ('[agent.llm]\nprovider = "anthropic"', "agent.llm.provider", '"anthropic" is not supported yet', "one of openai"),
    ('[agent.llm]\nprovider = "bedrock"', "agent.llm.provider", '"bedrock" is not supported yet', "one of openai"),
    ('[agent.llm]\nprovider = "gemini"', "agent.llm.provider", '"gemini" is not supported yet', "one of openai"),
    (llm("x = 1"), "agent.llm.x", "this key is unknown", "Accepted here: additional_params, api_key, base_url"),
    ('[agent.llm]\napi_key = "k"\nmodel = ""', "agent.llm.model", 'found ""', "the name of a model"),
    ('[agent.llm]\napi_key = "k"\nbase_url = "h"', "agent.llm.base_url", "the address begins with", "127.0.0.1"),
    ('[agent.llm]\napi_key = "k"\nbase_url = "http://u:p@h"', "agent.llm.base_url", "the key api_key", "127.0.0.1"),
    (llm("max_tokens = 0"), "agent.llm.max_tokens", "found 0", "a whole number from 1 to 100000000 (tokens)"),
    (llm('context_window = "1"'), "agent.llm.context_window", 'found "1"', "a whole number from 1"),
    (llm("temperature = 6"), "agent.llm.temperature", "found 6", "a number from 0 to 5"),
    (llm("temperature = nan"), "agent.llm.temperature", "found nan", "a number from 0 to 5"),
    (llm('reasoning_effort = "huge"'), "agent.llm.reasoning_effort", 'found "huge"', "one of none, minimal, low"),
    ('[agent.llm]\nprovider = "ollama"\nmodel = "m"\nreasoning_effort = "low"', "agent.llm.reasoning_effort", "un", ""),
    ('[agent.llm]\nprovider = "ollama"\nmodel = "m"\nfallback_tool_parsing = true', "agent.llm.fallback_tool_parsing",
     "parsing tool calls out of text is not supported yet", "Leave it out"),
    (llm("additional_params = 1"), "agent.llm.additional_params", "found a number", "Use a mapping"),
    (llm("additional_params = {model = 1}"), "agent.llm.additional_params.model", "aura sets this parameter", "out"),
    (llm("additional_params = {messages = []}"), "agent.llm.additional_params.messages", "aura sets this", "out"),
    (llm("additional_params = {stream = false}"), "agent.llm.additional_params.stream", "aura sets this", "out"),
    (llm("additional_params = {stream_options = {}}"), "agent.llm.additional_params.stream_options", "aura sets", ""),
    (llm("additional_params = {tools = []}"), "agent.llm.additional_params.tools", "aura sets this parameter", ""),
    (llm("additional_params = {a = {b = inf}}"), "agent.llm.additional_params.a.b", "a number that JSON does not", ""),
    ('[agent.llm]\nprovider = "script"', "agent.llm", "the key file is missing", "relative to"),
    ('[agent.llm]\nprovider = "script"\nfile = "no.yaml"', "agent.llm.file", 'is no file "no.yaml"', "relative to"),
    ('[agent.llm]\nprovider = "script"\nfile = "\\u0000"', "agent.llm.file", "there is no file", "relative to"),
    (f'[agent.llm]\nprovider = "script"\nfile = "{"x" * 5000}"', "agent.llm.file", "there is no file", "relative to"),
    (SCRIPT + 'api_key = "k"', "agent.llm.api_key", "this key is unknown", "Accepted here: context_window, file"),
    (SCRIPT + "additional_params = {}", "agent.llm.additional_params", "this key is unknown", "Accepted here"),
    ("[agent]\nllm = 1".replace("[agent]\n", ""), "agent.llm", "found a number", "Use a mapping"),
]  # fmt: skip
REST_CASES = [
    ("x = 1", "x", "this key is unknown", "Accepted here: agent, headless, hitl, mcp, memory_dir, tools."),
    ("memory_dir = 1", "memory_dir", "found 1", "the path of a directory"),
    ("[[vector_stores]]\nname = 'a'", "vector_stores", "vector stores are not supported yet", "Leave it out"),
    ("[orchestration]\nenabled = true", "orchestration", "orchestration is not supported yet", "Leave it out"),
    ("[tools]\nx = 1", "tools.x", "this key is unknown", "Accepted here: builtin, custom_tools, filesystem."),
    ("[tools]\nbuiltin = 'Read'", "tools.builtin", 'found "Read"', "a list of names"),
    ("[tools]\nfilesystem = true", "tools.filesystem", "found true", "builtin"),
    ("[tools]\ncustom_tools = ['a']", "tools.custom_tools", "found a list", "builtin"),
    ("[headless]\npolicy = 'park'", "headless.policy", '"park" is not supported yet', "one of continue, cancel"),
    ("[headless]\npolicy = 'x'", "headless.policy", 'found "x"', "one of continue, cancel"),
    ("[headless]\npolicy = 'cancel'", "headless.policy", "cancel needs a grace_ms of at least 100", "Set grace_ms"),
    ("[headless]\ngrace_ms = -1", "headless.grace_ms", "found -1", "milliseconds"),
    ("mcp = 1", "mcp", "found a number", "Use a mapping with the keys sanitize_schemas, servers."),
    ("[mcp]\nx = 1", "mcp.x", "this key is unknown", "Accepted here: sanitize_schemas, servers."),
    ("[mcp]\nsanitize_schemas = 1", "mcp.sanitize_schemas", "found 1", "Use true or false."),
    ("[mcp]\nservers = 1", "mcp.servers", "found a number", "from names to MCP servers"),
    ("[mcp.servers.a__b]", "mcp.servers.a__b", "this is no name for an MCP server", "single underscores"),
    ("[mcp.servers.'a.b']", "mcp.servers.a.b", "this is no name for an MCP server", "single underscores"),
    (STDIO + STDIO.replace(".s]", ".S]"), "mcp.servers.S", "there is a server of this name already", "Rename"),
    ("[mcp]\nservers = {s = 1}", "mcp.servers.s", "found a number", 'transport = "stdio"'),
    ("[mcp.servers.s]", "mcp.servers.s", "the key transport is missing", "one of stdio, http_streamable, sse"),
    ("[mcp.servers.s]\ntransport = 'http'", "mcp.servers.s.transport", 'found "http"', "one of stdio, http_streamable"),
    (STDIO + "x = 1", "mcp.servers.s.x", "this key is unknown", "Accepted here: args, cmd, description, env, "),
    (STDIO + "url = 'u'", "mcp.servers.s.url", "this key is unknown", "args"),
    ("[mcp.servers.s]\ntransport = 'stdio'", "mcp.servers.s", "the key cmd is missing or empty", "Name the program"),
    ("[mcp.servers.s]\ntransport = 'stdio'\ncmd = []", "mcp.servers.s.cmd", "the key cmd is missing or empty", ""),
    ("[mcp.servers.s]\ntransport = 'stdio'\ncmd = 'c'", "mcp.servers.s.cmd", "found text", "a list of texts"),
    ("[mcp.servers.s]\ntransport = 'stdio'\ncmd = ['']", "mcp.servers.s.cmd", "item 1 is text", "a list of texts"),
    (STDIO + "args = [1]", "mcp.servers.s.args", "item 1 is a number", "a list of texts"),
    (STDIO + 'args = ["a\\u0000b"]', "mcp.servers.s.args", "a value holds a NUL character", ""),
    (STDIO + "env = {'a b' = 'c'}", "mcp.servers.s.env", 'found the name "a b"', "from variables to texts"),
    (STDIO + "env = {A = 1}", "mcp.servers.s.env", "at A: found a number", "from variables to texts"),
    (STDIO + "description = 1", "mcp.servers.s.description", "found 1", "Use text."),
    (STDIO + "scratchpad = {}", "mcp.servers.s.scratchpad", "the scratchpad is not supported yet", "Leave it out"),
    ("[mcp.servers.s]\ntransport = 'sse'", "mcp.servers.s", "the key url is missing or empty", "Use an address"),
    ("[mcp.servers.s]\ntransport = 'sse'\nurl = 'h'", "mcp.servers.s.url", "the address begins with neither", ""),
    ("[mcp.servers.s]\ntransport = 'sse'\nurl = 'http://u:p@h'", "mcp.servers.s.url", "into the key headers", ""),
    (HTTP + "cmd = ['c']", "mcp.servers.s.cmd", "this key is unknown", "connect_timeout_secs, description, headers"),
    (HTTP + "headers = {'a b' = 'c'}", "mcp.servers.s.headers", 'found the name "a b"', "from header names"),
    (HTTP + 'headers = {a = "b\\nc"}', "mcp.servers.s.headers", "a value holds characters that an HTTP header", ""),
    (HTTP + "headers = {a = '1', A = '2'}", "mcp.servers.s.headers", 'the header "A" stands there twice', "Leave one"),
    (HTTP + "headers_from_request = {host = 'x'}", "mcp.servers.s.headers_from_request", 'header "host" is set by', ""),
    (HTTP + "headers_from_request = {a = 'b c'}", "mcp.servers.s.headers_from_request", '"b c" is no name of a', ""),
    (HTTP + "headers_from_request = {a = 'b', A = 'c'}", "mcp.servers.s.headers_from_request", "stands there", ""),
    (HTTP + "connect_timeout_secs = 0", "mcp.servers.s.connect_timeout_secs", "found 0", "from 1 to 600 (seconds)"),
    ("hitl = 1", "hitl", "found a number", "Use a mapping with the keys require_approval, route."),
    ("[hitl]\nx = 1", "hitl.x", "this key is unknown", "Accepted here: require_approval, route."),
    ("[hitl]\nrequire_approval = 'a'", "hitl.require_approval", 'found "a"', "restart_*"),
    ("[hitl]\nrequire_approval = ['a?']", "hitl.require_approval", 'item 1 is "a?"', "restart_*"),
    ("[hitl]\nrequire_approval = ['k8s:a']", "hitl.require_approval", '"k8s:a" names no MCP server', "There is no MCP"),
    (HTTP + "[hitl]\nrequire_approval = ['k:a']", "hitl.require_approval", '"k:a" names no MCP', "servers here: s."),
    (HTTP + "[hitl]\nrequire_approval = ['s:']", "hitl.require_approval", '"s:" names no tool', "server:*"),
    ("[hitl]\npark = {enabled = true}", "hitl.park", "parking a run that waits for approval is not supported yet", ""),
    ("[hitl]\nidentity_header = 'x'", "hitl.identity_header", "binding a parked run to an identity is not", ""),
    ("[hitl.route]\ntimeout_secs = 5", "hitl.route.timeout_secs", "the key hitl.route.mode is missing", "webhook"),
    ("[hitl.route]\nmode = 'mail'", "hitl.route.mode", 'found "mail"', "one of conversational, webhook"),
    ("[hitl.route]\nmode = 'webhook'", "hitl.route.mode", "the key hitl.route.url is missing or empty", "https://"),
    ("[hitl.route]\nmode = 'conversational'\ntimeout_secs = 0", "hitl.route.timeout_secs", "found 0", "(seconds)"),
    ("[hitl.route]\nmode = 'conversational'\nurl = 'https://h'", "hitl.route.url", "belongs to a webhook", "webhook"),
    ("[hitl.route]\nmode = 'conversational'\nheaders = {}", "hitl.route.headers", "belongs to a webhook", "Leave it"),
    (WEBHOOK.replace("https://h", "h"), "hitl.route.url", "the address begins with neither http://", ""),
    (WEBHOOK + "x = 1", "hitl.route.x", "this key is unknown", "headers, headers_from_request, mode, timeout_secs"),
    (WEBHOOK + "headers = {Host = 'x'}", "hitl.route.headers", 'the header "Host" is set by aura itself', "Leave it"),
    (WEBHOOK + "headers = {X-Aura-Timestamp = '1'}", "hitl.route.headers", '"X-Aura-Timestamp" is set by', ""),
    (WEBHOOK + "headers = {X-Aura-Signature-256 = '1'}", "hitl.route.headers", "is set by aura itself", ""),
    (WEBHOOK + "headers = {a = '1', A = '2'}", "hitl.route.headers", 'the header "A" stands there twice', ""),
    (WEBHOOK + "headers = {a = ' b'}", "hitl.route.headers", "a value holds characters that an HTTP header", ""),
    (WEBHOOK + "headers_from_request = {accept = 'x'}", "hitl.route.headers_from_request", "is set by aura itself", ""),
    (WEBHOOK + "tool_headers_from_response = ['Mcp-Session-Id']", "hitl.route.tool_headers_from_response",
     'the header "Mcp-Session-Id" is set by aura', ""),
    (WEBHOOK + "tool_headers_from_response = ['a', 'A']", "hitl.route.tool_headers_from_response", "twice", ""),
    (WEBHOOK + "tool_headers_from_response = 'a'", "hitl.route.tool_headers_from_response", 'found "a"', "a list"),
    (WEBHOOK + "delivery = 'poll'", "hitl.route.delivery", "polling for decisions is not supported yet", "Leave it"),
    (WEBHOOK + "poll_url = 'https://h'", "hitl.route.poll_url", "polling for decisions is not supported yet", ""),
    (WEBHOOK + "poll_interval_secs = 15", "hitl.route.poll_interval_secs", "polling for decisions is not", ""),
    (WEBHOOK + "poll_wait_secs = 30", "hitl.route.poll_wait_secs", "polling for decisions is not supported", ""),
]  # fmt: skip
CASES = [
    *((f"{AGENT}{keys}\n{LLM}", *expected) for keys, *expected in AGENT_CASES),
    *((f"{AGENT}{table}\n", *expected) for table, *expected in LLM_CASES),
    *(
        (f"{table}\n{AGENT}{LLM}" if not table.startswith("[") else f"{AGENT}{LLM}{table}\n", *expected)
        for table, *expected in REST_CASES
    ),
]


@pytest.mark.parametrize(
    ("text", "key", "problem", "hint"), CASES, ids=[f"{number}-{case[1]}" for number, case in enumerate(CASES)]
)
def test_an_error_names_file_key_and_what_is_accepted(
    folder: TomlFolder, text: str, key: str, problem: str, hint: str
) -> None:
    path = folder.put(text)
    error = folder.refusal()
    assert error.message.startswith(f"{path}: {key}: ")
    assert problem in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[agent]\nname = "a"\n', "agent.system_prompt"),
        ('[agent]\nsystem_prompt = "a"\n', "agent.name"),
        ("", "agent.name"),
    ],
)
def test_name_and_prompt_are_required(folder: TomlFolder, text: str, key: str) -> None:
    path = folder.put(text)
    assert folder.refusal().message == f"{path}: the key {key} is missing"


def test_the_old_layout_has_an_error_of_its_own(folder: TomlFolder) -> None:
    path = folder.put(f'[llm]\nprovider = "openai"\napi_key = "k"\n{AGENT}')
    error = folder.refusal()
    assert error.message == f"{path}: llm: this is the old layout: a model belongs to its agent"
    assert error.hint == "Move the table [llm] to [agent.llm]."


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("a = 1\nb = [", ":2", "it is not TOML: Invalid value"),
        ("a = 1\na = 2\nb = 3", ":2", "it is not TOML: Cannot overwrite a value"),
        ("a = 1\nb = 2024-13-99", ":2", "it is not TOML: Expected newline or end of document"),
        ("a = '\\x'\nb = \"\\x\"", ":2", "it is not TOML: Unescaped '\\' in a string"),
        (f"a = {'9' * 5000}", "", "a value is no TOML: a number is too long"),
        (f"a = {'[' * 5000}", "", "it is nested too deeply"),
        (f"a = {'[' * 40}{']' * 40}", f": a{'[0]' * 31}", "there are more than 32 levels"),
        (f"{'.'.join('a' * 40)} = 1", f": {'.'.join('a' * 32)}", "there are more than 32 levels"),
        (f"a = [{'0,' * 100_001}]", ": a[99998]", "there are more than 100000 values"),
    ],
    ids=["value", "twice", "date", "escape", "number", "deep", "levels", "dotted", "many"],
)
def test_what_is_not_toml_is_refused_with_its_line(folder: TomlFolder, text: str, where: str, problem: str) -> None:
    path = folder.put(text)
    message = folder.refusal().message
    assert message.startswith(f"{path}{where}: ")
    assert problem in message


def test_a_file_that_is_not_utf_8_is_refused(folder: TomlFolder) -> None:
    (folder.path / "ops.toml").write_bytes(b'a = "\xff"')
    assert "is not UTF-8" in folder.refusal().message


def test_windows_line_ends_and_a_byte_order_mark_are_taken(folder: TomlFolder) -> None:
    (folder.path / "ops.toml").write_bytes(b"\xef\xbb\xbf" + f"{AGENT}{LLM}".replace("\n", "\r\n").encode())
    assert folder.one().name == "ops"
