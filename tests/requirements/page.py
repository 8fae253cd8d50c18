"""Makes docs/requirements.md from the requirements and the tests that name them.

`python -m tests.requirements.page` writes it, from the checkout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.requirements.check import shown_by
from tests.requirements.contract import SECTIONS, Requirement, Section
from tests.requirements.evidence import Evidence, read_evidence

PAGE = Path(__file__).resolve().parents[2] / "docs" / "requirements.md"
COMMAND = "python -m tests.requirements.page"

HEAD = f"""# Requirements

The testable statements of the automation contract, in its order, and the tests that show them. The list stands in
`tests/requirements/contract.py`; each test names what it shows by `@pytest.mark.requirement("id", …)`, and
`tests/requirements/test_requirements.py` fails where the two do not agree. This page is made by
`{COMMAND}`.

A test marked ² runs on gevent and on waitress every time. One marked ¹ starts the servers that it needs on the kind
that `AURA_TEST_SERVER` names (`gevent`, which is the default, or `waitress`); `scripts/check waitress` runs those of
the contract on waitress. The others start no HTTP server of either kind, or a stand-in.
"""


def render(sections: Sequence[Section], evidence: Sequence[Evidence]) -> str:
    """Return the page's text."""
    requirements = [requirement for section in sections for requirement in section.requirements]
    gaps = sum(requirement.gap is not None for requirement in requirements)
    parts = [HEAD, f"{len(requirements)} requirements: {len(requirements) - gaps} covered, {gaps} gaps.\n"]
    for section in sections:
        rows = "\n".join(_row(requirement, shown_by(requirement, evidence)) for requirement in section.requirements)
        parts.append(f"## {section.title}\n\n| id | statement | state | tests |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def _row(requirement: Requirement, tests: Iterable[Evidence]) -> str:
    state = "covered" if requirement.gap is None else f"gap: {requirement.gap}"
    cells = (f"`{requirement.id}`", requirement.statement, state, "<br>".join(map(_name, tests)))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _name(test: Evidence) -> str:
    mark = {"both": "²", "either": "¹", "": ""}[test.servers]
    return f"`{test.file}`: {test.test.removeprefix('test_').replace('_', ' ')}{mark}"


if __name__ == "__main__":
    PAGE.write_text(render(SECTIONS, read_evidence()), encoding="utf-8")
