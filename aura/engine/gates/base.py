"""What a gate is: a check between a call and its execution (SHAPES.md section 3). Gates run one after another.

A gate looks and decides; it does not run the tool, ask anybody, or emit anything. One that raises counts as a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aura.config.spec import ToolsSpec
from aura.conversation import Call
from aura.engine.history import History
from aura.engine.tools.base import ToolSpec
from aura.engine.tools.reads import ReadTracker
from aura.jsontypes import JsonObject

RefusalKind = Literal["not_read", "denied", "blocked", "unsafe"]


@dataclass(frozen=True, slots=True)
class GateContext:
    """What a gate may look at. `rewritten`: a gate has changed the arguments of this call already. `auto`: nobody is
    asked.
    """

    tool: ToolSpec
    spec: ToolsSpec
    workdir: Path
    environment: Mapping[str, str]
    reads: ReadTracker
    history: History
    rewritten: bool = False
    auto: bool = False


@dataclass(frozen=True, slots=True)
class Allow:
    """Nothing against the call."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The call may go on with other arguments, which are validated and pass all gates again. Once per call."""

    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call is not run; the model is told `text`."""

    kind: RefusalKind
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must agree. `pattern`: what "for this session" would approve, None when nothing sensible would."""

    reason: str
    pattern: str | None


@dataclass(frozen=True, slots=True)
class Stop:
    """The call is not run and the whole run ends, `blocked` by policy."""

    reason: str


Decision = Allow | Rewrite | Refuse | Ask | Stop


@dataclass(frozen=True, slots=True)
class Gate:
    """A named check. The name is for people."""

    name: str
    decide: Callable[[Call, GateContext], Decision]
