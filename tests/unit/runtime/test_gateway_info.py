"""What is said of MCP servers: an origin and a program's name, and nothing that could hold a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.runtime.gateway.info import INVALID_URL, UNKNOWN_COMMAND, origin, program

SECRET = "sekrit"
_PARTS = st.sampled_from(("", SECRET, f"x{SECRET}", f"{SECRET}/y", f"{SECRET}%20z"))


@given(user=_PARTS, password=_PARTS, path=_PARTS, query=_PARTS, fragment=_PARTS, port=st.sampled_from(("", ":8443")))
def test_an_origin_holds_nothing_else_of_its_address(
    user: str, password: str, path: str, query: str, fragment: str, port: str
) -> None:
    shown = origin(f"https://{user}:{password}@logs.example.com{port}/{path}?token={query}#{fragment}")
    assert shown in (f"https://logs.example.com{port}", INVALID_URL)
    assert SECRET not in shown


@given(st.text())
def test_any_text_has_an_origin_or_none(text: str) -> None:
    shown = origin(text)
    assert shown == INVALID_URL or shown.startswith(("http://", "https://"))
    assert not any(mark in shown.removeprefix("https://").removeprefix("http://") for mark in "/?#@")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000"),
        ("https://[::1]:8443/x", "https://[::1]:8443"),
        ("ftp://logs.example.com", INVALID_URL),
        ("https://logs.example.com:port/", INVALID_URL),
        ("not a url", INVALID_URL),
        ("", INVALID_URL),
    ],
)
def test_some_origins(url: str, shown: str) -> None:
    assert origin(url) == shown


@pytest.mark.parametrize(
    ("command", "shown"),
    [("/opt/secret/fs-server", "fs-server"), ("npx", "npx"), ("", UNKNOWN_COMMAND), ("/opt/", UNKNOWN_COMMAND)],
)
def test_a_command_is_its_name(command: str, shown: str) -> None:
    assert program(command) == shown
