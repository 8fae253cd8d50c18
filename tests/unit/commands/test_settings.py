"""Commands that change how the session goes on. A failed one changes nothing, which `desk.fails` checks each time."""

from __future__ import annotations

import pytest

from aura import events as e
from aura.engine.scope import Scope
from tests.support.command_kit import Desk, user
from tests.support.lane import StillAlarm


def test_agents_are_listed_without_the_hidden_ones(desk: Desk) -> None:
    desk.agent("Helper", description="Helps")
    desk.agent("Base", hide=True)
    assert desk.ok("/agent").splitlines() == ["  Helper  Helps", "* main  The first"]
    desk.ok("/agent base")
    assert "* Base" in desk.ok("/agent").splitlines()


def test_another_agent_keeps_the_history_and_gets_its_own_prompt_and_model(desk: Desk) -> None:
    desk.agent("Helper", model={"provider": "script", "name": "other", "think": "high"})
    desk.open()
    desk.say(user("hello"))
    desk.ok("/think low")
    desk.ok("/agent helper")
    assert desk.history.system == "You are Helper on other."
    assert [message.content for message in desk.history.messages] == ["hello"]
    meta = desk.history.meta
    assert (meta["agent"], meta["model"], meta["provider"], meta["think"]) == ("Helper", "other", "script", "high")
    status = desk.lane.events[-2]
    assert isinstance(status, e.StatusChanged)
    assert (status.agent, status.model, status.iteration) == ("Helper", "other", 0)


def test_an_unknown_agent_fails_and_the_known_ones_are_named(desk: Desk) -> None:
    desk.agent("Hidden", hide=True)
    desk.open()
    assert "known agents: main" in desk.fails("/agent nobody")


def test_models_are_listed_without_asking_a_provider(desk: Desk) -> None:
    desk.provider("second", ["m1"], only={"include": ["m1", "m2", "q*"], "exclude": ["m2"]})
    assert desk.ok("/model").splitlines() == ["* script/scripted", "  second/m1"]


def test_a_model_is_asked_for_and_taken_with_its_context(desk: Desk) -> None:
    assert desk.ok("/model other") == "model script/other, 1000 tokens of context"
    assert desk.history.meta["model"] == "other"
    assert desk.history.system == "You are main on other."
    desk.provider("second", ["a/b"])
    desk.ok("/reload")
    assert desk.ok("/model SECOND/a/b") == "model second/a/b, 1000 tokens of context"
    assert desk.history.meta["provider"] == "second"


def test_what_stands_before_the_slash_is_a_provider_only_if_there_is_one(desk: Desk) -> None:
    desk.provider("script", ["scripted", "org/model"])
    desk.open()
    assert desk.ok("/model org/model").startswith("model script/org/model")


def test_a_model_that_the_provider_does_not_have_fails_with_its_message(desk: Desk) -> None:
    desk.open()
    assert "model 'nope' not found" in desk.fails("/model nope")


def test_a_model_that_the_configuration_leaves_out_fails(desk: Desk) -> None:
    desk.provider("script", ["scripted", "other"], only={"exclude": ["other"]})
    desk.open()
    assert "leaves out the model" in desk.fails("/model other")


def test_think_is_shown_and_set(desk: Desk) -> None:
    assert desk.ok("/think") == "think: not set"
    assert desk.ok("/effort HIGH") == "think: high"
    assert desk.ok("/think no") == "think: off"
    assert desk.history.meta["think"] == "off"
    assert "off, on, low, medium, high" in desk.fails("/think deeply")


def test_auto_is_shown_and_set(desk: Desk) -> None:
    assert desk.ok("/auto") == "auto: off"
    assert desk.ok("/auto on") == "auto: on"
    assert desk.current.agent.toolbox.auto is True
    assert "not maybe" in desk.fails("/auto maybe")
    desk.ok("/auto off")
    assert desk.current.agent.toolbox.auto is False


def test_done_is_a_tool_only_while_it_is_on(desk: Desk) -> None:
    assert desk.ok("/done") == "done: off"
    assert "Done" not in desk.ok("/tools")
    desk.ok("/done on")
    assert "Done" in desk.ok("/tools")
    desk.ok("/think high")
    assert desk.current.agent.toolbox.find("Done") is not None
    desk.ok("/done off")
    assert desk.current.agent.toolbox.find("Done") is None


def test_done_cannot_be_had_against_the_agents_configuration(desk: Desk) -> None:
    desk.agent("main", default=True, tools={"disabled": ["Done"]})
    desk.agent("free")
    desk.open()
    assert "may not use Done" in desk.fails("/done on")
    desk.ok("/agent free")
    desk.ok("/done on")
    assert "Done is off" in desk.ok("/agent main")
    assert desk.ok("/done") == "done: off"


