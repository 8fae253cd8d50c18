"""Which directories configuration is read from, and which one state is written to (engine.md 1.1).

It looks at directories, never into them, and makes none. Offline commands need nothing else of the configuration, so
it imports neither a YAML reader nor a template engine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aura.errors import ConfigInvalid

HOME_VARIABLE = "AURA_HOME"
CONFIG_VARIABLE = "AURA_CONFIG"
HOME_NAME = ".aura"
_HINT = f"Name a directory with --config DIR or --home DIR, or make the directory {HOME_NAME} here."


@dataclass(frozen=True, slots=True)
class Homes:
    """Where configuration is read from, in order, and where state is written (engine.md 1.1). All are absolute.

    `global_home` is `--home`, None when there is none. `write_home` need not exist yet.
    """

    layers: tuple[Path, ...]
    write_home: Path
    launch_dir: Path
    global_home: Path | None = None

    @property
    def store_dir(self) -> Path:
        """The directory of the database and the locks."""
        return self.write_home / "sessions"


def resolve_homes(home: str | None, config: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Homes:
    """Return the config homes in load order and the write home, all absolute.

    `home` is `--home`, None when the flag was not given; "" disables the global home. `config` are the values of
    `--config`, empty when the flag was not given; each may hold several, separated by commas. Flags win over
    `AURA_HOME` and `AURA_CONFIG`, these over the defaults: `~/.aura` and `.aura`, where they exist. `cwd` is the launch
    directory, absolute: relative entries are relative to it.

    The write home is the last non-empty `--config`, else `--home`; it need not exist. Any thread may call this.

    Raises `ConfigInvalid` when there is no home at all, and when a home is missing or not a directory.
    """
    global_home = _global_home(home, environ, cwd)
    projects = _projects(config, environ, cwd)
    if not projects and global_home is None:
        raise ConfigInvalid("there is no configuration directory", hint=_HINT)
    layers = tuple(dict.fromkeys(([] if global_home is None else [global_home]) + projects))
    write_home = projects[-1] if projects else layers[0]
    for layer in layers:
        _check(layer, may_be_missing=layer == write_home)
    return Homes(layers=layers, write_home=write_home, launch_dir=cwd, global_home=global_home)


def _global_home(flag: str | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    text = flag if flag is not None else environ.get(HOME_VARIABLE)
    if text is not None:
        return _absolute(text, environ, cwd) if text else None
    user_home = environ.get("HOME", "")
    default = Path(user_home) / HOME_NAME
    return default if user_home and default.is_dir() else None


def _projects(flags: Sequence[str], environ: Mapping[str, str], cwd: Path) -> list[Path]:
    given = list(flags)
    if not given and CONFIG_VARIABLE in environ:
        given = [environ[CONFIG_VARIABLE]]
    if given:
        entries = [entry for text in given for entry in text.split(",") if entry]
        return [_absolute(entry, environ, cwd) for entry in entries]
    default = cwd / HOME_NAME
    return [default] if default.is_dir() else []


def _absolute(text: str, environ: Mapping[str, str], cwd: Path) -> Path:
    if "\0" in text:
        raise ConfigInvalid("a configuration directory's name holds a NUL character", hint=_HINT)
    user_home = environ.get("HOME", "")
    if user_home and (text == "~" or text.startswith("~/")):
        text = user_home + text[1:]
    return Path(os.path.normpath(cwd / text))


def _check(home: Path, *, may_be_missing: bool) -> None:
    try:
        home.stat()
    except (FileNotFoundError, NotADirectoryError):
        if may_be_missing:
            return
        raise ConfigInvalid(f"the configuration directory {home} does not exist", hint=_HINT) from None
    except OSError as error:
        raise ConfigInvalid(f"the configuration directory {home} cannot be read: {error.strerror}") from error
    if not home.is_dir():
        raise ConfigInvalid(f"{home} is not a directory", hint=_HINT)
