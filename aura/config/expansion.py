"""How variables get into texts that may hold secrets, whichever kind of file they stand in.

YAML files name them as `${NAME}` and are expanded key by key; the texts of TOML files have been interpolated already.
A reader of both is given an `Expand` and need not know which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aura.config.interpolation import inserted_variables
from aura.config.schema import Place

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Variables that a secret may use without being taken away from everybody else.
NEVER_SECRET = frozenset(("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"))


@dataclass(frozen=True, slots=True, repr=False)
class Expanded:
    """A text with its variables in it, and these with their values."""

    value: str
    variables: Mapping[str, str]


Expand: TypeAlias = Callable[[str, Place], Expanded]


def yaml_expand(environ: Mapping[str, str]) -> Expand:
    """Return a function that puts variables of `environ` into the text of a YAML file.

    It raises `ConfigInvalid` for one that is not set. A `$` without braces is an ordinary character.
    """

    def expand(text: str, place: Place) -> Expanded:
        names = dict.fromkeys(VARIABLE.findall(text))
        for name in names:
            if name not in environ:
                raise place.error(f"the variable {name} is not set", hint="Set it, or take it out.")
        return Expanded(VARIABLE.sub(lambda match: environ[match[1]], text), {name: environ[name] for name in names})

    return expand


def toml_expand(text: str, place: Place) -> Expanded:
    """Return what `interpolate` made of a text of a TOML file."""
    return Expanded(str(text), inserted_variables([text]))
