"""What a resumed session goes on with (engine.md 3.7 and appendix J). The meta is that of an earlier server."""

from __future__ import annotations

import pytest

from aura.config.resolve import Overrides
from aura.errors import ProviderModelUnavailable, ResumeFailed, provider_failure
from aura.jsontypes import JsonObject
from aura.runtime.current import CurrentAgent
from aura.runtime.selection import Selection, restore_selection
from tests.support.command_kit import Desk


def reopened(desk: Desk, agent: str | None = None, **overrides: object) -> CurrentAgent:
    """Open the session again, as another server does."""
    desk.open(agent, **overrides)
    return desk.current


def contacted(desk: Desk, meta: JsonObject, agent: str | None = None, **overrides: str) -> bool:
    start = Selection(agent, Overrides(**overrides))  # type: ignore[arg-type]
    return restore_selection(desk.current.configuration, start, meta).contact


def test_agent_model_think_and_read_before_come_back(desk: Desk) -> None:
    desk.agent("Helper")
    desk.open()
    desk.ok("/agent helper")
    desk.ok("/model other")
    desk.ok("/set think=high readbefore.write=off auto=on done=on")
    desk.history.meta["session_approvals"] = {"Bash:git *": True}
    current = reopened(desk)
    spec = current.agent.spec
    assert (spec.name, spec.model.name, spec.model.think, spec.tools.read_before_write) == (
        "Helper",
        "other",
        "high",
        False,
    )
    assert desk.history.system == "You are Helper on other."
    assert (current.selection.auto, current.selection.done) == (False, False)
    assert desk.history.meta["session_approvals"] == {"Bash:git *": True}


@pytest.mark.parametrize(("own", "chosen"), [(None, "off"), ("high", "off"), ("off", "on"), (None, "medium")])
def test_a_chosen_think_level_comes_back(desk: Desk, own: str | None, chosen: str) -> None:
    desk.agent("main", default=True, model={"provider": "script", "name": "scripted", "think": own})
    desk.open()
    desk.ok(f"/think {chosen}")
    assert reopened(desk).agent.spec.model.think == chosen


def test_a_think_level_that_nobody_chose_stays_unset(desk: Desk) -> None:
    desk.open()
    assert reopened(desk).agent.spec.model.think is None


def test_the_reference_programs_false_is_off_for_an_agent_that_thinks(desk: Desk) -> None:
    desk.agent("main", default=True, model={"provider": "script", "name": "scripted", "think": "high"})
    desk.history.meta["think"] = "false"
    assert reopened(desk).agent.spec.model.think == "off"


def test_a_stored_agent_or_mode_that_is_not_configured_fails_the_resume(desk: Desk) -> None:
    for meta in ({"agent": "gone"}, {"agent": "main", "mode": "plan"}):
        desk.history.meta.clear()
        desk.history.meta.update(meta)
        with pytest.raises(ResumeFailed):
            desk.open()
        desk.open("main")
        assert desk.history.meta["agent"] == "main"
        assert "mode" not in desk.history.meta


def test_an_agent_on_the_command_line_replaces_agent_model_and_think(desk: Desk) -> None:
    desk.agent("Helper")
    desk.open()
    desk.ok("/model other")
    desk.ok("/set think=high readbefore.write=off")
    spec = reopened(desk, "Helper").agent.spec
    assert (spec.name, spec.model.name, spec.model.think) == ("Helper", "scripted", None)
    assert spec.tools.read_before_write is False
    spec = reopened(desk, "main").agent.spec
    assert spec.model.name == "scripted"


def test_the_command_lines_overrides_win_over_the_stored_ones(desk: Desk) -> None:
    desk.open()
    desk.ok("/model other")
    desk.ok("/think high")
    spec = reopened(desk, think="low").agent.spec
    assert (spec.model.name, spec.model.think) == ("other", "low")
    assert reopened(desk, model="scripted").agent.spec.model.name == "scripted"


def test_what_else_cannot_be_restored_is_a_notice(desk: Desk) -> None:
    desk.history.meta.update(
        {"agent": "main", "provider": "gone", "model": "m", "think": "deep", "read_before_policy": {"Write": False}}
    )
    notices = desk.open()
    assert len(notices) == 2
    assert "no provider named" in notices[0]
    assert "the stored think" in notices[1]
    spec = desk.current.agent.spec
    assert (spec.model.name, spec.model.think, spec.tools.read_before_write) == ("scripted", None, False)


def test_a_restored_model_that_the_provider_lost_fails_under_its_code(desk: Desk) -> None:
    desk.open()
    desk.ok("/model other")
    desk.provider("script", ["scripted"])
    with pytest.raises(ProviderModelUnavailable) as failed:
        desk.open()
    assert failed.value.details == {"status": 404, "provider": "script"}
    assert failed.value.retryable is False
    desk.open(model="scripted")


def test_the_provider_is_contacted_only_for_a_model_that_is_restored_or_replaced(desk: Desk) -> None:
    desk.open()
    own = {"agent": "main", "provider": "script", "model": "scripted"}
    other = own | {"model": "other"}
    assert not contacted(desk, {})
    assert not contacted(desk, {}, model="other")  # a fresh session
    assert not contacted(desk, own)
    assert not contacted(desk, own, model="scripted")
    assert contacted(desk, own, model="other")
    assert contacted(desk, other)
    assert contacted(desk, other, model="other")
    assert contacted(desk, other, model="scripted")
    assert contacted(desk, other, "main", model="scripted")
    assert not contacted(desk, other, "main")


@pytest.mark.requirement("runs.retryable")
def test_three_codes_are_worth_another_try() -> None:
    codes = ("network", "server", "rate_limit", "auth", "credit", "model_unavailable")
    failures = [provider_failure(f"provider_{code}", "m", {"status": 1}) for code in codes]
    assert [failure is not None and failure.retryable for failure in failures] == [True] * 3 + [False] * 3
    assert [failure.code for failure in failures if failure is not None] == [f"provider_{code}" for code in codes]
    assert provider_failure("internal", "m", {}) is None


def test_an_unknown_policy_key_of_the_meta_is_kept(desk: Desk) -> None:
    desk.history.meta["read_before_policy"] = {"Delete": True}
    desk.open()
    desk.ok("/readbefore write off")
    assert desk.history.meta["read_before_policy"] == {"Delete": True, "Write": False}
    desk.ok("/readbefore write on")
    assert desk.history.meta["read_before_policy"] == {"Delete": True}
