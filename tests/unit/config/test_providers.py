"""Provider files: keys, tokens, addresses and scripts."""

import pytest

from aura.config.resolve import secret_values, secret_variables
from aura.config.spec import NamesSpec, ProviderSpec, RetrySpec, Secret
from tests.unit.config.home import Home

SECRET = "sk-0123456789abcdef"


def provider(home: Home, keys: str, environ: dict[str, str] | None = None) -> ProviderSpec:
    home.write("config/providers/local.yaml", f"local: {{{keys}}}\n")
    return home.load(environ).providers["local"]


HTTP = "type: llamacpp, url: 'http://127.0.0.1:8080'"


def test_a_provider_has_the_defaults_of_the_specification(home: Home) -> None:
    assert provider(home, HTTP) == ProviderSpec(
        name="local",
        type="llamacpp",
        source=home.path / "config/providers/local.yaml",
        url="http://127.0.0.1:8080",
        timeout_ms=300_000,
        retry=RetrySpec(max_attempts=0, base_delay_ms=1_000, max_delay_ms=30_000),
        token_variables=("AURA_PROVIDERS_LOCAL_TOKEN",),
    )


def test_every_key_of_a_provider_is_read(home: Home) -> None:
    spec = provider(
        home,
        "type: llamaswap, url: 'https://models.example/base/', token: 't', timeout: 10m,"
        " retry: {max_attempts: 3, base_delay: 500ms, max_delay: 2s}, models: {include: ['q*'], exclude: [qx]}",
    )
    assert spec.url == "https://models.example/base"
    assert spec.token == Secret("t")
    assert spec.timeout_ms == 600_000
    assert spec.retry == RetrySpec(3, 500, 2_000)
    assert spec.models == NamesSpec(("q*",), ("qx",))


def test_names_are_lower_cased(home: Home) -> None:
    home.write("config/providers/local.yaml", f"Local: {{{HTTP}}}\n")
    assert home.load().agents["main"].model.provider.name == "local"


def test_openai_needs_no_address(home: Home) -> None:
    assert provider(home, "type: openai").url == "https://api.openai.com/v1"


@pytest.mark.parametrize("kind", ["llamacpp", "llamaswap"])
def test_other_servers_need_an_address(home: Home, kind: str) -> None:
    home.write("config/providers/local.yaml", f"\nlocal: {{type: {kind}}}\n")
    error = home.refusal()
    assert error.message == (
        f"{home.path}/config/providers/local.yaml:2: local: the key url is missing,"
        f" which a provider of type {kind} needs"
    )
    assert error.hint == "Use an address such as http://127.0.0.1:8080."


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("127.0.0.1:8080", "begins with neither http:// nor https://"),
        ("ftp://host", "begins with neither http:// nor https://"),
        ("http://", "has a bad host or port"),
        ("http://host:99999", "has a bad host or port"),
        ("http://host:0", "has a bad host or port"),
        ("http://[::1", "has a bad host or port"),
        ("http://user:geheim@host", "holds a user name or password"),
        ("http://host/?key=geheim", "holds a query or fragment"),
        ("http://host/#geheim", "holds a query or fragment"),
        ("http://ho st", "holds characters"),
        ("http://hést", "holds characters"),
    ],
)
def test_a_bad_address_is_refused_without_showing_it(home: Home, url: str, problem: str) -> None:
    home.write("config/providers/local.yaml", f"local:\n  type: llamacpp\n  url: '{url}'\n")
    error = home.refusal()
    assert error.message.startswith(f"{home.path}/config/providers/local.yaml:3: local.url: the address ")
    assert problem in error.message
    assert "geheim" not in error.message


@pytest.mark.parametrize("text", ["$MY_KEY", "${MY_KEY}", "  ${MY_KEY} "])
def test_a_token_may_name_a_variable(home: Home, text: str) -> None:
    spec = provider(home, f"{HTTP}, token: '{text}'", {"MY_KEY": SECRET + "\n"})
    assert spec.token is not None
    assert spec.token.reveal() == SECRET
    assert spec.token_variables == ("MY_KEY", "AURA_PROVIDERS_LOCAL_TOKEN")


def test_a_token_without_a_file_entry_comes_from_the_environment(home: Home) -> None:
    home.write("config/providers/local.yaml", f"local: {{{HTTP}}}\nmy-local.2: {{{HTTP}}}\n")
    environ = {"AURA_PROVIDERS_MY_LOCAL_2_TOKEN": SECRET}
    assert home.load(environ).providers["my-local.2"].token == Secret(SECRET)


