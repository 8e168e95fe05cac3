"""Demonstrations: an agent's play as a conversation."""

from __future__ import annotations

import json
from typing import Any

import gymnasium

from textagent_gym.agents import make_agent
from textagent_gym.evaluation.episode import Episode, play_until_whole
from textagent_gym.evaluation.records import spec_of


def demonstrate(
    env: gymnasium.Env[str, str], options: dict[str, Any], agent: str = "oracle", *, instructions: bool = True
) -> dict[str, Any]:
    """One episode of an agent as JSON values.

    Args:
        env: a `TextEnv`, wrapped or not; what the wrappers show is what is recorded.
        options: options of `reset`, to choose the task.
        agent: "oracle" (knows everything), "expert" (knows what it has read) or another one of `AGENTS`.
        instructions: whether the environment's instructions are the conversation's system message, as trainers and
            evaluation show them; not twice where the first observation holds them already.

    Returns:
        `messages` (the instructions as system, then observations as user and actions as assistant, in turn, ending
        with an action), `instructed` (whether instructions were asked for), `task`, `env` (its id), `spec` (its whole
        spec with wrappers, as text), `agent`, `success`, `return` and `complexity`; `broken` where the world broke four
        times in a row.
    """
    episode = play_until_whole(env, make_agent(agent, env), options=options)
    complexity = episode.beginning.get("complexity")
    return {
        "messages": [*(_system(episode) if instructions else ()), *episode.messages],
        "task": episode.info.get("task", ""),
        **settings(env, agent, instructions),
        "success": episode.success,
        "return": episode.total_reward,
        "complexity": None if complexity is None else complexity.to_dict(),
        **({"broken": episode.broken} if episode.broken else {}),
    }


def settings(env: gymnasium.Env[str, str], agent: str, instructions: bool) -> dict[str, Any]:
    """What two demonstrations must have in common to stand in one file."""
    spec = spec_of(env)
    return {"env": spec["id"], "spec": json.dumps(spec, sort_keys=True), "agent": agent, "instructed": instructions}


def _system(episode: Episode) -> list[dict[str, str]]:
    """The system message with the environment's instructions, if there are any that the observation does not hold."""
    instructions = str(episode.beginning.get("instructions", ""))
    if not instructions or not episode.turns or instructions in episode.turns[0].observation:
        return []
    return [{"role": "system", "content": instructions}]
