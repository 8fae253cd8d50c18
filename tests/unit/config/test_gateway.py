"""All agents of a gateway: ids, the default one, which agent a request gets, secrets and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from aura.config.gateway import GatewayAgents, load_gateway
from aura.errors import BadRequest, ConfigInvalid, ModelNotFound
from tests.support.lane import CountingClock
from tests.unit.config.home import Home
from tests.unit.config.toml_kit import AGENT, LLM, TomlFolder

WEBHOOK = '[hitl.route]\nmode = "webhook"\nurl = "{}://h"\n'


def load(
    home: Home,
    toml: TomlFolder | Path | None = None,
    default: str | None = None,
    environ: Mapping[str, str] | None = None,
    **more: bool | int,
) -> GatewayAgents:
    path = toml.path if isinstance(toml, TomlFolder) else toml
    return load_gateway(home.load(environ), path, environ or {}, default, clock=CountingClock(), **more)  # type: ignore[arg-type]


def refusal(home: Home, toml: TomlFolder | None = None, default: str | None = None, **more: bool) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        load(home, toml, default, **more)
    assert "\n" not in caught.value.message
    return caught.value


def test_agents_of_homes_and_files_are_served_by_their_ids(home: Home, folder: TomlFolder) -> None:
    home.agent("Zoe", "hide: true")
    folder.agent('alias = "Night"')
    folder.put(AGENT.replace("ops", "dev") + LLM, "dev.toml")
    gateway = load(home, folder)
    assert list(gateway.agents) == ["Night", "Zoe", "dev", "main"]
    assert (gateway.agents["Night"].name, gateway.agents["Zoe"].hidden) == ("ops", True)
    assert gateway.agents["main"].id == "main"


def test_the_configuration_has_them_all_with_their_providers(home: Home, folder: TomlFolder) -> None:
    folder.agent('alias = "Night"')
    configuration = load(home, folder).configuration
    assert set(configuration.agents) == {"main", "night"}
    assert set(configuration.providers) == {"local", "openai@night"}


def test_without_files_the_agents_of_the_homes_are_served(home: Home) -> None:
    assert list(load(home).agents) == ["main"]


def test_an_agent_without_a_time_was_created_when_it_was_loaded(home: Home, folder: TomlFolder) -> None:
    folder.agent("created_at = 5")
    gateway = load(home, folder)
    assert gateway.agents["ops"].created_at_ms == 5
    now_ms = gateway.agents["main"].created_at_ms
    assert now_ms is not None
    assert now_ms > 5


def test_two_agents_with_one_id_are_refused_naming_both_files(home: Home, folder: TomlFolder) -> None:
    path = folder.agent('alias = "MAIN"')
    main = home.path / "config/agents/main.md"
    error = refusal(home, folder)
    assert error.message == f'{path}: {main} has an agent called "main" already'
    assert error.hint == "Rename one of the two, or give it another alias."


def test_an_alias_frees_the_name(home: Home, folder: TomlFolder) -> None:
    folder.put(AGENT.replace("ops", "main") + f'alias = "other"\n{LLM}')
    assert list(load(home, folder).agents) == ["main", "other"]


def test_an_alias_may_not_be_another_agents_name(home: Home, folder: TomlFolder) -> None:
    folder.put(AGENT + LLM, "a.toml")
    path = folder.put(AGENT.replace("ops", "dev") + f'alias = "ops"\n{LLM}', "b.toml")
    assert refusal(home, folder).message == f'{path}: {folder.path}/a.toml has an agent called "ops" already'


def test_no_agent_at_all_is_refused(home: Home) -> None:
    (home.path / "config/agents/main.md").unlink()
    assert refusal(home).message == "there is no agent to serve"


def test_agents_of_files_need_no_agent_in_a_home(home: Home, folder: TomlFolder) -> None:
    (home.path / "config/agents/main.md").unlink()
    folder.agent()
    assert list(load(home, folder).agents) == ["ops"]


# --- the default agent -------------------------------------------------------------------------------------------


def test_the_default_agent_is_the_one_that_is_named_else_the_one_that_says_so(home: Home, folder: TomlFolder) -> None:
    folder.agent()
    assert load(home, folder).default is None
    assert load(home, folder, "OPS").default == "ops"
    home.agent("second", "default: true")
    assert load(home, folder).default == "second"
    assert load(home, folder, "ops").default == "ops"


def test_a_default_agent_that_is_not_there_is_refused(home: Home) -> None:
    home.agent("secret", "hide: true")
    error = refusal(home, default="none")
    assert error.message == 'the default agent "none" is not there'
    assert error.hint == "Agents here: main."


# --- selection ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [None, "", "gpt-4o", "main", "x/y"])
def test_the_only_agent_answers_to_everything(home: Home, model: str | None) -> None:
    assert load(home).select(model).name == "main"


@pytest.mark.parametrize(("model", "name"), [("ops", "ops"), ("main", "main"), ("OPS", "ops"), ("hidden", "hidden")])
def test_of_several_the_model_is_the_id(home: Home, folder: TomlFolder, model: str, name: str) -> None:
    home.agent("hidden", "hide: true")
    folder.agent()
    assert load(home, folder, "main").select(model).name == name


@pytest.mark.parametrize("model", [None, "", "  "])
def test_no_model_means_the_default_agent(home: Home, folder: TomlFolder, model: str | None) -> None:
    folder.agent()
    assert load(home, folder, "ops").select(model).name == "ops"


@pytest.mark.parametrize("model", [None, "", " \n"])
def test_no_model_and_no_default_is_a_bad_request(home: Home, folder: TomlFolder, model: str | None) -> None:
    folder.agent()
    with pytest.raises(BadRequest) as caught:
        load(home, folder).select(model)
    assert caught.value.message == "the request names no model, and there is no default agent"
    assert caught.value.hint == "Agents here: main, ops."


@pytest.mark.parametrize("model", ["gpt-4o", "ops ", "x" * 1000, "a\nb"])
def test_an_unknown_model_is_not_found(home: Home, folder: TomlFolder, model: str) -> None:
    folder.agent()
    with pytest.raises(ModelNotFound) as caught:
        load(home, folder, "ops").select(model)
    assert caught.value.http_status == 404
    assert caught.value.message.startswith("The model `")
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 100
    assert caught.value.details == {"param": "model"}


def test_an_error_lists_some_of_many_agents(home: Home, folder: TomlFolder) -> None:
    for number in range(30):
        folder.put(AGENT.replace("ops", f"a{number:02}") + LLM, f"{number}.toml")
    with pytest.raises(ModelNotFound) as caught:
        load(home, folder).select("none")
    assert (caught.value.hint or "").endswith("a19, ….")


# --- secrets -----------------------------------------------------------------------------------------------------


def test_secrets_are_known_by_value_and_by_variable(home: Home, folder: TomlFolder) -> None:
    key = LLM.replace("none", "{{ env.KEY }}").replace(
        "[agent.llm]", "[agent.llm]\nadditional_params = {a = '{{ env.PARAM }}'}"
    )
    folder.agent(
        'description = "{{ env.PUBLIC }}"',
        '[mcp.servers.s]\ntransport = "sse"\nurl = "http://h/{{ env.URL }}"\nheaders = {a = "{{ env.HEADER }}"}\n'
        '[hitl]\nrequire_approval = ["a"]\n[hitl.route]\nmode = "webhook"\nurl = "https://h/{{ env.HOOK }}"\n'
        'headers = {a = "Bearer {{ env.SIGN }}"}\n',
        key,
    )
    names = ("KEY", "PARAM", "PUBLIC", "URL", "HEADER", "HOOK", "SIGN")
    environ = {name: f"value-of-{name}" for name in names} | {"SHORT": "x"}
    gateway = load(home, folder, environ=environ)
    assert gateway.secret_variables >= {"KEY", "PARAM", "HEADER", "HOOK", "SIGN"}
    assert not gateway.secret_variables & {"PUBLIC", "URL", "SHORT"}
    expected = {f"value-of-{name}" for name in ("KEY", "PARAM", "HEADER", "HOOK", "SIGN")}
    assert gateway.secret_values >= expected | {"https://h/value-of-HOOK", "Bearer value-of-SIGN"}
    shown = repr(gateway)
    assert all(value not in shown for value in expected)


def test_tokens_of_the_homes_are_among_them(home: Home) -> None:
    home.write("config/providers/local.yaml", "local: {type: llamacpp, url: 'http://h', token: '${KEY}'}\n")
    gateway = load(home, environ={"KEY": "value-of-key"})
    assert "value-of-key" in gateway.secret_values
    assert "KEY" in gateway.secret_variables


# --- what stops the start, and what is said ----------------------------------------------------------------------


def test_signed_requests_are_not_sent_in_the_clear(home: Home, folder: TomlFolder) -> None:
    path = folder.agent(rest=WEBHOOK.format("http"))
    assert load(home, folder).agents["ops"].hitl is not None
    error = refusal(home, folder, signing=True)
    problem = '"ops" sends approvals over http:// while a signing secret is set'
    assert error.message == f"{path}: hitl.route.url: {problem}"
    folder.agent(rest=WEBHOOK.format("HTTPS"))
    assert load(home, folder, signing=True).agents["ops"].hitl is not None


def test_signed_requests_of_a_home_are_not_either(home: Home) -> None:
    home.write("config/features/x.yaml", "hitl: {route: {mode: webhook, url: 'http://h'}}\n")
    assert '"main" sends approvals over http://' in refusal(home, signing=True).message


@pytest.mark.parametrize(("inactivity_ms", "warned"), [(0, False), (60_000, True), (60_001, False), (1, True)])
def test_an_approval_that_outlasts_silence_is_a_notice(
    home: Home, folder: TomlFolder, inactivity_ms: int, warned: bool
) -> None:
    path = folder.agent(rest='[hitl]\nrequire_approval = ["a"]')
    notices = load(home, folder, inactivity_timeout_ms=inactivity_ms).notices
    assert [str(path) in notice and "waits 60000 ms for an approval" in notice for notice in notices] == [True] * warned


def test_notices_of_homes_and_files_are_kept(home: Home, folder: TomlFolder) -> None:
    home.write("config/modes/x.yaml", "a: 1\n")
    folder.put(f'memory_dir = "x"\n{AGENT}{LLM}')
    first, second = load(home, folder).notices
    assert "modes are not supported yet" in first
    assert "memory_dir: nothing is kept there yet" in second


def test_a_sandbox_that_the_homes_require_holds_for_files(home: Home, folder: TomlFolder) -> None:
    (home.path / "config/agents/main.md").unlink()
    home.write("config/sandbox/x.yaml", "sandbox: {enabled: true}\n")
    folder.agent()
    assert "the sandbox is asked for, and this version has none" in refusal(home, folder).message


def test_limits_and_policies_of_the_homes_hold_for_files(home: Home, folder: TomlFolder) -> None:
    home.write(
        "config/features/x.yaml", "tools: {token_budget: 9, policy: {deny: [Bash]}}\nhitl: {require_approval: [a]}\n"
    )
    folder.agent()
    agent = load(home, folder).agents["ops"]
    assert (agent.tools.token_budget, agent.tools.policy.deny) == (9, ("Bash",))
    assert agent.hitl is not None