def test_a_token_of_an_unset_variable_falls_back_to_the_environment(home: Home) -> None:
    environ = {"AURA_PROVIDERS_LOCAL_TOKEN": SECRET, "A": "half"}
    assert provider(home, f"{HTTP}, token: '$A$B'", environ).token == Secret(SECRET)


def test_an_unset_variable_is_a_notice_and_no_error(home: Home) -> None:
    home.write("config/providers/local.yaml", f"local:\n  type: openai\n  token: ${{NO_KEY}}\nother: {{{HTTP}}}\n")
    configuration = home.load({"NO_KEY": ""})
    assert configuration.providers["local"].token is None
    path = home.path / "config/providers/local.yaml"
    assert configuration.notices == (f"{path}:3: local.token: NO_KEY is not set, so no token is sent",)


def test_an_unset_variable_of_a_provider_that_no_agent_uses_is_not_worth_a_notice(home: Home) -> None:
    home.write("config/providers/other.yaml", "other: {type: openai, token: $NO_KEY}\n")
    assert home.load().notices == ()


@pytest.mark.parametrize("value", ["a\nb", "schlüssel", "a\x7fb"])
def test_a_token_that_no_header_can_carry_is_refused_without_showing_it(home: Home, value: str) -> None:
    home.write("config/providers/local.yaml", f"local: {{{HTTP}, token: $KEY}}\n")
    error = home.refusal({"KEY": value})
    assert "local.token: the token holds characters that an HTTP header cannot carry" in error.message
    assert value not in error.message


def test_a_token_that_is_not_text_is_refused_without_showing_it(home: Home) -> None:
    home.write("config/providers/local.yaml", f"local: {{{HTTP}, token: 123456789}}\n")
    error = home.refusal()
    assert "local.token: found a number" in error.message
    assert "123456789" not in f"{error.message} {error.hint}"


def test_a_token_in_the_place_of_a_provider_is_not_shown(home: Home) -> None:
    home.write("config/providers/local.yaml", f"local: {SECRET}\n")
    error = home.refusal()
    assert "local: found text" in error.message
    assert SECRET not in f"{error.message} {error.hint}"


def test_a_secret_is_in_no_text_of_the_configuration(home: Home) -> None:
    home.write("config/providers/local.yaml", f"local: {{{HTTP}, token: {SECRET}}}\n")
    configuration = home.load()
    assert SECRET not in f"{configuration!r} {configuration.providers['local'].token}"
    assert secret_values(configuration) == {SECRET}


def test_the_variables_that_may_hold_tokens_are_known(home: Home) -> None:
    home.write("config/providers/local.yaml", f"local: {{{HTTP}, token: '$A-${{B}}'}}\n")
    assert secret_variables(home.load()) == {"A", "B", "AURA_PROVIDERS_LOCAL_TOKEN"}
    assert secret_values(home.load()) == frozenset()


def test_a_script_lies_relative_to_the_home_of_its_file(home: Home) -> None:
    script = home.write("plays/one.yaml", "turns: []\n")
    spec = provider(home, "type: script, file: plays/one.yaml")
    assert spec.file == script
    assert spec.url == ""
    assert spec.token_variables == ()


@pytest.mark.parametrize("name", ["missing.yaml", "config", "'a\\0b'"])
def test_a_script_must_be_a_file(home: Home, name: str) -> None:
    home.write("config/providers/local.yaml", f"local:\n  type: script\n  file: {name}\n")
    error = home.refusal()
    assert error.message.startswith(f"{home.path}/config/providers/local.yaml:3: local.file: there is no file ")
    assert str(home.path) in (error.hint or "")


def test_a_script_provider_needs_a_file(home: Home) -> None:
    home.write("config/providers/local.yaml", "local: {type: script}\n")
    assert "local: the key file is missing" in home.refusal().message


