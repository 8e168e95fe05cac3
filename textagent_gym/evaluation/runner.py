"""Play an agent in an environment, task by task, and keep what happened. A run that was stopped resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from textagent_gym.agents import Agent, make_agent
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.episode import count_tasks, play_until_whole
from textagent_gym.evaluation.records import (
    EpisodeRecord,
    Evaluation,
    begin,
    header,
    line,
    load,
    read_record,
    record,
    save,
)
from textagent_gym.files import part_of, write_whole


def evaluate(
    env: str | EnvSpec | gymnasium.Env[str, str],
    agent: str | Callable[[gymnasium.Env[str, str]], Agent],
    *,
    tasks: int = 100,
    episodes: int = 1,
    seed: int = 0,
    kwargs: dict[str, Any] | None = None,
    path: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play the first tasks of a split.

    Args:
        env: id or spec of an environment of this suite or built on it, or such an environment itself, with wrappers
            that record their arguments; it stays open.
        agent: a name out of `AGENTS`, or a function that makes an agent for the environment. Its `name` is recorded,
            and its `details` if it has some (model, revision, prompt, sampling).
        tasks: number of tasks, from the first of the split on (all of them, if it has fewer).
        episodes: times that each task is played, with different seeds.
        seed: seed of the first episode of each task.
        kwargs: keyword arguments of the environment; `split` among them says which tasks.
        path: result file. Episodes are added to `<path>.part` as they end, and a run that was stopped takes them from
            there; the file itself appears when the run is complete. A complete file of the same evaluation is returned
            as it is.
        progress: called with the number of episodes finished so far, those of an earlier run included.

    Returns:
        the evaluation. An episode whose world broke four times in a row says so in `broken`.

    Raises:
        InvalidOptionError: the environment is not a `TextEnv`, the agent cannot play it, or `path` holds another
            evaluation.
    """
    with ExitStack() as stack:
        if isinstance(env, gymnasium.Env):
            if kwargs:
                raise InvalidOptionError("kwargs is for an id or a spec; this environment has been made already")
            played = env
        else:
            played = stack.enter_context(closing(gymnasium.make(env, **(kwargs or {}))))
        player, empty = _begun(played, agent, tasks, episodes, seed)
        target = None if path is None else Path(path)
        complete = _complete(target, empty)
        records = _resumed(target, empty)
        if complete is not None:
            return complete
        keys = [(index, repeat) for index in range(empty.tasks) for repeat in range(episodes)]
        for done, (index, repeat) in enumerate(keys, start=1):
            if (index, repeat) not in records:
                episode = play_until_whole(played, player, options={"task_index": index}, seed=seed + repeat)
                records[index, repeat] = record(episode, seed + repeat)
                if target is not None:
                    with open(part_of(target), "a", encoding="utf-8") as file:
                        file.write(_keyed(index, repeat, records[index, repeat]))
            if progress is not None:
                progress(done)
        evaluation = replace(empty, episodes=tuple(records[key] for key in keys))
        if target is not None:
            save(evaluation, target)
            part_of(target).unlink(missing_ok=True)
        return evaluation


def check_evaluation(
    env: gymnasium.Env[str, str],
    agent: str | Callable[[gymnasium.Env[str, str]], Agent],
    *,
    tasks: int,
    episodes: int,
    seed: int,
    path: Path | None,
) -> None:
    """Find out before any task is made what `evaluate` refuses; see there for the arguments.

    Raises:
        InvalidOptionError: the agent cannot play the environment, or `path` holds another evaluation.
    """
    _, empty = _begun(env, agent, tasks, episodes, seed)
    if _complete(path, empty) is None:
        _kept(path, empty)


def _begun(
    env: gymnasium.Env[str, str],
    agent: str | Callable[[gymnasium.Env[str, str]], Agent],
    tasks: int,
    episodes: int,
    seed: int,
) -> tuple[Agent, Evaluation]:
    """The agent, and an evaluation without episodes yet."""
    if tasks < 1 or episodes < 1:
        raise InvalidOptionError(f"tasks and episodes must be at least 1, got {tasks} and {episodes}")
    if seed < 0:
        raise InvalidOptionError(f"seed must be at least 0, got {seed}")
    player = make_agent(agent, env) if isinstance(agent, str) else agent(env)
    name = getattr(player, "name", type(player).__name__)
    details = getattr(player, "details", None)
    return player, begin(env, name, tasks=count_tasks(env, tasks), repeats=episodes, seed=seed, details=details)


def _complete(target: Path | None, empty: Evaluation) -> Evaluation | None:
    """What the file holds, if it holds this evaluation.

    Raises:
        InvalidOptionError: it holds something else, which is not overwritten.
    """
    if target is None or not target.exists():
        return None
    try:
        evaluation = load(target)
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{target} is there already, and is not overwritten ({error})") from error
    _check_same(target, header(replace(evaluation, episodes=())), empty)
    return evaluation


def _resumed(target: Path | None, empty: Evaluation) -> dict[tuple[int, int], EpisodeRecord]:
    """The episodes of an earlier run of the same evaluation; its file is mended, or begun."""
    if target is None or target.exists():
        return {}
    part, records = part_of(target), _kept(target, empty)
    write_whole(part, header(empty) + "\n" + "".join(_keyed(*key, kept) for key, kept in records.items()))
    return records


def _kept(target: Path | None, empty: Evaluation) -> dict[tuple[int, int], EpisodeRecord]:
    """The episodes in the file of an unfinished run.

    Raises:
        InvalidOptionError: they are of another evaluation.
    """
    if target is None or not part_of(target).is_file():
        return {}
    lines = part_of(target).read_text(encoding="utf-8", errors="replace").splitlines()
    if lines:
        _check_same(part_of(target), lines[0], empty)
    return dict(_read(lines[1:]))


def _check_same(path: Path, head: str, empty: Evaluation) -> None:
    """Raise `InvalidOptionError` naming what differs between a file's header and an evaluation."""
    wanted = header(empty)
    if head == wanted:
        return
    try:
        there, here = json.loads(head), json.loads(wanted)
        names = ", ".join(sorted(name for name in here if there.get(name) != here[name]))
    except (ValueError, AttributeError):
        names = "header"
    raise InvalidOptionError(f"{path} holds another evaluation (different: {names}); delete it or choose another file")


def _keyed(index: int, repeat: int, episode: EpisodeRecord) -> str:
    """The line of an episode in the file of an unfinished run."""
    return json.dumps({"key": [index, repeat], "episode": json.loads(line(episode))}) + "\n"


def _read(lines: Sequence[str]) -> Iterator[tuple[tuple[int, int], EpisodeRecord]]:
    for text in lines:
        try:
            data = json.loads(text)
            index, repeat = data["key"]
            episode = read_record(data["episode"])
        except (ValueError, TypeError, KeyError):
            continue  # A line cut by a kill; its episode is played again.
        if not episode.broken:  # What broke is tried again.
            yield (index, repeat), episode
