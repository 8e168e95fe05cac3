"""The expert is Minigrid's bot, behind the contract and within a bound."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from textagent_gym.agents import make_agent
from textagent_gym.domains.babyai.levels import LEVELS
from textagent_gym.evaluation import play


@pytest.mark.parametrize("given", [{}, {"actions": "primitive"}, {"action_format": "functions"}], ids=str)
def test_the_expert_wins_most_episodes(given: dict[str, Any]) -> None:
    env = gymnasium.make("textagent/BabyAI-v0", rows=2, max_turns=150, **given)
    agent = make_agent("expert", env)
    assert sum(play(env, agent, options={"task_index": index}).success for index in range(10)) >= 8


def test_the_expert_can_watch_somebody_else_first() -> None:
    env = gymnasium.make("textagent/BabyAI-v0", max_turns=150).unwrapped
    observation, _ = env.reset(options={"task_index": 1})
    expert = env.expert()
    expert.observe(None, observation)
    for action in ("turn left", "dance", "turn left", "turn right"):
        observation, *_ = env.step(action)
        expert.observe(action, observation)
    done = False
    while not done:
        action = expert.action()
        observation, _, terminated, truncated, info = env.step(action)
        expert.observe(action, observation)
        done = terminated or truncated
    assert info["success"]


def test_a_bot_that_plans_without_end_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.domains.babyai import expert as module

    class Endless:
        def __init__(self, level: object) -> None:
            self.stack: list[int] = [1]

        def replan(self, action: int | None) -> int:
            while self.stack[-1]:
                pass
            return 0

    monkeypatch.setattr(module, "BabyAIBot", Endless)
    env = gymnasium.make("textagent/BabyAI-v0").unwrapped
    observation, _ = env.reset(options={"task_index": 0})
    expert = env.expert()
    expert.observe(None, observation)
    assert expert.given_up
    assert expert.action() == "turn left"


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_no_level_holds_the_expert_up(level: str) -> None:
    env = gymnasium.make(f"textagent/BabyAI-{level}-v0", max_turns=200)
    agent = make_agent("expert", env)
    episodes = [play(env, agent, options={"task_index": index}) for index in range(3)]
    assert all(len(episode.turns) <= 200 for episode in episodes)
