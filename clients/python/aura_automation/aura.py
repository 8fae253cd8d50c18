"""How to invoke the aura program. It describes and starts nothing; `store` and `_launch` do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TOKEN_VARIABLE: Final = "AURA_SERVE_TOKEN"


@dataclass(frozen=True, slots=True)
class Aura:
    """The program, its root flags, the workspace and the environment.

    `binary` is looked up on PATH, or, with a slash in it, taken against this process's directory. `args` are
    root flags such as `["--home", "", "--config", str(home)]`. `cwd` is the workspace (None: this process's
    directory). `env` is the whole environment of the program (None: this process's). The environment is not
    shown by `repr`.
    """

    binary: str | os.PathLike[str]
    args: Sequence[str] = ()
    cwd: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | None = field(default=None, repr=False)

    def command(self, *words: str) -> list[str]:
        """Return the argument vector of the program with `words` after its root flags."""
        binary = os.fspath(self.binary)
        if os.sep in binary:
            binary = str(Path(binary).absolute())
        return [binary, *self.args, *words]

    def environment(self, token: str | None = None) -> dict[str, str]:
        """Return the child's environment, with the server's token only if it is given."""
        variables = dict(os.environ if self.env is None else self.env)
        variables.pop(TOKEN_VARIABLE, None)
        if token is not None:
            variables[TOKEN_VARIABLE] = token
        return variables
