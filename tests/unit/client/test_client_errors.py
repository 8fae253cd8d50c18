"""The exceptions: one for each code of the contract, whole after a pickle, silent about the token."""

from __future__ import annotations

import pickle

import client_documents as documents
import pytest
from client_documents import TOKEN

import aura_automation
from aura_automation import (
    Aura,
    AutomationError,
    BadRequest,
    Client,
    ContractDrift,
    NetworkError,
    NotFound,
    Overloaded,
    ProgramFailed,
    SessionLocked,
    StopRequested,
    Store,
    Unauthorized,
)
from aura_automation import _decode as decode
from aura_automation.codes import BY_CODE

CONTRACT_CODES = [
    "unauthorized",
    "not_found",
    "busy",
    "request_conflict",
    "cursor_out_of_range",
    "not_pending",
    "shutting_down",
    "bad_request",
    "exists",
    "revision_mismatch",
    "session_locked",
    "session_frozen",
    "invalid_id",
    "invalid_session",
    "resume_failed",
    "mcp_unavailable",
    "config_invalid",
    "launcher_lost",
    "startup_failed",
    "overloaded",
    "store_unavailable",
    "internal",
    "provider_network",
    "provider_server",
    "provider_rate_limit",
    "provider_auth",
    "provider_credit",
    "provider_model_unavailable",
    "cancelled",
    "input_rejected",
    "guardrail_blocked",
    "input_required",
    "policy_stop",
    "content_filter",
    "context_exhausted",
    "compaction_failed",
    "max_steps",
    "token_budget",
    "command_failed",
    "persist_failed",
    "server_lost",
]


def test_every_code_of_the_contract_has_one_exception_class_that_is_exported() -> None:
    assert sorted(BY_CODE) == sorted(CONTRACT_CODES)
    assert len(set(BY_CODE.values())) == len(CONTRACT_CODES)
    for kind in BY_CODE.values():
        assert getattr(aura_automation, kind.__name__) is kind


def test_all_lists_exactly_what_the_package_offers() -> None:
    public = {name for name, value in vars(aura_automation).items() if isinstance(value, type)}
    assert set(aura_automation.__all__) == public


@pytest.mark.parametrize("code", CONTRACT_CODES)
def test_an_http_error_becomes_the_exception_of_its_code_with_all_it_says(code: str) -> None:
    error = documents.error(code=code, retryable=True, details={"run_id": "run_1"})
    raised = decode.http_failure({"error": error}, "here", 2.0)
    assert type(raised) is BY_CODE[code]
    assert (raised.code, raised.message, raised.retryable) == (code, "something broke", True)
    assert (raised.details, raised.hint, raised.retry_after_s) == ({"run_id": "run_1"}, None, 2.0)


def test_an_unknown_code_is_drift() -> None:
    with pytest.raises(ContractDrift, match=r"error\.code: 'on_fire' is not a code"):
        decode.http_failure({"error": documents.error(code="on_fire")}, "here", None)


def test_an_offline_error_may_say_only_code_and_message_or_add_a_hint() -> None:
    plain = decode.command_failure({"error": {"code": "exists", "message": "no"}}, "here")
    assert (plain.code, plain.retryable, plain.details, plain.hint) == ("exists", False, {}, None)
    hinted = decode.command_failure({"error": {"code": "exists", "message": "no", "hint": "take another id"}}, "here")
    assert str(hinted) == "exists: no (take another id)"


def test_an_error_ready_file_is_raised_as_its_typed_error() -> None:
    with pytest.raises(SessionLocked, match="held"):
        decode.read_ready(
            b'{"api":1,"error":{"code":"session_locked","message":"held","retryable":false,"details":{}}}', "r"
        )


@pytest.mark.parametrize(
    "error",
    [
        NotFound("no such run", details={"candidates": ["a"]}, hint="look"),
        Overloaded("full", retry_after_s=1.5),
        NetworkError("gone", may_have_arrived=False),
        ProgramFailed("ended", details={"reason": "exited", "exit_code": 3}),
        ContractDrift("GET /v1/server", "pid", "Unknown field.", ("pid", "url")),
        StopRequested("run_1", 7),
    ],
)
def test_every_exception_survives_a_pickle(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_stop_is_not_caught_as_a_failure() -> None:
    assert not issubclass(StopRequested, AutomationError)


@pytest.mark.parametrize("token", ["", "with space" * 5, "line\nbreak" * 5, "ünïcödé" * 5, "null\0" * 8])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        Client("http://127.0.0.1:1", token)
    assert token == "" or token not in f"{caught.value!r} {caught.value} {vars(caught.value)}"


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "ftp://h", "http://", "http://h:0", "http://h:x", "http://u@h", "http://h/?q"]
)
def test_what_is_no_server_address_is_refused(url: str) -> None:
    with pytest.raises(BadRequest, match="address"):
        Client(url, TOKEN)


def test_no_repr_shows_the_token_or_the_environment() -> None:
    aura = Aura("aura", env={"KEY": "s3cret"})
    client = Client("http://127.0.0.1:1", TOKEN)
    for value in (aura, Store(aura), client):
        assert TOKEN not in repr(value)
        assert "s3cret" not in repr(value)


def test_the_token_is_in_the_servers_environment_only() -> None:
    aura = Aura("aura", args=["--home", ""], env={"AURA_SERVE_TOKEN": "old", "A": "1"})
    assert aura.environment() == {"A": "1"}
    assert aura.environment(TOKEN) == {"A": "1", "AURA_SERVE_TOKEN": TOKEN}
    assert aura.command("session", "list") == ["aura", "--home", "", "session", "list"]
