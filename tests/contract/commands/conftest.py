"""A real server with two agents and a custom command, and a way to type commands at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aura_automation import Run
from tests.support.serving import Running, Site


class Typist:
    """Submits commands to one server after another, each under a request id of its own."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.count = 0
        self.server: Running

    def launch(self, resume: str | None = None, *flags: str) -> Running:
        """Start a server, which commands go to from now on."""
        self.server = self.site.launch(resume, flags=flags)
        return self.server

    def submit(self, command: str) -> Run:
        """Submit a command."""
        self.count += 1
        return self.server.client.submit(f"command-{self.count}", command=command)

    def run(self, command: str) -> Run:
        """Run a command to its terminal record."""
        return self.server.wait(self.submit(command).id)

    def ok(self, command: str) -> str:
        """Run a command that must work; return its result."""
        run = self.run(command)
        assert (run.kind, run.state, run.outcome, run.error) == ("command", "persisted", "completed", None)
        assert run.result is not None
        return run.result.content

    def fails(self, command: str) -> str:
        """Run a command that must fail; return its error."""
        run = self.run(command)
        assert (run.kind, run.state, run.outcome, run.result) == ("command", "persisted", "failed", None)
        assert run.error is not None
        assert (run.error.code, run.error.retryable) == ("command_failed", False)
        return run.error.message


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The agents main and Helper, a model of two names, the custom command Review; its processes end with the test."""
    made = Site(tmp_path)
    made.write("config/agents/helper.md", "---\nname: Helper\nmodel: {provider: script, name: second}\n---\nHelp.\n")
    made.write("config/commands/review.md", "---\nname: Review\nhints: FILE\n---\nReview $1.\n")
    made.script({"content": "You said: {{ last }}", "repeat": "forever"}, models=["scripted", "second"])
    yield made
    made.end()


@pytest.fixture
def typist(site: Site) -> Typist:
    """Types commands at servers of the site."""
    return Typist(site)
