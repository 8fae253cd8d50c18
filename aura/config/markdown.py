"""Splits a Markdown file into its frontmatter, as YAML, and its body. It knows no key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aura.config.files import read_text
from aura.config.yaml_text import Tree, parse_yaml
from aura.errors import ConfigInvalid

_OPENERS = frozenset({"---", "---yaml", "--- yaml"})
_HINT = "Begin the file with a line ---, the keys as YAML, and another line ---; the text follows."


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """A file with frontmatter. `body` has no white space around it and may be empty."""

    path: Path
    frontmatter: Tree
    body: str


def read_markdown(path: Path) -> MarkdownFile:
    """Return the parts of a Markdown file (engine.md appendix K).

    Raises `ConfigInvalid` naming the file when it cannot be read, is not UTF-8, or has no frontmatter of valid YAML.
    """
    lines = read_text(path).split("\n")
    if lines[0].rstrip() not in _OPENERS:
        raise ConfigInvalid(f"{path}:1: the frontmatter is missing", hint=_HINT)
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            frontmatter = parse_yaml("\n".join(lines[1:index]), path, first_line=2)
            return MarkdownFile(path, frontmatter, "\n".join(lines[index + 1 :]).strip())
    raise ConfigInvalid(f"{path}:1: the frontmatter is not closed", hint=_HINT)
