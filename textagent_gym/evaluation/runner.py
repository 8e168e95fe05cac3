"""Play an agent in an environment, task by task, and keep what happened. A run that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gymnasium

from textagent_gym.agents import Agent, make_agent
from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.records import EpisodeRecord, Evaluation, header, line, save, versions


def evaluate(
    env_id: str,
    agent: str | Callable[[gymnasium.Env[str, str]], Agent],
    *,
    tasks: int = 100,
    episodes: int = 1,
    seed: int = 0,
    kwargs: dict[str, Any] | None = None,
    path: Path | None = None,
    progress: Callable[[EpisodeRecord], None] | None = None,
) -> Evaluation:
    """Play the first tasks of a split.

    Args:
        env_id: of an environment of this suite or built on it.
        agent: a name out of `AGENTS`, or a function that makes an agent for the environment.
        tasks: play the first so many tasks of the split (all of them, if it has fewer).
        episodes: times that each task is played, with different seeds.
        seed: of the first episode of each task.
        kwargs: keyword arguments of the environment; `split` among them says which tasks.
        path: result file. Episodes are added to `<path>.part` as they end, and a run that was stopped takes them from
            there; the file itself appears when the run is complete.
        progress: called with each episode, those taken from an earlier run included.

    Raises:
        InvalidOptionError: the environment is not a `TextEnv`, or `path` holds another evaluation.
    """
    if tasks < 1 or episodes < 1:
        raise InvalidOptionError(f"tasks and episodes must be at least 1, got {tasks} and {episodes}")
    env = gymnasium.make(env_id, **(kwargs or {}))
    try:
        base = env.unwrapped
        if not isinstance(base, TextEnv):
            raise InvalidOptionError(f"{env_id} is no text environment of this suite, so its tasks cannot be counted")
        player = make_agent(agent, env) if isinstance(agent, str) else agent(env)
        size = base.tasks.size(base.split)
        count = tasks if size is None else min(tasks, size)
        empty = Evaluation(player.name, env_id, dict(kwargs or {}), base.split, (), versions())
        part = None if path is None else path.with_name(path.name + ".part")
        records = _resume(part, empty) if part is not None else {}
        for index in range(count):
            for repeat in range(episodes):
                key = f"{index}/{repeat}"
                if key not in records:
                    records[key] = play(env, player, {"task_index": index}, seed + repeat)
                    if part is not None:
                        _append(part, empty, key, records[key])
                if progress is not None:
                    progress(records[key])
        ordered = (records[f"{index}/{repeat}"] for index in range(count) for repeat in range(episodes))
        evaluation = Evaluation(empty.agent, env_id, empty.kwargs, empty.split, tuple(ordered), empty.versions)
    finally:
        env.close()
    if path is not None:
        save(evaluation, path)
    return evaluation


def play(env: gymnasium.Env[str, str], agent: Agent, options: dict[str, Any], seed: int) -> EpisodeRecord:
    """Play one episode."""
    observation, info = env.reset(seed=seed, options=options)
    agent.reset(seed)
    actions: list[str] = []
    rewards: list[float] = []
    invalid = 0
    while True:
        actions.append(agent.act(observation, info))
        observation, reward, terminated, truncated, info = env.step(actions[-1])
        rewards.append(float(reward))
        invalid += not info.get("valid_action", True)
        if terminated or truncated:
            success = bool(info.get("success", False))
            return EpisodeRecord(
                task=info["task"],
                seed=seed,
                actions=tuple(actions),
                rewards=tuple(rewards),
                success=success,
                terminated=terminated,
                truncated=truncated,
                invalid_actions=invalid,
                task_type=info["task_type"],
            )


def _resume(part: Path, empty: Evaluation) -> dict[str, EpisodeRecord]:
    """The episodes of an earlier run of the same evaluation."""
    if not part.is_file():
        return {}
    lines = part.read_text(encoding="utf-8").splitlines()
    if not lines:
        return {}
    if lines[0] != header(empty):
        raise InvalidOptionError(f"{part} holds the beginning of another evaluation; delete it or choose another file")
    return dict(_keyed(lines[1:]))


def _keyed(lines: Iterable[str]) -> Iterable[tuple[str, EpisodeRecord]]:
    for text in lines:
        try:
            data = json.loads(text)
        except ValueError:
            continue  # A line cut by a kill; its episode is played again.
        key = data.pop("key")
        yield key, EpisodeRecord(**{**data, "actions": tuple(data["actions"]), "rewards": tuple(data["rewards"])})


def _append(part: Path, empty: Evaluation, key: str, record: EpisodeRecord) -> None:
    part.parent.mkdir(parents=True, exist_ok=True)
    fresh = not part.is_file() or part.stat().st_size == 0
    with open(part, "a", encoding="utf-8") as file:
        if fresh:
            file.write(header(empty) + "\n")
        file.write(json.dumps({"key": key, **json.loads(line(record))}) + "\n")
