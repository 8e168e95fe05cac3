"""The wrappers, alone and on top of each other."""

from __future__ import annotations

import warnings

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from textagent_gym.errors import InvalidOptionError
from textagent_gym.wrappers import (
    ActionParser,
    AdmissibleActionHints,
    ChatMessages,
    HistoryText,
    InvalidActionPenalty,
    ObservationLimit,
)

TASK = {"task": "Lights/4/train/0"}


def lights(**kwargs: object) -> gymnasium.Env[str, str]:
    return gymnasium.make("lights/Lights-v0", **kwargs)


@pytest.mark.parametrize(
    "wrapper", [ActionParser, AdmissibleActionHints, ChatMessages, HistoryText, InvalidActionPenalty, ObservationLimit]
)
def test_a_wrapped_environment_passes_gymnasiums_checker_and_its_spec_survives(wrapper: type) -> None:
    env = wrapper(lights())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(env, skip_render_check=True)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert type(again) is wrapper
    assert again.reset(seed=2)[0] == env.reset(seed=2)[0]


@given(st.text())
def test_no_answer_upsets_a_parser(answer: str) -> None:
    for parser in ("tag", "last-line", "react", r"do\((.*)\)"):
        env = ActionParser(lights(), parser)
        env.reset(options=TASK)
        _, _, _, _, info = env.step(answer)
        assert info["turn"] == 1


@pytest.mark.parametrize(
    ("parser", "answer"),
    [
        ("tag", "<action>press blue</action> no: <ACTION> press red </ACTION>"),
        ("last-line", "Let me see.\n\n  press red  \n\n"),
        ("react", "Thought: hm\nAction: press blue\nThought: no\nAction: press red"),
        (r"do\((.*?)\)", "do(press red)"),
        (lambda answer: answer[::-1], "der sserp"),
    ],
)
def test_the_action_is_found(parser: object, answer: str) -> None:
    env = ActionParser(lights(), parser)
    env.reset(options=TASK)
    *_, info = env.step(answer)
    assert info["parsed_action"] == "press red"
    assert info["valid_action"]


def test_an_answer_without_an_action_costs_a_turn_and_is_told_the_format() -> None:
    env = ActionParser(lights(), "tag")
    env.reset(options=TASK)
    observation, reward, _, _, info = env.step("I would rather not.")
    assert observation == "Answer with <action>...</action>."
    assert (reward, info["turn"], info["valid_action"], info["parsed_action"]) == (0.0, 1, False, None)


@pytest.mark.parametrize("wrong", ["(", "no group", "(two)(groups)"])
def test_a_wrong_parser_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidOptionError):
        ActionParser(lights(), wrong)


def test_history_keeps_the_goal_and_the_last_turns() -> None:
    env = HistoryText(lights(max_turns=50), turns=1)
    goal = env.reset(options=TASK)[0]
    env.step("press red")
    text = env.step("press white")[0]
    assert text.startswith(goal + "\n\n[... 1 turns left out ...]\n\n> press white\n")
    assert "press red" not in text


@pytest.mark.parametrize("wrapper", [HistoryText, ChatMessages])
def test_a_snapshot_takes_the_history_along(wrapper: type) -> None:
    env = wrapper(lights(max_turns=50))
    env.reset(options=TASK)
    env.step("press red")
    token = env.snapshot()
    after = env.step("look")
    env.step("press black")
    env.restore(token)
    assert env.step("look") == after


def test_hints_follow_the_state_and_stop_at_the_end() -> None:
    env = AdmissibleActionHints(lights(), leave_out=("press black",))
    observation, _ = env.reset(options=TASK)
    assert observation.endswith("Possible actions: press blue, press green, press red, press white")
    for action in env.unwrapped.oracle():
        observation, *_ = env.step(action)
    assert "Possible actions" not in observation


def test_wrappers_stack() -> None:
    env = ChatMessages(ActionParser(AdmissibleActionHints(lights()), "tag"), system="Play.")
    messages, _ = env.reset(options=TASK)
    messages, *_ = env.step("<action>press red</action>")
    assert messages[2] == {"role": "assistant", "content": "<action>press red</action>"}
    assert "Possible actions" in messages[3]["content"]


def test_tokens_are_limited_by_any_tokenizer() -> None:
    env = ObservationLimit(lights(), tokens=4, tokenize=list)
    assert env.reset(options=TASK)[0].startswith("Tu\n[... ")
    assert ObservationLimit(lights(), tokens=1000).reset(options=TASK)[0].startswith("Turn on all 4 lights.")
    with pytest.raises(InvalidOptionError):
        ObservationLimit(lights(), characters=1)
