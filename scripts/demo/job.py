"""The job on disk: a fresh directory with a small project, a config home and an environment for the program.

It lays them out and runs the project's test itself, because it believes no agent. It starts no server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from problem import Problem

DEMO = Path(__file__).resolve().parent
CHECKOUT = DEMO.parent.parent
TEST_TIMEOUT_S = 30  # the test takes a tenth of a second; an agent's change may make it loop


@dataclass(frozen=True, slots=True)
class TestResult:
    """How the project's test went: `summary` is unittest's last line."""

    passed: bool
    summary: str


@dataclass(frozen=True, slots=True)
class Job:
    """The directory of one demonstration. The store is in `home`, out of the workspace in which the agent may write."""

    root: Path

    @property
    def workspace(self) -> Path:
        """Where the agent works."""
        return self.root / "workspace"

    @property
    def home(self) -> Path:
        """The config home, which is the write home too: an `aura` started in `root` finds it by itself."""
        return self.root / ".aura"

    @property
    def database(self) -> Path:
        """The one file that everything is in."""
        return self.home / "sessions" / "aura.db"

    @property
    def log(self) -> Path:
        """Where the server's own output goes."""
        return self.root / "server.log"

    def run_test(self) -> TestResult:
        """Run the project's test as anybody would. Raises `Problem` when it was changed since it was laid out."""
        name = "test_slug.py"
        if _read(self.workspace / name) != _read(DEMO / "workspace" / name):
            raise Problem(f"the agent changed {name}, so its result proves nothing", hint="Look at the workspace.")
        command = [sys.executable, "-m", "unittest"]
        try:
            done = subprocess.run(
                command,
                cwd=self.workspace,
                env=environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TEST_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return TestResult(False, f"it ran for over {TEST_TIMEOUT_S} s")
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        return TestResult(done.returncode == 0, next((line for line in reversed(lines) if line.strip()), "no output"))

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.root, ignore_errors=True)


def lay_out() -> Job:
    """Make the job's directory, never inside the checkout. Raises `Problem`."""
    temporary = Path(tempfile.gettempdir()).resolve()
    if temporary.is_relative_to(CHECKOUT):
        raise Problem(f"the temporary directory {temporary} is in the checkout", hint="Set TMPDIR to another one.")
    try:
        job = Job(Path(tempfile.mkdtemp(prefix="aura-quickstart-", dir=temporary)))
        shutil.copytree(DEMO / "workspace", job.workspace, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(DEMO / "home", job.home)
    except OSError as error:
        raise Problem(f"the job's directory cannot be made: {error}", hint="Set TMPDIR to another place.") from error
    return job


def environment() -> dict[str, str]:
    """Return the environment of all children: the caller's, without settings that would change what is shown."""
    kept = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    commands = Path(sys.executable).parent
    kept["PATH"] = f"{commands}{os.pathsep}{kept.get('PATH', os.defpath)}"
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept


def _is_setting(name: str) -> bool:
    return name.startswith("AURA_") and name != "AURA_MODEL_TOKEN"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
