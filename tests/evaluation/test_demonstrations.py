"""Demonstrations as conversations."""

from __future__ import annotations

import gymnasium
import pytest

from textagent_gym.evaluation import demonstrate


def test_instructions_are_the_system_message_unless_they_are_left_out() -> None:
    env = gymnasium.make("lights/Lights-v0")
    demo = demonstrate(env, {"task_index": 0})
    assert demo["messages"][0] == {"role": "system", "content": env.unwrapped.instructions}
    assert demo["instructed"]
    without = demonstrate(env, {"task_index": 0}, instructions=False)
    assert without["messages"] == demo["messages"][1:]
    assert not without["instructed"]


@pytest.mark.parametrize("asked", [True, False])
def test_instructions_in_the_observation_are_not_shown_twice(asked: bool) -> None:
    env = gymnasium.make("lights/Lights-v0", instructions="observation")
    demo = demonstrate(env, {"task_index": 0}, instructions=asked)
    assert demo["messages"][0]["role"] == "user"
    assert demo["messages"][0]["content"].startswith(env.unwrapped.instructions)
