"""Demonstrations: an agent's play as a conversation."""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.agents import make_agent


def demonstrate(
    env: gymnasium.Env[str, str], options: dict[str, Any], env_id: str, agent: str = "oracle"
) -> dict[str, Any]:
    """One episode of an agent as JSON values.

    Args:
        env: a `TextEnv`, wrapped or not; what the wrappers show is what is recorded.
        options: for `reset`, to choose the task.
        env_id: written into the demonstration.
        agent: "oracle" (knows everything), "expert" (knows what it has read) or another one of `AGENTS`.

    Returns:
        `messages` (observations as user, actions as assistant, in turn, beginning with an observation and ending with
        an action), `task`, `env`, `agent`, `success`, `return` and `complexity`.
    """
    player = make_agent(agent, env)
    observation, beginning = env.reset(options=options)
    player.reset(0)
    messages: list[dict[str, str]] = []
    info, total, ended = beginning, 0.0, False
    while not ended:
        action = player.act(observation, info)
        messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": action}]
        observation, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        ended = terminated or truncated
    return {
        "messages": messages,
        "task": info["task"],
        "env": env_id,
        "agent": agent,
        "success": info["success"],
        "return": total,
        "complexity": beginning["complexity"].to_dict(),
    }
