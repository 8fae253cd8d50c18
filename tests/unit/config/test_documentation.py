"""The examples of docs/configuration.md are valid configurations, and its tables name every key."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from aura.config.agents import AGENT_TABLE
from aura.config.commands import COMMAND_TABLE
from aura.config.features import FEATURES_TABLE, SERVER_FEATURES_TABLE
from aura.config.homes import Homes
from aura.config.mcp import MCP_TABLES
from aura.config.resolve import get_agent, load_configuration
from aura.config.schema import Later, Table

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
FENCE = re.compile(r"^```\w+ example=(\w+) file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> Mapping[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name, file, text in FENCE.findall(PAGE.read_text()):
        found[name][file] = text
    return found


def leaves(table: Table, prefix: str = "") -> Iterator[str]:
    for name, rule in table.items():
        if isinstance(rule, Mapping):
            yield from leaves(rule, f"{prefix}{name}.")
        elif not isinstance(rule, Later):
            yield f"{prefix}{name}"


def test_the_page_has_the_examples_that_are_tested() -> None:
    assert {name: len(files) for name, files in examples().items()} == {"smallest": 2, "full": 7}


@pytest.mark.parametrize(("name", "agents"), [("smallest", ["main"]), ("full", ["base", "worker"])])
def test_an_example_is_a_valid_configuration(tmp_path: Path, name: str, agents: list[str]) -> None:
    for file, text in examples()[name].items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environ = {"LOCAL_TOKEN": "x", "TICKETS_TOKEN": "y"}
    configuration = load_configuration(Homes((tmp_path,), tmp_path, tmp_path), environ)
    assert list(configuration.agents) == agents
    assert configuration.notices == ()
    assert get_agent(configuration, None).name == {"smallest": "main", "full": "Worker"}[name]


def test_every_key_is_on_the_page() -> None:
    text = PAGE.read_text()
    keys = [
        *leaves({key: rule for key, rule in AGENT_TABLE.items() if key != "features"}),
        *leaves(FEATURES_TABLE),
        *leaves(SERVER_FEATURES_TABLE),
    ]
    keys += [key for table in MCP_TABLES.values() for key in leaves(table)]
    keys += leaves(COMMAND_TABLE)
    assert len(keys) > 30
    missing = [key for key in keys if f"`{key}`" not in text and f"`{key.rsplit('.', 1)[-1]}`" not in text]
    assert missing == []
