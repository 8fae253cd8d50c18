"""schemathesis against a live server: whatever is sent, an answer fits the OpenAPI document and is no server error.

`AURA_SCHEMATHESIS_CASES` is how many generated cases there are in all; a few, the same each time, by default. Streams
and shutdown are left out: they have tests of their own.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS
from schemathesis.config import SchemathesisConfig

from aura.wire.openapi import automation_document
from tests.support.raw_server import Served, wait_for

LEFT_OUT = ("/v1/events", "/v1/shutdown")
OPERATIONS_COUNT = 9
CASES = os.environ.get("AURA_SCHEMATHESIS_CASES")
PER_OPERATION = -(-int(CASES or 270) // OPERATIONS_COUNT)
WAIT_MAX_S = 1
SETTINGS = settings(
    max_examples=PER_OPERATION,
    derandomize=CASES is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
# Rules beyond JSON Schema, such as which commands there are, make a well-formed body a bad request.
RULES_BEYOND_THE_SCHEMA = frozenset(("submitRun", "answerInput", "findRun"))

CONFIG = SchemathesisConfig.from_dict({"generation": {"with-security-parameters": False}})
SCHEMA = schemathesis.openapi.from_dict(automation_document(), config=CONFIG).exclude(path=list(LEFT_OUT))


class Targets:
    """Things of a live server that generated requests are aimed at: random ids would only ever be unknown."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.answers: Counter[tuple[str, int]] = Counter()
        self._settled = served.run("hello")["id"]
        self._asking: tuple[str, str] | None = None

    def aim(self, case: Any) -> None:
        """Let about half of the cases mean things that exist, and no long-poll last long."""
        name = case.operation.definition.raw["operationId"]
        if name != "answerInput":
            self._end_question()
        if name == "submitRun" and case.meta.generation.mode.is_positive:
            self._make_acceptable(case.body)
        parameters = case.path_parameters
        if parameters and zlib.crc32(repr(parameters).encode()) % 2:
            if name == "answerInput":
                parameters["run_id"], parameters["input_id"] = self._question()
            else:
                parameters["run_id"] = self._settled
        query = case.query or {}
        if str(query.get("wait", "")).isdecimal() and WAIT_MAX_S < int(query["wait"]) <= 60:
            query["wait"] = WAIT_MAX_S

    def _make_acceptable(self, body: dict[str, str]) -> None:
        """Let a well-formed body hold to the rules beyond the schema, so that it becomes a run."""
        body["request_id"] = "".join(filter(str.isprintable, body["request_id"])) or "r"
        if "command" in body:
            body["command"] = "/stats"
        wait_for(lambda: self.served.get("/v1/session").json["run"] is None, "no run is live")

    def _question(self) -> tuple[str, str]:
        if self._asking is not None and not self.served.get(f"/v1/runs/{self._asking[0]}").json["terminal"]:
            return self._asking
        wait_for(lambda: self.served.get("/v1/session").json["run"] is None, "no run is live")
        after = self.served.last_seq()
        run_id = self.served.submit("ask", on_input="wait")["id"]
        self._asking = run_id, self.served.wait_event("input.required", after)["data"]["input_id"]
        return self._asking

    def _end_question(self) -> None:
        if self._asking is not None:
            run_id, self._asking = self._asking[0], None
            self.served.finish(self.served.post(f"/v1/runs/{run_id}/cancel").json)


@pytest.fixture(scope="module")
def targets(served: Served) -> Iterator[Targets]:
    made = Targets(served)
    yield made
    print(f"\n{made.answers.total()} cases: {dict(sorted(made.answers.items()))}")


@SCHEMA.parametrize()
@SETTINGS
def test_every_answer_fits_the_document(case: schemathesis.Case, targets: Targets) -> None:
    targets.aim(case)
    excluded = []
    if case.operation.definition.raw["operationId"] in RULES_BEYOND_THE_SCHEMA:
        excluded = CHECKS.get_by_names(["positive_data_acceptance"])
    response = case.call_and_validate(
        base_url=f"http://127.0.0.1:{targets.served.port}", headers=targets.served.headers, excluded_checks=excluded
    )
    targets.answers[case.operation.definition.raw["operationId"], response.status_code] += 1


def test_all_operations_but_those_left_out_are_tried() -> None:
    tried = {item.ok().definition.raw["operationId"] for item in SCHEMA.get_all_operations()}
    assert len(tried) == OPERATIONS_COUNT
    assert not tried & {"streamEvents", "shutDown"}
