"""What the provider tests share: a scope without a clock, a collector of deltas, a way to write script files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aura.conversation import Message
from aura.engine.io import IoThread
from aura.engine.providers.base import Request
from aura.engine.providers.script import ScriptProvider
from aura.engine.providers.script_file import read_script
from aura.engine.scope import Scope


class SilentAlarm:
    """An alarm that never goes off: these tests set no deadline."""

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> SilentAlarm:
        return self

    def cancel(self) -> None:
        return None


class ClocklessScope(Scope):
    """A scope whose sleeps take no time and are noted. `during_sleep` runs in each of them."""

    def __init__(self) -> None:
        super().__init__(SilentAlarm())
        self.slept_ms: list[int] = []
        self.during_sleep: Callable[[], object] = lambda: None

    def sleep(self, delay_ms: int) -> None:
        self.slept_ms.append(delay_ms)
        self.during_sleep()
        self.check()


class Deltas:
    """Collects what a provider streams."""

    def __init__(self) -> None:
        self.all: list[tuple[str, bool]] = []

    def __call__(self, text: str, thinking: bool) -> None:
        self.all.append((text, thinking))

    @property
    def content(self) -> list[str]:
        return [text for text, thinking in self.all if not thinking]

    @property
    def thinking(self) -> list[str]:
        return [text for text, thinking in self.all if thinking]


@pytest.fixture
def scope() -> ClocklessScope:
    return ClocklessScope()


@pytest.fixture
def deltas() -> Deltas:
    return Deltas()


@pytest.fixture
def io() -> Iterator[IoThread]:
    thread = IoThread()
    yield thread
    thread.close()


@pytest.fixture
def write_script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "script.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def script(write_script: Callable[[str], Path]) -> Callable[[str], ScriptProvider]:
    return lambda text: ScriptProvider(read_script(write_script(text)))


@pytest.fixture
def ask() -> Callable[..., Request]:
    """Return a factory of requests whose conversation is (role, text) pairs."""

    def make(*messages: tuple[str, str], model: str = "scripted") -> Request:
        return Request(model, "You are careful.", [Message(role, text) for role, text in messages])  # type: ignore[arg-type]

    return make