@pytest.mark.parametrize(
    ("keys", "key", "hint"),
    [
        (f"{HTTP}, tokn: x", "local.tokn: this key is unknown", "Did you mean token? Accepted here: models,"),
        (f"{HTTP}, file: x", "local.file: this key is unknown", "retry, timeout, token, type, url."),
        (
            "type: script, url: 'http://x'",
            "local.url: this key is unknown",
            "Accepted here: file, models, retry, type.",
        ),
        (f"{HTTP}, retry: {{max: 1}}", "local.retry.max: this key is unknown", "base_delay, max_attempts, max_delay"),
        (f"{HTTP}, retry: 3", "local.retry: found a number", "a mapping with the keys base_delay"),
        (f"{HTTP}, retry: {{max_attempts: -1}}", "local.retry.max_attempts: found -1", "from 0 to 100"),
        (
            f"{HTTP}, retry: {{base_delay: 5m, max_delay: 1s}}",
            "local.retry.max_delay: found 1000ms",
            "at least as long",
        ),
        (f"{HTTP}, timeout: soon", 'local.timeout: found "soon"', "10s, 5m or 1h30m; a bare number is milliseconds"),
        (f"{HTTP}, models: {{include: qwen}}", 'local.models.include: found "qwen"', "a list of texts"),
        (f"{HTTP}, keep_alive: 5m", "local.keep_alive: keep_alive is not supported yet", "Leave it out"),
        ("url: 'http://x'", "local: the key type is missing", "one of script, openai, llamacpp, llamaswap"),
        ("type: ", "local: the key type is missing", "one of script, openai, llamacpp, llamaswap"),
        ("type: llama", 'local.type: found "llama"', "one of script, openai, llamacpp, llamaswap"),
        ("type: 5", "local.type: found 5", "one of script, openai, llamacpp, llamaswap"),
        (
            "type: anthropic",
            'local.type: "anthropic" is not supported yet',
            "one of script, openai, llamacpp, llamaswap",
        ),
    ],
)
def test_an_error_names_file_key_and_what_is_accepted(home: Home, keys: str, key: str, hint: str) -> None:
    home.write("config/providers/local.yaml", f"local: {{{keys}}}\n")
    error = home.refusal()
    assert error.message.startswith(f"{home.path}/config/providers/local.yaml:1: {key}")
    assert hint in (error.hint or "")


@pytest.mark.parametrize("kind", ["anthropic", "google", "copilot", "codex"])
def test_types_of_a_later_version_are_not_supported_yet(home: Home, kind: str) -> None:
    home.write("config/providers/local.yaml", f"local: {{type: {kind}, keep_alive: 5m}}\n")
    assert f'local.type: "{kind}" is not supported yet' in home.refusal().message


@pytest.mark.parametrize("name", ["a/b", "'a b'", "-a", "ü", "''", f"'{'x' * 129}'"])
def test_a_name_that_no_model_text_could_hold_is_refused(home: Home, name: str) -> None:
    home.write("config/providers/local.yaml", f"{name}: {{{HTTP}}}\n")
    assert "this is no name for a provider" in home.refusal().message


def test_a_file_that_is_no_mapping_is_refused(home: Home) -> None:
    home.write("config/providers/local.yaml", "- local\n")
    error = home.refusal()
    assert error.message == f"{home.path}/config/providers/local.yaml:1: found a list"
    assert error.hint == "Use a mapping from names to providers."


def test_one_name_in_two_files_of_a_home_names_both(home: Home) -> None:
    home.write("config/providers/more.yaml", f"\nLOCAL: {{{HTTP}}}\n")
    error = home.refusal()
    assert f"{home.path}/config/providers/more.yaml:2: LOCAL: " in error.message
    assert f"{home.path}/config/providers/local.yaml:1 has a provider of this name already" in error.message


def test_example_files_and_empty_files_are_no_providers(home: Home) -> None:
    home.write("config/providers/cloud.example.yaml", "nonsense: [")
    home.write("config/providers/empty.yaml", "")
    home.write("config/providers/comment.yml", "# nothing yet\n")
    assert list(home.load().providers) == ["local"]


@pytest.mark.parametrize(
    ("include", "exclude", "model", "accepted"),
    [
        ((), (), "any", True),
        (("qwen*",), (), "qwen-3", True),
        (("qwen*",), (), "llama", False),
        (("qwen*",), (), "Qwen-3", False),
        (("*",), ("*-draft",), "qwen-draft", False),
        ((), ("a.c",), "abc", True),
    ],
)
def test_models_are_chosen_by_globs(
    include: tuple[str, ...], exclude: tuple[str, ...], model: str, accepted: bool
) -> None:
    assert NamesSpec(include, exclude).accept(model) is accepted
