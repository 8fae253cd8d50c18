"""Both wheels, built from this checkout and installed into a fresh environment; then the contract's example, as
written.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = ("aura", "clients", "setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
TIMEOUT_S = 240

# contract.md, "Python client". Only what it takes for granted is defined around it.
SNIPPET = """
from aura_automation import Aura, Server, Store

aura = Aura(binary=binary, args=["--home", "", "--config", ".aura", "--config", str(home)], cwd=workspace, env=env)
Store(aura).fork("baseline", "task-1")
handle = Server.launch(aura, ready_file=ready, token=token, resume="task-1")
with handle.client() as client:
    run = client.submit("task-1:author:1", prompt=assignment)
    final = client.wait(run.id, on_event=mirror, stop=should_stop)
handle.stop()
"""
BEFORE = """
import json, os, sys
from pathlib import Path

root = Path(sys.argv[1])
binary, home, workspace, ready = Path(sys.prefix) / "bin" / "aura", root / "home", root / "work", root / "ready.json"
env, token, assignment = dict(os.environ), "t" * 40, "Say what the tool says."
events = []
mirror, should_stop = events.append, lambda: False
"""
AFTER = """
modules = sorted(name for name in sys.modules if name == "aura" or name.startswith("aura."))
print(json.dumps({
    "types": [event.type for event in events if event.type != "status"],
    "outcome": final.outcome, "state": final.state, "content": final.result.content, "session": final.session_id,
    "revision": Store(aura).show("task-1").revision, "persisted": final.persisted.revision,
    "events": len(events), "modules": modules,
}))
"""
MAIN = "---\nname: main\ndefault: true\nmodel: {provider: script, name: scripted}\n---\nYou are a careful assistant.\n"
PROVIDER = "script: {type: script, file: script.yaml}\n"
SCRIPT = """
turns:
  - calls: [{id: call_1, name: Bash, arguments: {command: "echo a tool"}}]
  - content: "It says: {{last}}"
"""


@dataclass(frozen=True)
class Installed:
    """An environment that has the two wheels and what they need, and nothing of this checkout."""

    folder: Path

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        return run((self.folder / "bin" / command[0], *command[1:]), cwd)


def run(command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AURA_", "PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build both wheels from a copy of the sources and install them with their dependencies."""
    folder = tmp_path_factory.mktemp("wheels")
    source = folder / "source"
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
    for name in SOURCES:
        origin = CHECKOUT / name
        if origin.is_dir():
            shutil.copytree(origin, source / name, ignore=ignored)
        else:
            shutil.copy(origin, source / name)
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder / "dist")
    run((*build, source, source / "clients" / "python"), folder)
    wheels = sorted((folder / "dist").glob("*.whl"))
    assert len(wheels) == 2
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    pip = (folder / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run((*pip, "install", "--quiet", "-c", CHECKOUT / "constraints.txt", *wheels), folder)
    run((*pip, "check"), folder)
    return Installed(folder / "venv")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with the smallest configuration in `.aura`, and an imported session `baseline` in the write home."""
    config = tmp_path / "work" / ".aura"
    for name, text in (
        ("config/agents/main.md", MAIN),
        ("config/providers/script.yaml", PROVIDER),
        ("script.yaml", SCRIPT),
    ):
        path = config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    at = "2026-01-01T00:00:00.000Z"
    messages = [{"Role": "user", "Content": "Remember me."}, {"Role": "assistant", "Content": "I do."}]
    document = {"messages": messages, "id": "baseline", "title": "", "created_at": at, "updated_at": at}
    (tmp_path / "baseline.json").write_text(json.dumps(document))
    return tmp_path / "work"


@pytest.mark.requirement("client.wheel", "client.end-to-end")
def test_the_contracts_example_works_as_written(installed: Installed, workspace: Path) -> None:
    root = workspace.parent
    flags = ("--home", "", "--config", str(root / "home"))
    installed.run("aura", *flags, "session", "import", str(root / "baseline.json"), cwd=root)
    (root / "example.py").write_text(dedent(BEFORE) + SNIPPET + dedent(AFTER))
    told = json.loads(installed.run("python", str(root / "example.py"), str(root), cwd=root).stdout)
    assert (told["outcome"], told["state"], told["content"]) == ("completed", "persisted", "It says: a tool\n")
    assert told["session"] == "task-1"
    assert told["revision"] == told["persisted"]
    assert told["types"] == [
        "run.accepted",
        "message.user",
        "run.started",
        "message.assistant",
        "tool.started",
        "tool.finished",
        "session.persisted",
        "message.assistant",
        "run.finished",
        "session.persisted",
        "run.persisted",
    ]
    assert told["modules"] == [], "the client imports nothing of the program"
    listed = json.loads(installed.run("aura", *flags, "session", "list", "--json", cwd=root).stdout)
    assert {summary["id"]: summary["messages"] for summary in listed["sessions"]} == {"baseline": 2, "task-1": 6}


def test_the_program_runs_from_its_wheel(installed: Installed, workspace: Path) -> None:
    assert installed.run("aura", "--version", cwd=workspace).stdout.startswith("aura ")
    home = str(workspace / ".aura")
    done = installed.run("aura", "--home", "", "--config", home, "run", "Say what the tool says.", cwd=workspace)
    assert done.stdout == "It says: a tool\n"
