"""Evaluation of a policy: many episodes at once, and records that anybody can replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from baselines.envs.pool import make_pool, make_text_env
from baselines.policy.chat import chat_of
from baselines.policy.models import load_policy
from baselines.rollout import Collection, Collector, EpisodeRequest, make_generator
from baselines.rollout.trajectory import Trajectory
from baselines.settings.config import AnswerFormatName, GeneratorKind, MemoryKind, PoolKind
from baselines.settings.dialogue import dialogue_of
from textagent_gym.core import TextEnv
from textagent_gym.evaluation import EpisodeRecord, Evaluation, begin, digest, episode_seed
from textagent_gym.vector import Wrap, env_maker

FIRST_SEED = 2**31
"""Seed of the first held-out episode in an environment without numbered tasks: training draws its seeds below it."""


def evaluate_policy(
    policy: str,
    env: str | EnvSpec,
    env_kwargs: dict[str, Any],
    *,
    tasks: int,
    episodes: int = 1,
    wrappers: Sequence[Wrap] = (),
    slots: int = 64,
    pool: PoolKind = "in-process",
    workers: int | None = None,
    patience: float = 0.05,
    answer_seconds: float = 600.0,
    generator: GeneratorKind = "transformers",
    temperature: float = 1.0,
    max_action_tokens: int = 24,
    system: str | None = None,
    format: AnswerFormatName | None = None,
    memory: MemoryKind | None = None,
    memory_turns: int | None = None,
    seed: int = 0,
    name: str | None = None,
    progress: Callable[[Trajectory], None] | None = None,
) -> tuple[Evaluation, Collection]:
    """Play the first tasks of a split with a policy.

    Args:
        policy: folder or hub name of the policy.
        env: id or spec of an environment.
        env_kwargs: keyword arguments of the environment; `split` among them says which tasks.
        tasks: number of tasks, from the first one of the split.
        episodes: number of times that each task is played.
        wrappers: wrappers around the environment, from the inside out.
        slots: number of episodes played at once.
        pool, workers: place of the environments; see `envs.pool.make_pool`.
        patience, answer_seconds: time limits of the pool; see `rollout.Collector`.
        generator: back end that samples; see `rollout.backend.make_generator`.
        temperature: sampling temperature; 0 takes the likeliest token.
        max_action_tokens: largest number of tokens per action.
        system: system message; by default the one that the policy was saved with.
        format, memory, memory_turns: format of the answers and memory of the conversation; by default those that the
            policy was saved with.
        seed: seed of the sampling.
        name: name of the agent in the records; by default the policy's.
        progress: called with each episode that has ended.

    Raises:
        InvalidOptionError: the observations or the actions of the environment are not text, or the format and the
            memory do not go together.

    Returns:
        the records, which `textagent_gym.evaluation.replay` can check, and the trajectories; episodes whose world broke
        are in `Collection.broken` only.
    """
    dialogue = dialogue_of(policy, format, memory, memory_turns)
    wrappers = (*dialogue.wrappers, *wrappers)
    player = make_text_env(env, env_kwargs, wrappers)
    model, tokenizer = load_policy(policy)
    chat = chat_of(policy, tokenizer, system, dialogue)
    requests = evaluation_requests(player, tasks, episodes, seed)
    speaker = make_generator(
        generator,
        model.eval(),
        chat.end_id,
        slots=min(slots, len(requests)),
        max_action_tokens=max_action_tokens,
        temperature=temperature,
    )
    environments = make_pool(env_maker(env, wrappers=wrappers, **env_kwargs), speaker.slots, pool, workers)
    collector = Collector(environments, speaker, chat, patience=patience, answer_seconds=answer_seconds)
    try:
        records, collection = play_episodes(collector, player, requests, progress)
    finally:
        collector.close()
    details = {
        "policy": policy,
        "system": chat.system,
        "instructed": chat.instructed,
        **asdict(dialogue),
        "temperature": temperature,
        "max_action_tokens": max_action_tokens,
    }
    result = begin(player, name or policy, tasks=tasks, repeats=episodes, seed=seed, details=details)
    player.close()
    return replace(result, episodes=tuple(records)), collection


def evaluation_requests(
    env: gymnasium.Env[str, str], tasks: int, episodes: int = 1, seed: int = 0
) -> list[EpisodeRequest]:
    """The episodes of an evaluation, task by task; equal arguments give equal episodes.

    Args:
        env: environment that is played. The first tasks of its split are, where it is a `TextEnv`; any other
            environment is reset with consecutive seeds from `FIRST_SEED` on, one per task.
        tasks: number of tasks.
        episodes: number of times that each task is played.
        seed: seed of the sampling.
    """
    base = env.unwrapped if isinstance(env.unwrapped, TextEnv) else None
    return [
        EpisodeRequest(
            index,
            FIRST_SEED + index if base is None else episode_seed(seed, base.tasks.address(base.split, index), repeat),
            None if base is None else {"task_index": index},
            sampling_seed=_sampling_seed(seed, index, repeat),
        )
        for index in range(tasks)
        for repeat in range(episodes)
    ]


def play_episodes(
    collector: Collector,
    env: gymnasium.Env[str, str],
    requests: Sequence[EpisodeRequest],
    progress: Callable[[Trajectory], None] | None = None,
) -> tuple[list[EpisodeRecord], Collection]:
    """Play episodes with a policy.

    Args:
        collector: environments and generator.
        env: one environment of the same kind, which names the tasks of episodes whose world broke.
        requests: episodes to play.
        progress: called with each episode that has ended.

    Returns:
        a record per request, in their order, and what the collector returned.
    """
    collection = collector.collect(requests, progress)
    reasons = {id(each.request): each.reason for each in collection.broken}
    played = iter(collection.trajectories)
    records = [
        _broken(env, request, reasons[id(request)]) if id(request) in reasons else _record(next(played), request)
        for request in requests
    ]
    return records, collection


def _sampling_seed(*path: int) -> int:
    return int(np.random.SeedSequence(path).generate_state(1)[0])


def _broken(env: gymnasium.Env[str, str], request: EpisodeRequest, reason: str) -> EpisodeRecord:
    """What is kept of an episode whose world broke each time that it was played."""
    task = str(request.group)
    if isinstance(env.unwrapped, TextEnv):
        task = env.unwrapped.tasks.address(env.unwrapped.split, request.group)
    return EpisodeRecord(task, request.seed or 0, (), (), False, False, True, broken=reason)


def _record(trajectory: Trajectory, request: EpisodeRequest) -> EpisodeRecord:
    """What is kept of an episode. One cut by the policy's context is neither terminated nor truncated."""
    return EpisodeRecord(
        task=trajectory.task or str(trajectory.group),
        seed=request.seed or 0,
        actions=tuple(turn.text for turn in trajectory.turns),
        rewards=tuple(turn.reward for turn in trajectory.turns),
        success=bool(trajectory.success),
        terminated=trajectory.terminated,
        truncated=trajectory.truncated,
        invalid_actions=sum(not turn.valid for turn in trajectory.turns),
        task_type=trajectory.task_type,
        score=trajectory.score,
        complexity=None if trajectory.complexity is None else trajectory.complexity.to_dict(),
        stopped="context" if trajectory.overflow else "",
        observations=digest([*(turn.observation for turn in trajectory.turns), trajectory.last_observation]),
        tokens=sum(len(turn.action) for turn in trajectory.turns),
    )
