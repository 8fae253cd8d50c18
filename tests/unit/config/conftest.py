"""Fixtures of the configuration tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.config.home import Home
from tests.unit.config.toml_kit import TomlFolder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / ".aura")


@pytest.fixture
def make_home(tmp_path: Path) -> Callable[[str], Home]:
    return lambda name: Home(tmp_path / name)


@pytest.fixture
def folder(tmp_path: Path) -> TomlFolder:
    return TomlFolder(tmp_path / "agents")
