"""Ids, times, errors and conversations as values."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura import errors, ids
from aura.clock import SystemClock, format_time, parse_time
from aura.conversation import Header, Message, MessageType, count_non_system, is_shown_to_model, with_meta
from aura.errors import InvalidId

UUID_TEXT = "7f1a6c1e-0f0a-4c3b-9d55-1d6f6a5f3b10"  # fixed, so that all workers collect the same tests


@pytest.mark.parametrize("text", ["a", "task-1", "A.b_c-d", "0" * 128, UUID_TEXT, "a."])
def test_a_good_session_id_is_returned_as_it_is(text: str) -> None:
    assert ids.check_session_id(text) == text


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a..b", "-a", "_a", ".a", "a/b", "a\\b", "a b", "é", "a\n", "\na", "a" * 129, "a\x00", "\udcff"],
)
def test_a_bad_session_id_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidId) as caught:
        ids.check_session_id(text)
    assert caught.value.hint and "\n" not in caught.value.message


@given(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_a_uuid_7_holds_its_time_and_its_bits(now_ms: int, noise: bytes) -> None:
    value = uuid.UUID(ids.uuid7(now_ms, noise))
    assert (value.version, value.variant, value.int >> 80) == (7, uuid.RFC_4122, now_ms)


def test_ids_sort_by_the_time_they_were_made_and_differ() -> None:
    made = [ids.new_run_id(at) for at in (1, 2, 300, 1_700_000_000_000)]
    assert made == sorted(made)
    assert len({ids.new_run_id(5) for _ in range(1000)}) == 1000
    assert all(ids.is_run_id(text) for text in made)
    assert ids.new_message_id(1).startswith("msg_") and ids.new_input_id(1).startswith("inp_")
    assert uuid.UUID(ids.new_session_id()).version == 4


@pytest.mark.parametrize("text", ["", "run_", "run_1", f"run_{UUID_TEXT}x", f"Run_{UUID_TEXT}", UUID_TEXT])
def test_what_is_no_run_id_is_told_apart(text: str) -> None:
    assert not ids.is_run_id(text)


def test_a_digest_is_lower_case_hex() -> None:
    assert ids.is_sha256("0" * 64)
    assert not any(map(ids.is_sha256, ("0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n")))


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1969-12-31T23:59:59.999Z", -1),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01T00:00:00.0019999Z", 1),
        ("1970-01-01T00:00:00.123456789Z", 123),
        ("0001-01-01T00:00:00Z", -62135596800000),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
    ],
)
def test_a_time_is_read(text: str, at_ms: int) -> None:
    assert parse_time(text) == at_ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-01-01", "20260101T000000Z", "2026-W01-1T00:00:00Z", "2026-02-30T00:00:00Z",
     "2026-01-01T24:00:00Z",
     "2026-01-01T00:00:00+25:00", "2026-01-01T00:00Z", "2026-01-01T00:00:00,5Z", " 2026-01-01T00:00:00Z",
     "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "٢٠٢٦-01-01T00:00:00Z", "2026-01-01T00:00:00Z\n"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


@given(st.integers(-62135596800000, 253402300799999))
def test_every_moment_is_read_back_from_its_text(at_ms: int) -> None:
    text = format_time(at_ms)
    assert len(text) == 24 and text.endswith("Z")
    assert parse_time(text) == at_ms


def test_the_systems_clock_counts_milliseconds() -> None:
    clock = SystemClock()
    assert 1_600_000_000_000 < clock.now_ms() < 10_000_000_000_000
    assert clock.monotonic_ms() <= clock.monotonic_ms()


RETRYABLE = ("provider_network", "provider_server", "provider_rate_limit")


def subclasses(kind: type[errors.AuraError]) -> list[type[errors.AuraError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in subclasses(child))]


def test_every_error_has_a_code_a_status_and_the_exit_code_one() -> None:
    for kind in subclasses(errors.AuraError):
        error = kind("message", hint="hint", details={"a": 1})
        assert error.code and 400 <= error.http_status < 600 and error.exit_code == 1
        assert error.retryable is (error.code in RETRYABLE)
        assert (str(error), error.message, error.hint, error.details) == ("message", "message", "hint", {"a": 1})


def test_the_store_errors_share_one_code() -> None:
    assert {kind.code for kind in subclasses(errors.StoreUnavailable)} == {"store_unavailable"}


def test_what_a_model_sees() -> None:
    assert is_shown_to_model(Message("user", "x")) and is_shown_to_model(
        Message("user", "x", type=MessageType.SYNTHETIC)
    )
    assert not is_shown_to_model(Message("system", "x"))
    assert not any(is_shown_to_model(Message("user", "x", type=kind)) for kind in (3, 4, 5))
    assert count_non_system([Message("system", ""), Message("user", ""), Message("tool", "")]) == 2


def test_meta_changes_are_laid_over_and_none_removes() -> None:
    header = Header("s", "", "", "", meta={"a": 1, "b": 2})
    assert with_meta(header, {"b": None, "c": 3}) == {"a": 1, "c": 3}
    assert header.meta == {"a": 1, "b": 2}
