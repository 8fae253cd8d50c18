"""Where a chat completions server is and how it is spoken to: URL rules per provider type. It opens no connection.

`llamacpp`, `llamaswap` and `ollama` are configured by the server's root, `openai` and `openrouter` by their API root;
either may be given either way for the first three, because `/v1` is added only where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from aura import limits
from aura.config.spec import ProviderSpec, Secret
from aura.engine.providers.chat_request import Dialect

OPENAI_URL = "https://api.openai.com/v1"
_AT_ROOT = frozenset(("llamacpp", "llamaswap", "ollama"))
# Metadata documents, tried in order: the next one after a 404. llama-swap passes /upstream/<model>/… on to the model's
# own server; a llama.cpp router knows the query instead; a plain llama-server ignores the query.
_PROPS_PATHS: Mapping[str, tuple[str, ...]] = {
    "openai": (),
    "openrouter": (),
    "ollama": (),
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
    timeout_ms: int = limits.PROVIDER_TIMEOUT_MS
    idle_ms: int = limits.PROVIDER_IDLE_MS
    dialect: Dialect = field(default_factory=Dialect)

    def props_urls(self, model: str) -> list[str]:
        """Return where the model's metadata may be, best first; empty when the protocol has none."""
        root = self.base_url.removesuffix("/v1")
        path, query = quote(model, safe="/"), quote(model, safe="")
        return [root + form.format(path=path, query=query) for form in _PROPS_PATHS[self.provider]]


def endpoint_of(spec: ProviderSpec) -> Endpoint:
    """Return where the provider of `spec` is. URL and token were checked when the configuration was read."""
    base_url = spec.url.rstrip("/") or OPENAI_URL
    if spec.type in _AT_ROOT and not base_url.endswith("/v1"):
        base_url += "/v1"
    parts = urlsplit(base_url)
    return Endpoint(
        provider=spec.type,
        base_url=base_url,
        origin=f"{parts.scheme}://{parts.netloc}",
        token=spec.token,
        timeout_ms=spec.timeout_ms,
        dialect=Dialect("max_completion_tokens" if base_url == OPENAI_URL else "max_tokens"),
    )
