"""The table of error codes has what the program raises, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import aura
from aura import errors
from aura.engine.providers import base
from aura.runtime.ready import STARTUP_CODES
from aura.wire.codes import CODES
from aura_automation.codes import BY_CODE

PACKAGE = Path(aura.__file__).parent


def error_classes() -> set[type[errors.AuraError]]:
    classes = {errors.AuraError}
    for item in vars(errors).values():
        if isinstance(item, type) and issubclass(item, errors.AuraError):
            classes.add(item)
    return classes


def literal_run_codes() -> Iterator[str]:
    """Yield the code of each `RunError("…", …)` that stands in the program."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            if getattr(node.func, "id", getattr(node.func, "attr", "")) == "RunError":
                yield str(node.args[0].value)


def test_each_error_class_has_a_row_with_its_status() -> None:
    assert len(error_classes()) > 20
    for kind in error_classes():
        row = CODES[kind.code]
        assert row.http_status in (None, kind.http_status), kind
        assert row.retryable == kind.retryable, kind


def test_a_row_has_a_status_iff_it_is_an_http_answer() -> None:
    assert {row.name for row in CODES.values() if (row.http_status is not None) != ("http" in row.places)} == set()


def test_each_code_that_a_run_can_end_with_has_a_row() -> None:
    made = {*literal_run_codes(), *base._CODES.values()}
    assert {"input_rejected", "cancelled", "max_steps", "provider_auth"} <= made
    assert made <= {row.name for row in CODES.values() if "run" in row.places}


def test_a_run_with_a_code_ends_in_a_way_unless_it_is_lost() -> None:
    rows = [row for row in CODES.values() if "run" in row.places]
    assert {row.name for row in rows if row.outcome is None} == {"server_lost"}


def test_the_codes_of_start_up_are_those_of_the_ready_file() -> None:
    listed = {row.name for row in CODES.values() if "start-up" in row.places}
    assert {name for name in listed if not name.startswith("provider_")} == STARTUP_CODES


def test_the_client_knows_the_same_codes() -> None:
    assert set(CODES) == set(BY_CODE)
