"""URL and token rules, and which provider a configuration makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.config.spec import ProviderSpec
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
    ("url", "key"),
    [
        ("", "max_completion_tokens"),
        ("https://api.openai.com/v1/", "max_completion_tokens"),
        ("http://h/v1", "max_tokens"),
    ],
)
def test_only_openais_own_servers_have_another_name_for_the_token_limit(url, key):
    assert endpoint_of(spec("openai", url)).dialect.length_key == key


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
