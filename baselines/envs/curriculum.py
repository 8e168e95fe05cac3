"""Curricula: what the groups of an iteration play, given the success rates of the iterations before it.

    success rates --schedules--> Stage(max_turns, level) --options--> options of `reset`, one per group
                                        |                               component    environment of the mixture
                                   metrics.jsonl                        task_index   task of the level
                                                                        max_turns    turn budget

The options follow from the settings, the iteration and the success rates alone, so every process chooses equally, and a
run that resumes plays what it would have played.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from baselines.envs.mixed_env import MixedEnv
from baselines.envs.pool import MakeEnv, make_text_env
from baselines.settings.mixture import Component, components_of, deal
from baselines.settings.schedule import Schedule, difficulty_schedule, horizon_schedule, split_difficulty
from textagent_gym import TextEnv
from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import read_settings
from textagent_gym.vector import Wrap, env_maker

if TYPE_CHECKING:
    from baselines.settings.config import TrainerConfig

Indices = NDArray[np.int64]
Complexities = list[dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the curricula of an iteration are.

    Attributes:
        max_turns: turn budget of the episodes; `None` for that of the environment.
        level: level of difficulty, from 0.
    """

    max_turns: int | None
    level: int


@dataclass(frozen=True, slots=True)
class Curriculum:
    """What is played when. Without any curriculum, every episode begins without options.

    Attributes:
        components: environments that are played, first those of the ladder.
        horizon: turn budgets, one per level; empty for that of the environment.
        horizon_schedule: schedule of the turn budget.
        levels: number of levels of difficulty; 0 without one.
        difficulty_schedule: schedule of the level of difficulty.
        ladder: number of components that are levels of difficulty of one environment, which share its weight.
        tasks: indices of each component's tasks from the easiest to the hardest; empty where levels are not of tasks.
        wrappers: wrappers around every environment, from the inside out.
    """

    components: tuple[Component, ...]
    horizon: tuple[int, ...]
    horizon_schedule: Schedule
    levels: int
    difficulty_schedule: Schedule
    ladder: int
    tasks: tuple[Indices, ...]
    wrappers: tuple[Wrap, ...] = ()

    def stage(self, successes: Sequence[float]) -> Stage:
        """The stage of the iteration that follows those with these success rates."""
        max_turns = self.horizon[self.horizon_schedule.level(successes)] if self.horizon else None
        return Stage(max_turns, self.difficulty_schedule.level(successes))

    def options(self, stage: Stage, groups: int, seed: int) -> list[dict[str, Any] | None]:
        """Options of `reset` for each of some groups.

        Tasks of a level are drawn uniformly; environments are dealt out by `settings.mixture.deal`.

        Args:
            stage: stage of the iteration.
            groups: number of groups.
            seed: seed of what is drawn.
        """
        rng = np.random.default_rng(seed)
        dealt = deal(self.weights(stage.level), groups, int(rng.integers(2**31)))
        options: list[dict[str, Any] | None] = []
        for component in dealt.tolist():
            chosen: dict[str, Any] = {}
            if len(self.components) > 1:
                chosen["component"] = component
            if self.tasks:
                chosen["task_index"] = int(rng.choice(self.tasks_of(component, stage.level)))
            if stage.max_turns is not None:
                chosen["max_turns"] = stage.max_turns
            options.append(chosen or None)
        return options

    def weights(self, level: int) -> list[float]:
        """Weight of each component: the rungs of the ladder up to the level share the weight of their environment."""
        weights = [component.weight for component in self.components]
        for rung in range(self.ladder):
            weights[rung] = weights[rung] / (level + 1) if rung <= level else 0.0
        return weights

    def tasks_of(self, component: int, level: int) -> Indices:
        """Indices of the tasks of a component that are played at a level: of n levels, the easiest (level + 1) / n."""
        tasks = self.tasks[component]
        return tasks[: -(-len(tasks) * (level + 1) // self.levels)]

    def metrics(self, stage: Stage) -> dict[str, int]:
        """What the metrics of an iteration say of its stage; the level is counted from 1."""
        horizon = {} if stage.max_turns is None else {"max_turns": stage.max_turns}
        return {**horizon, **({"level": stage.level + 1} if self.levels else {})}

    def success(self, stage: Stage, metrics: Mapping[str, float]) -> float:
        """Success rate that the schedules go by: of the newest rung of a ladder, else of `TrainerConfig.env` alone.

        Args:
            stage: stage of the iteration.
            metrics: its metrics, those of `component_metrics` included.

        Returns:
            the rate, from 0 to 1; `nan` where no episode tells it.
        """
        if len(self.components) == 1:
            return metrics.get("success", math.nan)
        newest = stage.level if self.ladder else 0
        return metrics.get(f"success/{names_of(self.components)[newest]}", math.nan)

    def component_metrics(self, episodes: Sequence[dict[str, Any]]) -> dict[str, float]:
        """Number of episodes and mean return, success and turns per environment of a mixture.

        Args:
            episodes: measurements of each episode, with its `options`.
        """
        if len(self.components) == 1:
            return {}
        metrics: dict[str, float] = {}
        for number, name in enumerate(names_of(self.components)):
            played = [episode for episode in episodes if episode["options"]["component"] == number]
            if played:
                metrics[f"episodes/{name}"] = len(played)
            for key in ("return", "success", "turns"):
                values = [episode[key] for episode in played if episode[key] is not None]
                if values:
                    metrics[f"{key}/{name}"] = float(np.mean(values))
        return metrics

    def make_env(self, infos: Sequence[str] = ()) -> MakeEnv:
        """Function that makes one place of the pool: the environment, or all of them as one.

        Args:
            infos: infos that are asked for beside those of the settings.
        """
        asked = [{"infos": (*(each.kwargs.get("infos") or ()), *infos)} if infos else {} for each in self.components]
        makers = [
            env_maker(each.env, wrappers=self.wrappers, **{**each.kwargs, **more})
            for each, more in zip(self.components, asked, strict=True)
        ]
        return makers[0] if len(makers) == 1 else partial(MixedEnv, makers)


def make_curriculum(config: TrainerConfig) -> Curriculum:
    """The curriculum that the settings ask for. Its environments are made once; where tasks are ranked, they are built.

    Raises:
        InvalidOptionError: an environment is not of text, does not take what the curriculum asks for, or a setting has
            a value that it cannot have.
        gymnasium.error.Error: there is no such id.
    """
    axes, _ = split_difficulty(config.difficulty)
    ladder = ladder_of(config)
    components = (*(ladder or [Component(config.env, config.set)]), *components_of(config.mixture))
    names_of(components)
    for component in components:
        _check_component(component, config)
    return Curriculum(
        components,
        horizon=tuple(config.horizon),
        horizon_schedule=horizon_schedule(config),
        levels=len(ladder) or (config.difficulty_levels if axes else 0),
        difficulty_schedule=difficulty_schedule(config),
        ladder=len(ladder),
        tasks=tuple(_ranked_tasks(component, axes, config) for component in components) if axes else (),
        wrappers=config.wrappers,
    )


def ladder_of(config: TrainerConfig) -> list[Component]:
    """The environment at each level of its settings, from easy to hard; none where levels are not of settings."""
    _, rungs = split_difficulty(config.difficulty)
    return [Component(config.env, {**config.set, **read_settings(config.env, rung, config.set)}) for rung in rungs]


def names_of(components: Sequence[Component]) -> list[str]:
    """A name per component: its id, and those of its settings that tell it from others of the same id.

    Raises:
        InvalidOptionError: two components are the same.

    >>> names_of([Component("a/A-v0", {"rooms": 2, "hints": 1}), Component("a/A-v0", {"rooms": 4, "hints": 1})])
    ['a/A-v0 rooms=2', 'a/A-v0 rooms=4']
    """
    names = []
    for component in components:
        others = [other.kwargs for other in components if other.env == component.env]
        telling = [
            f"{name}={value}"
            for name, value in component.kwargs.items()
            if any(name not in other or other[name] != value for other in others)
        ]
        names.append(" ".join([component.env, *telling]))
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidOptionError(f"mixture or difficulty names {name} twice; give it once, with a larger weight")
    return names


def _check_component(component: Component, config: TrainerConfig) -> None:
    """Refuse an environment that is not of text, or would ignore what the curriculum asks of an episode."""
    env = make_text_env(component.env, component.kwargs, config.wrappers)
    follows = isinstance(env.unwrapped, TextEnv)
    env.close()
    needed = {
        "horizon": "the option max_turns of reset" if config.horizon else "",
        "difficulty": "tasks whose complexity is measured" if split_difficulty(config.difficulty)[0] else "",
        "difficulty_success": "info['success']" if config.difficulty_success is not None else "",
    }
    for setting, what in needed.items():
        if what and not follows:
            raise InvalidOptionError(f"{setting} needs {what}, which {component.env} does not have: it is no TextEnv")


def _ranked_tasks(component: Component, axes: Sequence[str], config: TrainerConfig) -> Indices:
    """Indices of an environment's first tasks from the easiest to the hardest."""
    env = make_text_env(component.env, component.kwargs, config.wrappers)
    try:
        measured = _measure_tasks(env, component.env, config)
    finally:
        env.close()
    for axis in axes:
        values = {task[axis] for task in measured}
        if None in values:
            raise InvalidOptionError(f"difficulty={axis}: {component.env} does not measure it in all of its tasks")
        if len(values) == 1:
            raise InvalidOptionError(
                f"difficulty={axis}: it is {values.pop()} in all of the first {len(measured)} tasks of "
                f"{component.env}; take another axis, or settings per level, such as rooms=2 rooms=4"
            )
    return rank(measured, axes)


def _measure_tasks(env: gymnasium.Env[str, str], name: str, config: TrainerConfig) -> Complexities:
    """Complexity of each of an environment's first tasks."""
    player = env.unwrapped
    assert isinstance(player, TextEnv)
    sizes = (config.difficulty_tasks, player.num_tasks, player.tasks.size(player.split))
    count = min(size for size in sizes if size is not None)
    if count < config.difficulty_levels:
        raise InvalidOptionError(f"difficulty_levels={config.difficulty_levels}: {name} has {count} tasks")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"Measuring {count} tasks of {name}", total=count)
        player.tasks.prepare(player.split, range(count), progress=lambda done: progress.update(bar, completed=done))
        return [player.tasks.task(player.split, index).complexity.to_dict() for index in range(count)]


def rank(measured: Complexities, axes: Sequence[str]) -> Indices:
    """Indices of tasks from the easiest to the hardest.

    A task's difficulty is the sum over the axes of the number of tasks that are easier on that axis; tasks that are
    equally difficult stay in their order.

    Args:
        measured: complexity of each task, by axis.
        axes: names of the axes.

    >>> rank([{"state_size": 9}, {"state_size": 4}, {"state_size": 9}, {"state_size": 5}], ["state_size"]).tolist()
    [1, 3, 0, 2]
    """
    values = np.array([[task[axis] for axis in axes] for task in measured], dtype=np.float64)
    easier = sum(np.searchsorted(np.sort(column), column) for column in values.T)
    return np.argsort(easier, kind="stable")
