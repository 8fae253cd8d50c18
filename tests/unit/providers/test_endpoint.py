"""URL and token rules, and which provider a configuration makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.config.spec import ProviderSpec, Secret
from aura.engine.io import IoThread
from aura.engine.providers.endpoint import endpoint_of
from aura.engine.providers.registry import build_provider
from aura.errors import ConfigInvalid


def spec(type: str = "llamacpp", url: str = "", **more: object) -> ProviderSpec:
    return ProviderSpec("local", type, Path("providers/local.yaml"), url=url, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type", "url", "base_url"),
    [
        ("llamacpp", "http://127.0.0.1:8081", "http://127.0.0.1:8081/v1"),
        ("llamacpp", "http://127.0.0.1:8081/", "http://127.0.0.1:8081/v1"),
        ("llamaswap", "http://h/v1/", "http://h/v1"),
        ("llamaswap", "https://h/llm", "https://h/llm/v1"),
        ("openai", "", "https://api.openai.com/v1"),
        ("openai", "http://[::1]:80/api/v3", "http://[::1]:80/api/v3"),
    ],
)
def test_the_api_root_follows_the_type(type, url, base_url):
    assert endpoint_of(spec(type, url)).base_url == base_url


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8081", "ftp://h", "http://", "http://h:99999", "http://h:0", "http://[", "http://a b", "http://h/?k=1"]
)  # fmt: skip
def test_a_url_that_cannot_be_used_names_file_and_key(url):
    with pytest.raises(ConfigInvalid, match=r"providers/local\.yaml: local\.url ") as caught:
        endpoint_of(spec(url=url))
    assert caught.value.hint


def test_credentials_in_a_url_are_refused_without_showing_them():
    with pytest.raises(ConfigInvalid, match="holds a user name or a password") as caught:
        endpoint_of(spec(url="http://me:s3cret@h"))
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize("token", ["", "s3cret\n", "s3 cret", "s3cretä", "s3cret\x00"])
def test_a_token_that_cannot_stand_in_a_header_is_refused_without_showing_it(token):
    with pytest.raises(ConfigInvalid, match=r"local\.token ") as caught:
        endpoint_of(spec(url="http://h", token=Secret(token)))
    assert "s3" not in caught.value.message


def test_metadata_urls_follow_the_type():
    query = "/props?model=a%2Fb%20c&autoload=true"
    assert endpoint_of(spec("llamacpp", "http://h/x/v1")).props_urls("a/b c") == ["http://h/x" + query]
    swap = endpoint_of(spec("llamaswap", "http://h")).props_urls("a/b c")
    assert swap == ["http://h/upstream/a/b%20c/props", "http://h" + query]
    assert endpoint_of(spec("openai")).props_urls("gpt") == []


def test_every_type_builds_without_contacting_anybody(write_script):
    io = IoThread()
    script = write_script("turns: []")
    types = ["openai", "llamacpp", "llamaswap", "script"]
    built = [build_provider(spec(type, "http://192.0.2.1", file=script), io) for type in types]
    assert [provider.type for provider in built] == types


def test_a_script_provider_needs_a_file():
    with pytest.raises(ConfigInvalid, match=r"local\.file is missing"):
        build_provider(spec("script"), IoThread())


def test_openai_says_nothing_about_context_without_being_asked(scope):
    assert build_provider(spec("openai"), IoThread()).context_tokens("gpt", scope) == 0
