"""Options of the gateway's process: flags over variables over defaults, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.config.gateway_options import OPTION_SECRET_VARIABLES, GatewayOptions, read_gateway_options
from aura.config.spec import Secret
from aura.errors import ConfigInvalid

LONG = "0123456789abcdef" * 2


def test_the_defaults_are_those_of_the_specification() -> None:
    options = read_gateway_options({}, {})
    assert len(options.instance_id) == 32
    assert options == GatewayOptions(
        host="127.0.0.1",
        port=8080,
        agents=None,
        default_agent=None,
        tool_result_mode="none",
        tool_result_max_length=1000,
        streaming_buffer_size=400,
        custom_events=False,
        emit_reasoning=False,
        streaming_timeout_ms=900_000,
        first_chunk_timeout_ms=90_000,
        inactivity_timeout_ms=0,
        shutdown_timeout_ms=30_000,
        debug_provider_errors=False,
        instance_id=options.instance_id,
        hitl_tolerance_ms=300_000,
    )
    assert not options.signing


def test_each_process_has_its_own_instance_id() -> None:
    assert read_gateway_options({}, {}).instance_id != read_gateway_options({}, {}).instance_id


# field, flag, variable, text, value
OPTIONS = [
    ("host", "host", "HOST", "0.0.0.0", "0.0.0.0"),
    ("port", "port", "PORT", "0", 0),
    ("agents", "agents", "CONFIG_PATH", "a/b", Path("a/b")),
    ("default_agent", "default_agent", "DEFAULT_AGENT", "ops", "ops"),
    ("tool_result_mode", "tool_result_mode", "TOOL_RESULT_MODE", "open-web-ui", "open-web-ui"),
    ("tool_result_max_length", "tool_result_max_length", "TOOL_RESULT_MAX_LENGTH", "0", 0),
    ("streaming_buffer_size", "streaming_buffer_size", "STREAMING_BUFFER_SIZE", "7", 7),
    ("custom_events", "aura_custom_events", "AURA_CUSTOM_EVENTS", "true", True),
    ("emit_reasoning", "aura_emit_reasoning", "AURA_EMIT_REASONING", "1", True),
    ("streaming_timeout_ms", "streaming_timeout_secs", "STREAMING_TIMEOUT_SECS", "0", 0),
    ("first_chunk_timeout_ms", "first_chunk_timeout_secs", "FIRST_CHUNK_TIMEOUT_SECS", "5", 5_000),
    ("inactivity_timeout_ms", "stream_inactivity_timeout_secs", "STREAM_INACTIVITY_TIMEOUT_SECS", "6", 6_000),
    ("shutdown_timeout_ms", "shutdown_timeout_secs", "SHUTDOWN_TIMEOUT_SECS", "7", 7_000),
    ("debug_provider_errors", None, "AURA_DEBUG_PROVIDER_ERRORS", "TRUE", True),
    ("instance_id", None, "AURA_INSTANCE_ID", "box-1", "box-1"),
    ("api_key", None, "AURA_API_KEY", "key", Secret("key")),
    ("hitl_secret", None, "AURA_HITL_WEBHOOK_SECRET", LONG, Secret(LONG)),
    ("hitl_tolerance_ms", None, "AURA_HITL_WEBHOOK_TOLERANCE_SECS", "86400", 86_400_000),
]


@pytest.mark.parametrize(("field", "flag", "variable", "text", "value"), OPTIONS, ids=[row[0] for row in OPTIONS])
def test_an_option_comes_from_its_variable(
    field: str, flag: str | None, variable: str, text: str, value: object
) -> None:
    assert getattr(read_gateway_options({}, {variable: text}), field) == value


FLAGS = [row for row in OPTIONS if row[1] is not None]


@pytest.mark.parametrize(("field", "flag", "variable", "text", "value"), FLAGS, ids=[row[0] for row in FLAGS])
def test_a_flag_wins_over_the_variable(field: str, flag: str, variable: str, text: str, value: object) -> None:
    assert getattr(read_gateway_options({flag: text}, {variable: "\0 never read"}), field) == value


def test_flags_may_be_parsed_already_and_absent_ones_are_none() -> None:
    flags = {"port": 9, "aura_custom_events": False, "host": None, "streaming_timeout_secs": 3}
    options = read_gateway_options(flags, {"HOST": "::1", "AURA_CUSTOM_EVENTS": "1", "STREAMING_TIMEOUT_SECS": "4"})
    assert (options.port, options.custom_events, options.host) == (9, False, "::1")
    assert options.streaming_timeout_ms == 3_000


def test_an_empty_variable_is_not_set() -> None:
    environ = {variable: "" for _, flag, variable, _, _ in OPTIONS if flag or variable == "AURA_INSTANCE_ID"}
    assert read_gateway_options({}, environ).port == 8080


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("FALSE", False), ("1", True), ("0", False), ("True", True), (" true ", True)]
)
def test_a_switch_is_read_in_any_case(text: str, value: bool) -> None:
    assert read_gateway_options({}, {"AURA_CUSTOM_EVENTS": text}).custom_events is value


@pytest.mark.parametrize(
    ("variable", "text", "problem", "hint"),
    [
        ("HOST", "a b", 'found "a b"', "a host name or address"),
        ("PORT", "65536", 'found "65536"', "a whole number from 0 to 65535"),
        ("PORT", "-1", 'found "-1"', "a whole number from 0 to 65535"),
        ("PORT", "http", 'found "http"', "a whole number from 0 to 65535"),
        ("PORT", "8080.0", 'found "8080.0"', "a whole number from 0 to 65535"),
        ("DEFAULT_AGENT", "a\nb", 'found "a\\nb"', "the id of an agent"),
        ("TOOL_RESULT_MODE", "all", 'found "all"', "one of none, open-web-ui, aura"),
        ("TOOL_RESULT_MODE", "NONE", 'found "NONE"', "one of none, open-web-ui, aura"),
        ("TOOL_RESULT_MAX_LENGTH", "-1", 'found "-1"', "(characters; 0 is no limit)"),
        ("STREAMING_BUFFER_SIZE", "0", 'found "0"', "a whole number from 1 to 100000 (frames)"),
        ("AURA_CUSTOM_EVENTS", "yes", 'found "yes"', "true or false"),
        ("AURA_EMIT_REASONING", "2", 'found "2"', "true or false"),
        ("AURA_DEBUG_PROVIDER_ERRORS", "on", 'found "on"', "true or false"),
        ("STREAMING_TIMEOUT_SECS", "15m", 'found "15m"', "(seconds; 0 is no limit)"),
        ("FIRST_CHUNK_TIMEOUT_SECS", "1.5", 'found "1.5"', "(seconds; 0 is no limit)"),
        ("STREAM_INACTIVITY_TIMEOUT_SECS", "-1", 'found "-1"', "(seconds; 0 is no limit)"),
        ("SHUTDOWN_TIMEOUT_SECS", "604801", 'found "604801"', "from 0 to 604800"),
        ("AURA_INSTANCE_ID", "a b", 'found "a b"', "at most 128 visible ASCII characters"),
        ("AURA_HITL_WEBHOOK_TOLERANCE_SECS", "0", 'found "0"', "a whole number from 1 to 86400 (seconds)"),
        ("AURA_HITL_WEBHOOK_TOLERANCE_SECS", "86401", 'found "86401"', "a whole number from 1 to 86400 (seconds)"),
        ("AURA_API_KEY", "", "it is set and empty", "visible ASCII characters"),
        ("AURA_API_KEY", "geheim 1", "it is set to another text", "visible ASCII characters"),
        ("AURA_API_KEY", "geheim\n", "it is set to another text", "visible ASCII characters"),
        ("AURA_HITL_WEBHOOK_SECRET", "", "it is set and empty", "at least 32 bytes"),
        ("AURA_HITL_WEBHOOK_SECRET", "geheim" * 5, "it is set to another text", "at least 32 bytes"),
        ("AURA_HITL_WEBHOOK_SECRET_SECONDARY", "geheim", "it is set to another text", "at least 32 bytes"),
        ("AURA_ENABLE_A2A", "true", "A2A is not supported yet", "Unset AURA_ENABLE_A2A."),
        ("AURA_SESSION_STORE", "redis", "a session store other than sqlite is not supported yet", "Unset"),
    ],
)
def test_a_bad_variable_is_named_and_a_secret_not_shown(variable: str, text: str, problem: str, hint: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_gateway_options({}, {variable: text})
    assert caught.value.message == f"{variable}: {problem}"
    assert hint in (caught.value.hint or "")
    assert "geheim" not in caught.value.message + (caught.value.hint or "")


def test_a_bad_flag_is_named_as_one() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_gateway_options({"tool_result_mode": "all"}, {"TOOL_RESULT_MODE": "none"})
    assert caught.value.message == '--tool-result-mode: found "all"'


def test_a_flag_that_there_is_not_is_a_fault_of_the_caller() -> None:
    with pytest.raises(TypeError, match="no flags named hots"):
        read_gateway_options({"hots": "x"}, {})


def test_what_asks_for_nothing_is_taken() -> None:
    assert read_gateway_options({}, {"AURA_ENABLE_A2A": "False", "AURA_SESSION_STORE": "sqlite"}).port == 8080


def test_a_secret_counts_in_bytes() -> None:
    options = read_gateway_options({}, {"AURA_HITL_WEBHOOK_SECRET": "é" * 16})
    assert options.signing


def test_a_second_secret_needs_the_first() -> None:
    environ = {"AURA_HITL_WEBHOOK_SECRET_SECONDARY": LONG}
    with pytest.raises(
        ConfigInvalid, match="AURA_HITL_WEBHOOK_SECRET_SECONDARY is set and AURA_HITL_WEBHOOK_SECRET is not"
    ):
        read_gateway_options({}, environ)
    options = read_gateway_options({}, environ | {"AURA_HITL_WEBHOOK_SECRET": LONG[::-1]})
    assert (options.hitl_secret, options.hitl_secret_secondary) == (Secret(LONG[::-1]), Secret(LONG))


def test_no_secret_is_shown() -> None:
    environ = dict.fromkeys(OPTION_SECRET_VARIABLES, LONG)
    assert LONG not in repr(read_gateway_options({}, environ))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("LocalHost", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("example.org", False), ("localhost.example", False)],
)  # fmt: skip
def test_only_loopback_addresses_are_loopback(host: str, loopback: bool) -> None:
    assert read_gateway_options({"host": host}, {}).is_loopback is loopback
