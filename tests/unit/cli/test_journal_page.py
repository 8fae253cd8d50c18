"""docs/journal.md: its program computes the head, and its tables name what there is."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import click

from aura.cli.evidence import command as evidence
from aura.cli.journal import COMMANDS
from aura.runtime.bundle import MEMBERS
from aura.store.journals import GENESIS_HASH
from tests.support.samples import journal

DOCS = Path(__file__).parents[3] / "docs"


def test_the_program_of_the_page_prints_the_head_of_a_journal(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python example=head\n(.*?)```", (DOCS / "journal.md").read_text(), re.DOTALL)
    head = GENESIS_HASH
    for line in journal():
        head = hashlib.sha256(head + line.text).digest()
    file = tmp_path / "j.jsonl"
    file.write_bytes(b"".join(line.text + b"\n" for line in journal()))
    words = [sys.executable, "-c", program, str(file)]
    done = subprocess.run(words, capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().strip() == head.hex()


def test_the_page_names_the_members_of_a_bundle() -> None:
    page = (DOCS / "journal.md").read_text()
    assert [name for name in MEMBERS if f"| `{name}` |" not in page] == []


def test_the_command_page_names_every_command_and_option() -> None:
    page = (DOCS / "cli.md").read_text()
    section = page[page.index("## aura journal") : page.index("## aura store")]
    commands = {**{name: entry.load() for name, entry in COMMANDS.items()}, "evidence export": evidence}
    for name, command in {**commands, **{f"evidence {key}": value for key, value in evidence.commands.items()}}.items():
        assert f"`{name.split()[-1]}" in section, name
        options = [param for param in command.params if isinstance(param, click.Option)]
        missing = [option.opts[-1] for option in options if option.opts[-1] not in section]
        assert missing == [], name
