"""The tool policy of the configuration and the approvals of the session (engine.md 6.4).

Matching is on strings and easily got around (`x; rm y`): it is a convenience for people, not a boundary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aura.conversation import Call
from aura.engine.gates.base import Allow, Ask, Decision, GateContext, Refuse
from aura.engine.history import History
from aura.jsontypes import JsonValue

_APPROVALS = "session_approvals"
# Commands whose second word says what they do.
_TWO_WORDS = frozenset(
    ("git", "npm", "npx", "yarn", "pnpm", "docker", "kubectl", "go", "cargo", "pip", "gem", "mix", "make")
)


def decide(call: Call, context: GateContext) -> Decision:
    """Deny beats everything; a confirm asks unless an auto pattern or a session approval matches or `auto` is on."""
    argument = _find_argument(call, context)
    policy = context.spec.policy
    denied = find_match(policy.deny, call.name, argument)
    if denied is not None:
        return Refuse("denied", f"{call.name} is denied by policy ({denied})")
    confirmed = find_match(policy.confirm, call.name, argument)
    if (
        confirmed is None
        or context.auto
        or find_match((*policy.auto, *_approvals(context.history)), call.name, argument) is not None
    ):
        return Allow()
    return Ask(f"the policy wants a confirmation ({confirmed})", derive_pattern(call.name, argument))


def find_match(patterns: Iterable[str], name: str, argument: str | None) -> str | None:
    """Return the first pattern that matches a call of tool `name`; `Name:argument` needs an argument to match."""
    return next((pattern for pattern in patterns if _matches(pattern, name, argument)), None)


def derive_pattern(name: str, argument: str | None) -> str | None:
    """Return what "for this session" approves: the command's first words, the path's directory, else the tool.

    None when the pattern would hold a `*` of the call's own: it would approve more than anybody looked at.
    """
    if not argument or not argument.strip():
        return name
    if name == "Bash":
        words = argument.split()
        prefix = " ".join(words[:2] if words[0] in _TWO_WORDS else words[:1])
        return None if "*" in prefix else f"{name}:{prefix}*"
    directory, slash, _ = argument.rpartition("/")
    if "*" in argument:
        return None
    return f"{name}:{directory}/*" if slash else f"{name}:{argument}"


def approve(history: History, pattern: str) -> None:
    """Make `pattern` an approval of the session; it is saved with the session's meta."""
    history.meta[_APPROVALS] = {**dict.fromkeys(_approvals(history), True), pattern: True}


def _approvals(history: History) -> list[str]:
    stored = history.meta.get(_APPROVALS)
    return [pattern for pattern, on in stored.items() if on is True] if isinstance(stored, Mapping) else []


def _find_argument(call: Call, context: GateContext) -> str | None:
    if context.tool.path_parameter is None:
        return None
    value: JsonValue = call.arguments.get(context.tool.path_parameter)
    return value if isinstance(value, str) else ""


def _matches(pattern: str, name: str, argument: str | None) -> bool:
    name_part, colon, argument_part = pattern.partition(":")
    if not _glob(name_part, re.NOFLAG).fullmatch(name):
        return False
    if not colon:
        return True
    return argument is not None and _glob(argument_part, re.DOTALL).fullmatch(argument) is not None


def _glob(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), flags)
