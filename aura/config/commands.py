"""Custom commands: `config/commands/**.md` to `CommandSpec` (engine.md 1.4). It does not know the built-in ones.

The body is a message with places for arguments. Filling them in is the runtime's business.
"""

from __future__ import annotations

import re
from pathlib import Path

from aura import limits
from aura.config.files import MARKDOWN_SUFFIXES, list_files
from aura.config.markdown import read_markdown
from aura.config.readers import Text
from aura.config.schema import Place, Table, read_settings
from aura.config.spec import CommandSpec

_NAME_MAX = limits.CONFIG_NAME_MAX_CHARS
_WORD = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.:-]{{0,{_NAME_MAX - 1}}}")
COMMAND_TABLE: Table = {
    "name": Text(f"one word of at most {_NAME_MAX} letters, digits and _ . : -, without the slash", _WORD),
    "description": Text(),
    "hints": Text(),
}


def read_commands(home: Path) -> dict[str, CommandSpec]:
    """Return the commands of one home by lower-cased name, without the slash.

    Raises `ConfigInvalid` for a bad file, key or value, and for two commands with one name.
    """
    found: dict[str, CommandSpec] = {}
    for path in list_files(home, "commands", MARKDOWN_SUFFIXES):
        file = read_markdown(path)
        place = Place(path, file.frontmatter.line)
        settings = read_settings(file.frontmatter, COMMAND_TABLE, place)
        name = settings.find("name", str)
        if name is None:
            raise place.error("the key name is missing", hint="Add a line such as name: review.")
        command = CommandSpec(name, file.body, path, settings.get("description", ""), settings.get("hints", ""))
        first = found.setdefault(name.lower(), command)
        if first is not command:
            problem = f"{first.source} has a command named {first.name} already"
            raise settings.place("name", place).error(problem, hint="Rename one of the two.")
    return found
