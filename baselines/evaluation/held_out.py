"""Evaluation on held-out tasks during training: the same episodes each time, with the weights of that moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import gymnasium
from accelerate.utils import gather_object
from transformers import PreTrainedModel

from baselines.envs.curriculum import ladder_of
from baselines.envs.pool import make_text_env
from baselines.evaluation.evaluate import evaluation_requests, play_episodes
from baselines.policy.chat import ChatFormat
from baselines.rollout import make_collector, share_of
from baselines.rollout.trajectory import Trajectory
from baselines.settings.config import TrainerConfig
from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import EpisodeRecord, Interval, count_tasks, summarize, summarize_by_type
from textagent_gym.tasks import held_out_split
from textagent_gym.vector import env_maker

_OF_TRAINING = ("split", "num_tasks")
"""Settings that say which tasks training draws from."""


def held_out_settings(config: TrainerConfig) -> dict[str, Any]:
    """Keyword arguments of the environment in evaluations.

    Of a ladder of settings, the last one is played.

    Raises:
        InvalidOptionError: the environment cannot be made with `set` and `eval_set`, or has no held-out split.
    """
    trained = [config.set, *(component.kwargs for component in ladder_of(config))][-1]
    settings = {name: value for name, value in trained.items() if name not in _OF_TRAINING} | config.eval_set
    if config.eval_split is not None:
        return {**settings, "split": config.eval_split}
    with closing(make_text_env(config.env, trained, config.wrappers)) as env:
        base = env.unwrapped
        if not isinstance(base, TextEnv):
            return settings
        split = held_out_split(base.tasks.splits)
        if split == base.split:
            raise InvalidOptionError(
                f"{config.env} is trained on split={split!r}, and has no other to evaluate on; "
                "to evaluate on the tasks of training, give it as eval_split"
            )
    return {**settings, "split": split}


def make_held_out_env(config: TrainerConfig) -> gymnasium.Env[str, str]:
    """One environment as in evaluations.

    Raises:
        InvalidOptionError: it cannot be made, its split does not exist or holds no tasks.
    """
    env = make_text_env(config.env, held_out_settings(config), config.wrappers)
    _count(env, config.eval_tasks)
    return env


@dataclass(frozen=True, slots=True)
class HeldOutEpisodes:
    """What one process has played of the held-out tasks.

    Attributes:
        records: a record per episode that was asked for.
        trajectories: episodes whose world did not break.
        started: start of the play, in seconds of `time.perf_counter`.
    """

    records: list[EpisodeRecord]
    trajectories: list[Trajectory]
    started: float


class HeldOut:
    """The held-out tasks of a run, with environments and a generator of their own.

    Processes share the episodes. In an environment that is not a `TextEnv`, which has neither splits nor numbered
    tasks, a task is a seed that training never draws.

    Args:
        config: settings of the run.
        policy: model that acts.
        chat: format of its conversations.
        processes, process: number of processes, and the number of this one.
    """

    def __init__(
        self, config: TrainerConfig, policy: PreTrainedModel, chat: ChatFormat, processes: int = 1, process: int = 0
    ) -> None:
        settings = held_out_settings(config)
        self._env = make_text_env(config.env, settings, config.wrappers)
        tasks = _count(self._env, config.eval_tasks)
        requests = evaluation_requests(self._env, tasks, config.eval_episodes, config.seed)
        self._requests = share_of(requests, processes, process)
        tokens, temperature = config.eval_max_action_tokens, config.eval_temperature
        played = replace(
            config,
            max_action_tokens=config.max_action_tokens if tokens is None else tokens,
            temperature=config.temperature if temperature is None else temperature,
        )
        make_env = env_maker(config.env, wrappers=config.wrappers, **settings)
        slots = max(1, min(config.slots, len(self._requests)))
        self._collector = make_collector(played, policy, chat, make_env, slots, precision=config.precision)
        self._asked = {
            "tasks": tasks,
            "episodes_per_task": config.eval_episodes,
            "temperature": played.temperature,
            "max_action_tokens": played.max_action_tokens,
            "seed": config.seed,
            "hints": config.hints,
            "set": settings,
        }

    def play(self, policy: PreTrainedModel) -> HeldOutEpisodes:
        """Play this process's episodes with a policy."""
        started = time.perf_counter()
        self._collector.generator.take_weights(policy)
        records, collection = play_episodes(self._collector, self._env, self._requests)
        self._collector.generator.forget()  # The update needs the memory.
        return HeldOutEpisodes(records, collection.trajectories, started)

    def measure(self, played: HeldOutEpisodes) -> dict[str, Any]:
        """Metrics of the episodes of all processes, with how they were measured; all processes call it."""
        tells_success = any(trajectory.success is not None for trajectory in played.trajectories)
        parts: list[tuple[list[EpisodeRecord], bool]] = gather_object([(played.records, tells_success)])
        everything = [record for part, _ in parts for record in part]
        metrics = _summary(everything, tells_success=any(tells for _, tells in parts))
        return {**metrics, **self._asked, "seconds": time.perf_counter() - played.started}

    def close(self) -> None:
        """Close the environments."""
        self._collector.close()
        self._env.close()


def _count(env: gymnasium.Env[str, str], tasks: int) -> int:
    return count_tasks(env, tasks) if isinstance(env.unwrapped, TextEnv) else tasks


def _summary(records: Sequence[EpisodeRecord], tells_success: bool) -> dict[str, Any]:
    """Metrics of some episodes; those of success only where the environment tells it."""
    broken = sum(bool(record.broken) for record in records)
    metrics: dict[str, Any] = {"episodes": len(records) - broken, "broken": broken}
    if not metrics["episodes"]:
        return metrics
    summary = summarize(records)
    if tells_success:
        metrics |= {"success": summary.success.mean, "success_interval": _bounds(summary.success)}
        by_type = summarize_by_type(records)
        if by_type:
            metrics["success_by_type"] = {name: part.success.mean for name, part in by_type.items()}
    metrics |= {"return": summary.total_reward.mean, "return_interval": _bounds(summary.total_reward)}
    if summary.score is not None:
        metrics["score"] = summary.score.mean
    return {**metrics, "turns": summary.turns.mean, "invalid": summary.invalid}


def _bounds(interval: Interval) -> list[float] | None:
    """Bounds of a 95% interval; `None` where the values have no spread to go by."""
    return [interval.low, interval.high] if isfinite(interval.high - interval.low) else None
