"""What is wrong between the requirements and the tests that name them. It reads nothing: both are given to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.requirements.contract import Requirement
from tests.requirements.evidence import Evidence


def find_problems(requirements: Sequence[Requirement], evidence: Sequence[Evidence]) -> list[str]:
    """Return a sentence for each contradiction; an empty list means that all is well."""
    return [
        *_bad_requirements(requirements),
        *_unknown_ids(requirements, evidence),
        *_missing_or_surplus_tests(requirements, evidence),
    ]


def shown_by(requirement: Requirement, evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the tests that name a requirement and are run."""
    return [test for test in evidence if requirement.id in test.ids and test.runs]


def _bad_requirements(requirements: Sequence[Requirement]) -> Iterator[str]:
    seen: set[str] = set()
    for requirement in requirements:
        if requirement.id in seen:
            yield f"{requirement.id} stands twice in the list"
        seen.add(requirement.id)
        if not requirement.statement.strip():
            yield f"{requirement.id} has no statement"
        if requirement.gap is not None and not requirement.gap.strip():
            yield f"{requirement.id} is a gap without a reason"


def _unknown_ids(requirements: Sequence[Requirement], evidence: Iterable[Evidence]) -> Iterator[str]:
    known = {requirement.id for requirement in requirements}
    for test in evidence:
        for name in test.ids:
            if name not in known:
                yield f"{test.file}: {test.test} names {name}, which is no requirement"
        if len(set(test.ids)) < len(test.ids):
            yield f"{test.file}: {test.test} names a requirement twice"


def _missing_or_surplus_tests(requirements: Iterable[Requirement], evidence: Sequence[Evidence]) -> Iterator[str]:
    for requirement in requirements:
        tests = shown_by(requirement, evidence)
        if requirement.gap is None and not tests:
            yield f"{requirement.id} is covered, but no test that is run names it"
        if requirement.gap is not None and tests:
            yield f"{requirement.id} is a gap, but {tests[0].file}: {tests[0].test} claims to show it"
