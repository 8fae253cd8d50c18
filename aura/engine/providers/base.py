"""What a model provider is to the engine: one call in, a stream of deltas out, one reply or one typed error.

One module per protocol implements `Provider`. Retries, history and tools are not a provider's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from aura.config.spec import GenerationSpec
from aura.conversation import Call, Message
from aura.engine.scope import Scope
from aura.errors import Detail
from aura.jsontypes import JsonObject
from aura.runs import RunError

ProviderErrorKind = Literal[
    "network",
    "server",
    "rate_limit",
    "auth",
    "credit",
    "model_unavailable",
    "content_filter",
    "context_exhausted",
    "malformed",
    "unclassified",
]

_CODES: dict[ProviderErrorKind, str] = {
    "network": "provider_network",
    "server": "provider_server",
    "rate_limit": "provider_rate_limit",
    "auth": "provider_auth",
    "credit": "provider_credit",
    "model_unavailable": "provider_model_unavailable",
    "content_filter": "content_filter",
    "context_exhausted": "context_exhausted",
    "malformed": "internal",
    "unclassified": "internal",
}
_RETRYABLE: frozenset[ProviderErrorKind] = frozenset(("network", "server", "rate_limit"))


class ProviderError(Exception):
    """The one error of all providers. `provider` is the provider's type, such as `llamaswap`, never its name.

    `message` is the server's own where it gave one, at most `limits.MESSAGE_EXCERPT_BYTES`, and never holds a token.
    `malformed` is an answer that breaks its protocol, such as tool-call arguments that are not JSON. `streamed` tells
    that a part of the answer had come before: such a call is never repeated.
    """

    def __init__(
        self,
        kind: ProviderErrorKind,
        message: str,
        *,
        provider: str,
        status: int | None = None,
        retry_after_ms: int | None = None,
        streamed: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: ProviderErrorKind = kind
        self.message = message
        self.provider = provider
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.streamed = streamed

    @property
    def retryable(self) -> bool:
        """Tell whether the same call may succeed later (contract.md: three codes only)."""
        return self.kind in _RETRYABLE

    def run_error(self) -> RunError:
        """Return the contract's Error for this failure (contract.md, Outcomes and codes)."""
        details: dict[str, Detail] = {
            "status": self.status,
            "provider": self.provider,
            "retry_after_ms": self.retry_after_ms,
        }
        shown = {key: value for key, value in details.items() if value is not None}
        return RunError(_CODES[self.kind], self.message, self.retryable, shown)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model sees it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class Request:
    """One model call. `messages` are those a model may see; the system prompt stands beside them."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    think: str | None = None
    generation: GenerationSpec = field(default_factory=GenerationSpec)


@dataclass(frozen=True, slots=True)
class Reply:
    """One finished model call. Token counts are 0 where the provider gave none. Call ids are never empty."""

    content: str
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0


OnDelta = Callable[[str, bool], None]  # (text, thinking)


class Provider(Protocol):
    """A model behind one protocol. Methods block; they are called on run threads only."""

    @property
    def type(self) -> str:
        """The provider's type, as in its configuration file."""
        ...

    def stream(self, request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        """Make one model call. Raises `ProviderError`, and `Cancelled` within milliseconds of a cancel.

        `on_delta` is called on the calling thread, in order, never after this returned or raised; joined, its texts are
        the reply's content and thinking. A slow one delays nobody else; what it raises ends the call.
        """
        ...

    def context_tokens(self, model: str, scope: Scope) -> int:
        """Return the model's context window in tokens, 0 when unknown. May contact the provider."""
        ...
