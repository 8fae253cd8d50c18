"""The options of a gateway's process: what a flag says, else a variable of the environment, else a default (gateway.md
1.1). It knows no command line: whoever parsed one hands over what was given.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, cast

from aura import limits
from aura.config.readers import Choice, LenientFlag, Reader, Text, Unacceptable, Whole
from aura.config.spec import Secret
from aura.errors import ConfigInvalid

ToolResultMode = Literal["none", "open-web-ui", "aura"]
Given = str | int | bool | None
T = TypeVar("T", bool, int, str)

TOOL_RESULT_MODES: tuple[ToolResultMode, ...] = ("none", "open-web-ui", "aura")
API_KEY_VARIABLE = "AURA_API_KEY"
SIGNING_VARIABLES = ("AURA_HITL_WEBHOOK_SECRET", "AURA_HITL_WEBHOOK_SECRET_SECONDARY")
# Never given to a child process, whether they are set or not.
OPTION_SECRET_VARIABLES = frozenset((API_KEY_VARIABLE, *SIGNING_VARIABLES))

_SWITCH = LenientFlag()
_PORT = Whole(0, 65535, "0 is any that is free", spelled=True)
_LENGTH = Whole(0, limits.TOOL_RESULT_LIMIT_MAX_CHARS, "characters; 0 is no limit", spelled=True)
_FRAMES = Whole(1, limits.STREAMING_BUFFER_MAX_COUNT, "frames", spelled=True)
_SECONDS = Whole(0, limits.GATEWAY_TIMEOUT_MAX_S, "seconds; 0 is no limit", spelled=True)
_TOLERANCE = Whole(1, limits.WEBHOOK_TOLERANCE_MAX_S, "seconds", spelled=True)
_HOST = Text("a host name or address", re.compile(r"[A-Za-z0-9._:%-]+"))
_PATH = Text("the path of a file or directory", re.compile(r"[^\0]+"))
_AGENT = Text("the id of an agent", re.compile(r"[^\0\n\r]+"))
_INSTANCE = Text(
    f"at most {limits.INSTANCE_ID_MAX_CHARS} visible ASCII characters",
    re.compile(rf"[!-~]{{1,{limits.INSTANCE_ID_MAX_CHARS}}}"),
)


@dataclass(frozen=True, slots=True)
class _SecretRule:
    """What a secret must be. `what` says it in words."""

    what: str
    accept: Callable[[str], bool]


_API_KEY = _SecretRule("visible ASCII characters without spaces", lambda text: bool(re.fullmatch("[!-~]+", text)))
_SIGNING = _SecretRule(
    f"at least {limits.WEBHOOK_SECRET_MIN_BYTES} bytes",
    lambda text: len(text.encode("utf-8", "surrogateescape")) >= limits.WEBHOOK_SECRET_MIN_BYTES,
)
# What the reference has and this version has not: variables, and the values of them that ask for nothing.
_LATER_VARIABLES: Mapping[str, tuple[str, frozenset[str]]] = {
    "AURA_ENABLE_A2A": ("A2A is", frozenset(("false", "0"))),
    "AURA_SESSION_STORE": ("a session store other than sqlite is", frozenset(("sqlite",))),
}


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How a gateway's process is to be run. Times are in milliseconds, 0 for no limit.

    `tool_result_max_length` counts characters, 0 for no limit; `streaming_buffer_size` counts frames. `agents` is the
    TOML file or directory. `hitl_secret` signs, `hitl_secret_secondary` is accepted beside it while secrets change.
    """

    host: str = "127.0.0.1"
    port: int = limits.GATEWAY_PORT
    agents: Path | None = None
    default_agent: str | None = None
    tool_result_mode: ToolResultMode = "none"
    tool_result_max_length: int = limits.TOOL_RESULT_MAX_CHARS
    streaming_buffer_size: int = limits.STREAMING_BUFFER_COUNT
    custom_events: bool = False
    emit_reasoning: bool = False
    streaming_timeout_ms: int = limits.STREAMING_TIMEOUT_MS
    first_chunk_timeout_ms: int = limits.FIRST_CHUNK_TIMEOUT_MS
    inactivity_timeout_ms: int = 0
    shutdown_timeout_ms: int = limits.SHUTDOWN_GRACE_MS
    debug_provider_errors: bool = False
    instance_id: str = ""
    api_key: Secret | None = None
    hitl_secret: Secret | None = None
    hitl_secret_secondary: Secret | None = None
    hitl_tolerance_ms: int = limits.WEBHOOK_TOLERANCE_S * 1000

    @property
    def signing(self) -> bool:
        """True when webhooks are signed, and decisions must be."""
        return self.hitl_secret is not None

    @property
    def is_loopback(self) -> bool:
        """True when nobody but this machine can reach `host`."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_gateway_options(flags: Mapping[str, Given], environ: Mapping[str, str]) -> GatewayOptions:
    """Return the options. `flags` has the values of flags by their names with underscores (`tool_result_mode`); None
    and absent are not given.

    A variable that is set and empty is not set, except for secrets: these are then an error. Without an instance id one
    is made. Raises `ConfigInvalid` naming the flag or variable, never the value of a secret; `TypeError` for a flag
    that there is not.
    """
    _refuse_later(environ)
    read, default = _Source(flags, environ), GatewayOptions()
    agents = read.find("CONFIG_PATH", _PATH, str, flag="agents")
    mode = read.get("TOOL_RESULT_MODE", Choice(TOOL_RESULT_MODES), str(default.tool_result_mode))
    options = GatewayOptions(
        host=read.get("HOST", _HOST, default.host),
        port=read.get("PORT", _PORT, default.port),
        agents=Path(agents) if agents is not None else None,
        default_agent=read.find("DEFAULT_AGENT", _AGENT, str),
        tool_result_mode=cast(ToolResultMode, mode),
        tool_result_max_length=read.get("TOOL_RESULT_MAX_LENGTH", _LENGTH, default.tool_result_max_length),
        streaming_buffer_size=read.get("STREAMING_BUFFER_SIZE", _FRAMES, default.streaming_buffer_size),
        custom_events=read.get("AURA_CUSTOM_EVENTS", _SWITCH, default.custom_events),
        emit_reasoning=read.get("AURA_EMIT_REASONING", _SWITCH, default.emit_reasoning),
        streaming_timeout_ms=read.milliseconds("STREAMING_TIMEOUT_SECS", default.streaming_timeout_ms),
        first_chunk_timeout_ms=read.milliseconds("FIRST_CHUNK_TIMEOUT_SECS", default.first_chunk_timeout_ms),
        inactivity_timeout_ms=read.milliseconds("STREAM_INACTIVITY_TIMEOUT_SECS", default.inactivity_timeout_ms),
        shutdown_timeout_ms=read.milliseconds("SHUTDOWN_TIMEOUT_SECS", default.shutdown_timeout_ms),
        debug_provider_errors=read.get("AURA_DEBUG_PROVIDER_ERRORS", _SWITCH, False, flag=""),
        instance_id=read.find("AURA_INSTANCE_ID", _INSTANCE, str, flag="") or uuid.uuid4().hex,
        api_key=_secret(environ, API_KEY_VARIABLE, _API_KEY),
        hitl_secret=_secret(environ, SIGNING_VARIABLES[0], _SIGNING),
        hitl_secret_secondary=_secret(environ, SIGNING_VARIABLES[1], _SIGNING),
        hitl_tolerance_ms=read.milliseconds(
            "AURA_HITL_WEBHOOK_TOLERANCE_SECS", default.hitl_tolerance_ms, _TOLERANCE, flag=""
        ),
    )
    read.check_flags()
    if options.hitl_secret is None and options.hitl_secret_secondary is not None:
        primary, secondary = SIGNING_VARIABLES
        raise ConfigInvalid(f"{secondary} is set and {primary} is not", hint=f"Set {primary}, too: it is what signs.")
    return options


class _Source:
    """Reads single options. A flag is called like its variable, in lower case, unless `flag` names it; "" is none."""

    def __init__(self, flags: Mapping[str, Given], environ: Mapping[str, str]) -> None:
        self._flags = flags
        self._environ = environ
        self._known: set[str] = set()

    def find(self, variable: str, reader: Reader, kind: type[T], flag: str | None = None) -> T | None:
        name = variable.lower() if flag is None else flag
        self._known.add(name)
        given: Given = self._flags.get(name)
        shown = f"--{name.replace('_', '-')}"
        if given is None:
            given = self._environ.get(variable) or None
            shown = variable
        return None if given is None else _read(given, reader, kind, shown)

    def get(self, variable: str, reader: Reader, default: T, flag: str | None = None) -> T:
        found = self.find(variable, reader, type(default), flag)
        return default if found is None else found

    def milliseconds(self, variable: str, default_ms: int, reader: Reader = _SECONDS, flag: str | None = None) -> int:
        return self.get(variable, reader, default_ms // 1000, flag) * 1000

    def check_flags(self) -> None:
        """Raise `TypeError` for a flag that nobody has asked for: a fault of the caller."""
        unknown = self._flags.keys() - self._known
        if unknown:
            raise TypeError(f"there are no flags named {', '.join(sorted(unknown))}")


def _read(given: str | int | bool, reader: Reader, kind: type[T], shown: str) -> T:
    try:
        value = reader.read(given)
    except Unacceptable as error:
        raise ConfigInvalid(f"{shown}: {error.problem}", hint=f"Use {reader.accepts}.") from None
    if not isinstance(value, kind):
        raise TypeError(f"{shown} is read as {type(value).__name__}, not {kind.__name__}")
    return value


def _secret(environ: Mapping[str, str], variable: str, rule: _SecretRule) -> Secret | None:
    text = environ.get(variable)
    if text is None:
        return None
    if not rule.accept(text):
        found = "it is set and empty" if not text else "it is set to another text"
        raise ConfigInvalid(f"{variable}: {found}", hint=f"Use {rule.what}, or unset it.")
    return Secret(text)


def _refuse_later(environ: Mapping[str, str]) -> None:
    for variable, (what, harmless) in _LATER_VARIABLES.items():
        text = environ.get(variable, "")
        if text and text.lower() not in harmless:
            raise ConfigInvalid(f"{variable}: {what} not supported yet", hint=f"Unset {variable}.")