def test_read_before_is_in_the_meta_only_when_it_is_not_the_agents_own(desk: Desk) -> None:
    assert desk.ok("/readbefore") == "write: on"
    assert desk.ok("/rb write off") == "write: off"
    assert desk.history.meta["read_before_policy"] == {"Write": False}
    assert desk.current.agent.spec.tools.read_before_write is False
    assert desk.ok("/readbefore all on") == "write: on"
    assert "read_before_policy" not in desk.history.meta
    for text in ("/readbefore on", "/readbefore delete off", "/readbefore write perhaps", "/readbefore x on"):
        desk.fails(text)


def test_several_settings_are_set_all_or_none(desk: Desk) -> None:
    desk.agent("Helper", model={"provider": "script", "name": "other", "think": "high"})
    text = desk.ok("/set think=low agent=helper readbefore.write=off auto=on window=4096 done=on")
    assert text.splitlines() == [
        "agent=Helper",
        "auto=on",
        "context=4096",
        "done=on",
        "model=script/other",
        "readbefore.write=off",
        "think=low",
    ]
    assert desk.ok("/set") == text
    for word in ("think", "think=", "nothing=1", "mode=x", "context=many", "context=0", "agent=nobody", "think=x"):
        desk.fails(f"/set auto=off {word}")
    assert desk.ok("/set") == text


def test_reload_takes_what_the_files_say_now(desk: Desk) -> None:
    desk.open()
    provider = desk.current.agent.provider
    desk.agent("main", "A new prompt.", default=True)
    desk.command("review", "Review $1")
    desk.write("config/modes/x.md", "---\nname: x\n---\n")
    text = desk.ok("/reload")
    assert text.splitlines()[:3] == ["agents: 1", "providers: 1", "custom commands: 1"]
    assert "warning: " in text
    assert desk.history.system == "A new prompt."
    assert desk.current.agent.provider is provider
    assert "/review" in desk.ok("/help")
    desk.provider("script", ["scripted"], retry={"max_attempts": 1})
    desk.ok("/reload")
    assert desk.current.agent.provider is not provider


def test_a_reload_that_fails_keeps_the_present_configuration(desk: Desk) -> None:
    desk.open()
    desk.write("config/agents/broken.md", "---\nname: broken\nmodels: x\n---\n")
    error = desk.fails("/reload")
    assert "broken.md:3" in error
    assert "Did you mean model?" in error
    desk.ok("/think high")


def test_a_reload_without_the_agent_at_work_fails(desk: Desk) -> None:
    desk.agent("other")
    desk.open()
    (desk.root / "home/config/agents/main.md").unlink()
    assert "there is no agent" in desk.fails("/reload")


def test_reload_keeps_what_the_session_has_chosen(desk: Desk) -> None:
    desk.open()
    desk.ok("/model other")
    desk.ok("/set think=high auto=on done=on")
    before = desk.ok("/set")
    desk.ok("/reload")
    assert desk.ok("/set") == before


def test_the_command_lines_limits_outlive_a_change_of_agent(desk: Desk) -> None:
    desk.agent("other")
    desk.open(max_steps=3, token_budget=7, think="high")
    desk.ok("/agent other")
    tools = desk.current.agent.spec.tools
    assert (tools.max_steps, tools.token_budget) == (3, 7)
    assert desk.current.agent.spec.model.think is None


def test_files_that_were_read_stay_read_when_the_agent_changes(desk: Desk) -> None:
    desk.open()
    desk.current.agent.toolbox.reads.record(desk.work / "a")
    desk.ok("/think high")
    assert desk.current.agent.toolbox.reads.knows(desk.work / "a")


@pytest.mark.parametrize("text", ["/agent a b", "/help a b", "/ctx now", "/readbefore write on please", "/reload all"])
def test_words_that_a_command_does_not_take_fail_with_its_usage(desk: Desk, text: str) -> None:
    desk.open()
    assert "usage: " + text.split()[0] in desk.fails(text)


def test_a_cancelled_run_changes_nothing_and_has_no_result(desk: Desk) -> None:
    desk.open()
    before, events = desk.state(), list(desk.lane.events)
    desk.lane.scope = Scope(StillAlarm())
    desk.lane.scope.cancel("shutdown")
    outcome = desk.type("/think high")
    assert outcome.outcome == "cancelled"
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.details) == ("cancelled", {"reason": "shutdown"})
    assert desk.state() == before
    assert list(desk.lane.events) == events
