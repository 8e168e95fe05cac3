"""Evaluation of a policy: many episodes at once, and records that anybody can replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from baselines.chat import ChatFormat
from baselines.models import load_policy
from baselines.rollout import Collector, Episode, TransformersGenerator
from baselines.trajectory import Trajectory
from textagent_gym.evaluation import EpisodeRecord, Evaluation, begin, digest


def evaluate_policy(
    policy: str,
    env: str | EnvSpec,
    env_kwargs: dict[str, Any],
    *,
    tasks: int,
    episodes: int = 1,
    slots: int = 64,
    temperature: float = 1.0,
    max_action_tokens: int = 24,
    seed: int = 0,
    name: str | None = None,
    progress: Callable[[Trajectory], None] | None = None,
) -> tuple[Evaluation, list[Trajectory]]:
    """Play the first tasks of a split with a policy.

    Args:
        policy: folder or hub name.
        env: id or spec of an environment whose `reset` takes `options={"task_index": n}`.
        env_kwargs: its keyword arguments; `split` among them says which tasks.
        tasks: play the first so many.
        episodes: times that each task is played.
        slots: episodes played at once.
        temperature: of the sampling; 0 for the likeliest token.
        max_action_tokens: tokens of an action at most.
        seed: of the sampling.
        name: of the agent in the records; the policy's by default.
        progress: called with each episode that has ended.

    Returns:
        the records, which `textagent_gym.evaluation.replay` can check, and the trajectories.
    """
    model, tokenizer = load_policy(policy)
    chat = ChatFormat(tokenizer)
    wanted = tasks * episodes
    generator = TransformersGenerator(
        model.eval(),
        chat.end_id,
        slots=min(slots, wanted),
        max_action_tokens=max_action_tokens,
        temperature=temperature,
        seed=seed,
    )
    collector = Collector(lambda: gymnasium.make(env, **env_kwargs), generator, chat)
    try:
        played = collector.collect(
            [
                Episode(index, seed + repeat, {"task_index": index})
                for index in range(tasks)
                for repeat in range(episodes)
            ],
            progress,
        )
    finally:
        collector.close()
    made: gymnasium.Env[str, str] = gymnasium.make(env, **env_kwargs)
    empty = begin(
        made,
        name or policy,
        tasks=tasks,
        repeats=episodes,
        seed=seed,
        details={"policy": policy, "temperature": temperature, "max_action_tokens": max_action_tokens},
    )
    made.close()
    records = tuple(_record(trajectory, seed + number % episodes) for number, trajectory in enumerate(played))
    return replace(empty, episodes=records), played


def _record(trajectory: Trajectory, seed: int) -> EpisodeRecord:
    """What is kept of an episode."""
    return EpisodeRecord(
        task=trajectory.task or str(trajectory.group),
        seed=seed,
        actions=tuple(turn.text for turn in trajectory.turns),
        rewards=tuple(turn.reward for turn in trajectory.turns),
        success=bool(trajectory.success),
        terminated=trajectory.terminated,
        truncated=not (trajectory.terminated or trajectory.overflow),
        invalid_actions=sum(not turn.valid for turn in trajectory.turns),
        task_type=trajectory.task_type,
        stopped="context" if trajectory.overflow else "",
        observations=digest([*(turn.observation for turn in trajectory.turns), trajectory.last_observation]),
        tokens=sum(len(turn.action) for turn in trajectory.turns),
    )
