"""Which calls a person must approve and how the person is asked: one set of keys for YAML and TOML (gateway.md 1.10).

It asks nobody. Pausing a run for an approval, polling for decisions and binding them to an identity come later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from aura import limits
from aura.config.addresses import find_address_problem
from aura.config.expansion import NEVER_SECRET, Expand
from aura.config.headers import HEADER_NAME, RESERVED_HEADERS, find_header_problem, lower_names, lower_pairs
from aura.config.readers import Choice, Globs, SecretTexts, Text, Texts, Whole, describe
from aura.config.schema import Later, Place, Settings, Table
from aura.config.spec import AgentSpec, HitlSpec, Secret, WebhookSpec
from aura.errors import ConfigInvalid

# What a signed request carries (gateway.md 5.3), beside what the transport sets.
_RESERVED = RESERVED_HEADERS | {"x-aura-signature-256", "x-aura-timestamp"}
_WEBHOOK_ONLY = ("url", "headers", "headers_from_request", "tool_headers_from_response")
_ADDRESS_HINT = "Use an address such as https://approvals.example/aura."
_MODES = Choice(("conversational", "webhook"))

HITL_TABLE: Table = {
    "require_approval": Globs("restart_*"),
    "route": {
        "mode": _MODES,
        "timeout_secs": Whole(1, limits.APPROVAL_TIMEOUT_MAX_S, "seconds"),
        "url": Text("an address such as https://approvals.example/aura", secret=True),
        "headers": SecretTexts("header names", HEADER_NAME, 'authorization: "Bearer …"'),
        "headers_from_request": SecretTexts("header names", HEADER_NAME, 'x-user-id: "x-forwarded-user"'),
        "tool_headers_from_response": Texts("x-approved-by"),
        "delivery": Later("polling for decisions is"),
        "poll_url": Later("polling for decisions is"),
        "poll_interval_secs": Later("polling for decisions is"),
        "poll_wait_secs": Later("polling for decisions is"),
    },
    "park": Later("parking a run that waits for approval is"),
    "identity_header": Later("binding a parked run to an identity is"),
}


def build_hitl(
    settings: Settings, prefix: str, otherwise: Place, expand: Expand, servers: Collection[str]
) -> HitlSpec | None:
    """Return what the keys under `prefix` say, None when there are none. `servers` are the MCP servers that a pattern
    may name. `otherwise` is the place of a key that is missing.

    Raises `ConfigInvalid` for a route without a mode or an address, keys of another mode, a bad address or header, and
    a pattern for a server that is not there.
    """
    if not any(key.startswith(f"{prefix}.") for key in settings.items):
        return None
    place = settings.place(f"{prefix}.require_approval", otherwise)
    patterns = tuple(_pattern(text, place, servers) for text in settings.texts(f"{prefix}.require_approval"))
    mode = settings.find(f"{prefix}.route.mode", str)
    route = [key for key in settings.items if key.startswith(f"{prefix}.route.")]
    if mode is None and route:
        problem = f"the key {prefix}.route.mode is missing"
        raise settings.items[route[0]].place.error(problem, hint=f"Use {_MODES.accepts}.")
    seconds = settings.find(f"{prefix}.route.timeout_secs", int)
    if mode != "webhook":
        _refuse_webhook_keys(settings, prefix)
        return HitlSpec(patterns, limits.APPROVAL_TIMEOUT_MS if seconds is None else seconds * 1000)
    webhook = _webhook(settings, prefix, expand)
    return HitlSpec(patterns, limits.WEBHOOK_TIMEOUT_MS if seconds is None else seconds * 1000, webhook)


def check_signing(agents: Iterable[AgentSpec]) -> None:
    """Raise `ConfigInvalid` if requests for one of the agents would be signed and sent in the clear (gateway.md 1.2).
    Call it only when a signing secret is set.
    """
    for agent in agents:
        webhook = agent.hitl.webhook if agent.hitl is not None else None
        if webhook is not None and not webhook.url.reveal().lower().startswith("https://"):
            problem = f"{describe(agent.id)} sends approvals over http:// while a signing secret is set"
            raise ConfigInvalid(f"{agent.source}: hitl.route.url: {problem}", hint="Use an https:// address.")


def _pattern(text: str, place: Place, servers: Collection[str]) -> str:
    server, colon, glob = text.partition(":")
    if not colon:
        return str(text)
    if server.lower() not in servers:
        known = f"MCP servers here: {', '.join(sorted(servers))}." if servers else "There is no MCP server here."
        raise place.error(f"{describe(text)} names no MCP server", hint=f"Use a tool's name, or server:name. {known}")
    if not glob:
        raise place.error(f"{describe(text)} names no tool", hint="Use server:* for all tools of a server.")
    return f"{server.lower()}:{glob}"


def _refuse_webhook_keys(settings: Settings, prefix: str) -> None:
    for name in _WEBHOOK_ONLY:
        setting = settings.items.get(f"{prefix}.route.{name}")
        if setting is not None:
            raise setting.place.error("this key belongs to a webhook", hint='Leave it out, or use the mode "webhook".')


def _webhook(settings: Settings, prefix: str, expand: Expand) -> WebhookSpec:
    route = f"{prefix}.route"
    where = settings.items[f"{route}.mode"].place
    reader = _SecretReader(settings, route, where, expand)
    headers = settings.texts_by_name(f"{route}.headers")
    names = lower_names(headers, reader.place("headers"), _RESERVED)
    pairs = settings.texts_by_name(f"{route}.headers_from_request")
    tool_headers = settings.texts(f"{route}.tool_headers_from_response")
    if not settings.get(f"{route}.url", ""):
        raise where.error(f"the key {route}.url is missing or empty, which a webhook needs", hint=_ADDRESS_HINT)
    return WebhookSpec(
        url=reader.read("url", settings.get(f"{route}.url", ""), _address_problem),
        headers=tuple(
            (name, reader.read("headers", text, find_header_problem))
            for name, text in zip(names, headers.values(), strict=True)
        ),
        headers_from_request=lower_pairs(pairs, reader.place("headers_from_request"), _RESERVED),
        tool_headers=lower_names(tool_headers, reader.place("tool_headers_from_response"), RESERVED_HEADERS),
        secret_variables=tuple(sorted(reader.variables - NEVER_SECRET)),
    )


class _SecretReader:
    """Reads the secret texts of a route and remembers the variables that they were made of."""

    def __init__(self, settings: Settings, route: str, where: Place, expand: Expand) -> None:
        self._settings = settings
        self._route = route
        self._where = where
        self._expand = expand
        self.variables: set[str] = set()

    def place(self, key: str) -> Place:
        return self._settings.place(f"{self._route}.{key}", self._where)

    def read(self, key: str, text: str, find_problem: Callable[[str], str | None]) -> Secret:
        place = self.place(key)
        expanded = self._expand(text, place)
        self.variables.update(expanded.variables)
        problem = find_problem(expanded.value)
        if problem is not None:
            raise place.error(problem)
        return Secret(expanded.value)


def _address_problem(value: str) -> str | None:
    return find_address_problem(value, password_key="headers", query=True)
