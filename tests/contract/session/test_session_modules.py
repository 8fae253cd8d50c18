"""Offline commands load no server, engine, provider, YAML or template module (DESIGN.md section 2)."""

from __future__ import annotations

import json
import sys

import pytest

FORBIDDEN = ("flask", "gevent", "marshmallow", "asyncio", "aura.engine", "yaml", "jinja2", "openai", "waitress", "rich")

WATCH = f"""
import json, sys
from aura.cli.main import main
code = main(sys.argv[1:])
loaded = [name for name in {FORBIDDEN!r} if name in sys.modules]
print(json.dumps([code, loaded]), file=sys.stderr)
"""


@pytest.mark.requirement("process.offline-commands")
@pytest.mark.parametrize(
    "words",
    [
        ("list", "--json"),
        ("list",),
        ("show", "task-1"),
        ("import", "out.json", "--id", "again"),
        ("export", "task-1", "--output", "other.json"),
        ("fork", "task-1", "--id", "child"),
        ("freeze", "task-1"),
        ("show", "nope", "--json"),
    ],
    ids=" ".join,
)
def test_an_offline_command_loads_nothing_that_it_does_not_need(program, imported, words):
    program.json("export", "task-1", "--output", "out.json")
    flags = ["--home", "", "--config", str(program.home)]
    done = program.run_command([sys.executable, "-c", WATCH, *flags, "session", *words])
    code, loaded = json.loads(done.error_lines[-1])
    assert code == (1 if "nope" in words else 0), done
    assert loaded == []


def test_the_list_of_commands_loads_none_of_them(program):
    watch = (
        "import sys; from aura.cli.main import main; main(['--help']); print([n for n in sys.modules if 'aura.' in n])"
    )
    done = program.run_command([sys.executable, "-c", watch])
    assert "aura.cli.root" in done.text
    assert not [name for name in ("aura.cli.session", "aura.store", "aura.runtime.library") if f"'{name}'" in done.text]
