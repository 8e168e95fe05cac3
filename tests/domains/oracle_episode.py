"""An oracle's episode, with what holds at each of its steps."""

from __future__ import annotations

from typing import Any

from textagent_gym.core import TextEnv


def solve(env: TextEnv[Any], index: int = 0) -> list[tuple[str, float]]:
    """Observations and rewards of the oracle's episode of a task."""
    env.reset(options={"task_index": index})
    plan = env.oracle() or ()
    assert len(plan) == env.task.complexity.solution_length
    answers: list[tuple[str, float]] = []
    terminated, truncated = False, False
    info: dict[str, Any] = {}
    for action in plan:
        observation, reward, terminated, truncated, info = env.step(action)
        assert info["valid_action"]
        answers.append((observation, reward))
    assert terminated
    assert not truncated
    assert info["success"]
    assert info["progress"] == 1.0
    return answers
