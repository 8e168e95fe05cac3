"""Demonstrations: the oracle's play as a conversation."""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.agents.base import text_env


def demonstrate(env: gymnasium.Env[str, str], options: dict[str, Any], env_id: str) -> dict[str, Any]:
    """One episode of the oracle as JSON values.

    Args:
        env: a `TextEnv`, wrapped or not; what the wrappers show is what is recorded.
        options: for `reset`, to choose the task.
        env_id: written into the demonstration.

    Returns:
        `messages` (observations as user, actions as assistant, in turn, beginning with an observation and ending with
        an action), `task`, `env`, `return` and `complexity`.
    """
    base = text_env(env, "oracle")
    observation, info = env.reset(options=options)
    messages: list[dict[str, str]] = []
    total, ended = 0.0, False
    while not ended:
        plan = base.oracle()
        if not plan:
            break
        messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": plan[0]}]
        observation, reward, terminated, truncated, _ = env.step(plan[0])
        total += float(reward)
        ended = terminated or truncated
    complexity = info["complexity"].to_dict()
    return {"messages": messages, "task": info["task"], "env": env_id, "return": total, "complexity": complexity}
