"""Where a chat completions server is and how it is spoken to: URL rules per provider type. It opens no connection.

`llamacpp` and `llamaswap` are configured by the server's root, `openai` by its API root; either may be given either
way for the llama types, because `/v1` is added only where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, urlsplit

from aura import limits
from aura.config.spec import ProviderSpec, Secret
from aura.engine.providers.chat_request import Dialect
from aura.errors import ConfigInvalid

OPENAI_URL = "https://api.openai.com/v1"
# Metadata documents, tried in order: the next one after a 404. llama-swap passes /upstream/<model>/… on to the model's
# own server; a llama.cpp router knows the query instead; a plain llama-server ignores the query.
_PROPS_PATHS: Mapping[str, tuple[str, ...]] = {
    "openai": (),
    "llamacpp": ("/props?model={query}&autoload=true",),
    "llamaswap": ("/upstream/{path}/props", "/props?model={query}&autoload=true"),
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server. `origin` is shown to people; `timeout_ms` is to the headers, `idle_ms` between two reads."""

    provider: str
    base_url: str
    origin: str
    token: Secret | None = None
    timeout_ms: int = 300_000
    idle_ms: int = limits.PROVIDER_IDLE_MS
    dialect: Dialect = field(default_factory=Dialect)

    def props_urls(self, model: str) -> list[str]:
        """Return where the model's metadata may be, best first; empty when the protocol has none."""
        root = self.base_url.removesuffix("/v1")
        path, query = quote(model, safe="/"), quote(model, safe="")
        return [root + form.format(path=path, query=query) for form in _PROPS_PATHS[self.provider]]


def endpoint_of(spec: ProviderSpec) -> Endpoint:
    """Return where the provider of `spec` is. Raises `ConfigInvalid` for a URL or a token that cannot be used."""
    if spec.token is not None:
        _check_token(spec, spec.token)
    if not spec.url:
        if spec.type != "openai":
            raise _invalid(spec, "url", "is missing", "Set it to the server's address, such as http://127.0.0.1:8081.")
        return _make(spec, OPENAI_URL, Dialect(length_key="max_completion_tokens"))
    parts = _split(spec)
    url = spec.url.rstrip("/")
    is_bare = not url.endswith("/v1")
    return _make(spec, url + "/v1" if is_bare and spec.type != "openai" else url, Dialect(), parts)


def _make(spec: ProviderSpec, base_url: str, dialect: Dialect, parts: SplitResult | None = None) -> Endpoint:
    parts = parts or urlsplit(base_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    return Endpoint(spec.type, base_url, origin, spec.token, spec.timeout_ms, dialect=dialect)


def _split(spec: ProviderSpec) -> SplitResult:
    hint = "Give an address such as http://127.0.0.1:8081 or https://example.org/v1."
    try:
        parts = urlsplit(spec.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    if parts.username or parts.password:
        raise _invalid(spec, "url", "holds a user name or a password", "Put credentials into `token`.")
    if not usable or any(not character.isprintable() or character.isspace() for character in spec.url):
        raise _invalid(spec, "url", "is not an http or https address", hint)
    if parts.query or parts.fragment:
        raise _invalid(spec, "url", "has a query or a fragment", hint)
    return parts


def _check_token(spec: ProviderSpec, token: Secret) -> None:
    value = token.reveal()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        hint = "Use printable ASCII without spaces; check the environment variable that it is taken from."
        raise _invalid(spec, "token", "is empty or cannot stand in an HTTP header", hint)


def _invalid(spec: ProviderSpec, key: str, problem: str, hint: str) -> ConfigInvalid:
    return ConfigInvalid(f"{spec.source}: {spec.name}.{key} {problem}", hint=hint)
