"""BabyAI beside AgentGym's: the same levels, the same actions, one process; and what its expert and its knobs do.

    BABYAI_UPSTREAM=FOLDER python -m benchmarks.babyai_env
    python -m benchmarks.babyai_env --table expert
    python -m benchmarks.babyai_env --table lengths

The folder is `agentenv-babyai` of AgentGym; nothing of it is kept here. The other two tables need no folder.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from types import ModuleType
from typing import Any, Literal

import gymnasium
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from textagent_gym.agents import make_agent
from textagent_gym.domains.babyai import LevelSpec
from textagent_gym.evaluation import play
from textagent_gym.registration import BABYAI_LEVELS

VARIABLE = "BABYAI_UPSTREAM"
"""Environment variable that names upstream's folder."""
PLAYED = ("GoToRedBall", "GoToObjMazeS7", "UnblockPickup", "KeyCorridorS6R3", "BossLevel")
"""Levels that are played."""
SEEDS = 6
"""Number of tasks per level."""
STEPS = 60
"""Steps per task."""
EXPERT_TURNS = 400
"""Turn budget of the expert, in steps."""
OBJECTS = (2, 6, 12, 20)
"""Numbers of objects whose plans are compared."""


@dataclass(frozen=True)
class Config:
    """What is measured."""

    table: Literal["speed", "expert", "lengths"] = "speed"
    """Speed beside upstream's, the expert's success on the forty levels, or plan lengths by number of objects."""
    tasks: int | None = None
    """Number of tasks per level or number of objects; by default 3 of the expert and 60 of the lengths."""


def upstream_class(folder: Path) -> Any:
    """Upstream's environment, without its server and without what it never uses.

    Raises:
        SystemExit: the folder is not `agentenv-babyai`.
    """
    file = folder / "agentenv_babyai" / "environment.py"
    if not file.is_file():
        raise SystemExit(f"{VARIABLE}={str(folder)!r} must be the folder agentenv-babyai of AgentGym")
    stand_ins = {"gym": gymnasium, "matplotlib": ModuleType("matplotlib"), "matplotlib.pyplot": ModuleType("pyplot")}
    for name, module in stand_ins.items():
        sys.modules.setdefault(name, module)
    _restore_flat_cross()
    spec = importlib.util.spec_from_file_location("agentenv_babyai_environment", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BabyAI


def _restore_flat_cross() -> None:
    """Upstream needs `numpy.cross` of plane vectors, which NumPy no longer has."""
    plain = np.cross

    def cross(one: Any, two: Any) -> Any:
        if len(one) == 2:
            return one[0] * two[1] - one[1] * two[0]
        return plain(one, two)

    np.cross = cross


def seconds(work: Callable[[], Any]) -> float:
    """Seconds of processor time of one piece of work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(upstream: Any, level: str) -> tuple[float, float, float]:
    """Seconds of a step: Minigrid's alone, upstream's text, ours; turning and walking at random."""
    from textagent_gym.domains.babyai.commands import PRIMITIVE
    from textagent_gym.domains.babyai.construction import draw

    names = {action: text for text, action in PRIMITIVE.items()}
    grids, theirs, ours = [], [], []
    for index in range(SEEDS):
        actions = np.random.default_rng(index).choice(3, size=STEPS, p=[0.25, 0.25, 0.5])
        env = gymnasium.make(
            f"textagent/BabyAI-{level}-v0", max_turns=10**9, text_format="agentgym", infos=("admissible_actions",)
        ).unwrapped
        env.reset(options={"task_index": index})
        seed = env.tasks.seed("train", index)
        alone, under = (draw(LevelSpec(level=level), seed) for _ in range(2))
        text = object.__new__(upstream)
        text.env = under

        def play(each: Any = alone, actions: Any = actions) -> None:
            for action in actions:
                each.step(int(action))

        def play_text(env: Any = under, text: Any = text, actions: Any = actions) -> None:
            for action in actions:
                text.postprocess_obs(env.step(int(action))[0])

        def play_ours(env: Any = env, actions: Any = actions) -> None:
            for action in actions:
                if env.step(names[int(action)])[2]:
                    env.reset(options={"task": env.task.id})

        grids.append(seconds(play) / STEPS)
        theirs.append(seconds(play_text) / STEPS)
        ours.append(seconds(play_ours) / STEPS)
    return median(grids), median(theirs), median(ours)


def expert_successes(level: str, tasks: int) -> int:
    """Tasks of a level, of the first ones, that the expert solves by steps."""
    env = gymnasium.make(f"textagent/BabyAI-{level}-v0", actions="primitive", max_turns=EXPERT_TURNS)
    agent = make_agent("expert", env)
    return sum(play(env, agent, options={"task_index": index}).success for index in range(tasks))


def mean_length(objects: int, tasks: int, actions: str) -> tuple[float, int]:
    """Mean length of the plans of the first tasks with two rooms of eight by eight cells, and how many have a plan."""
    env = gymnasium.make("textagent/BabyAI-v0", room_size=8, objects=objects, actions=actions)
    lengths = [env.reset(options={"task_index": index})[1]["complexity"].solution_length for index in range(tasks)]
    known = [length for length in lengths if length is not None]
    return fmean(known), len(known)


def print_expert(tasks: int) -> None:
    """Print where the expert does not solve every task, and in how many it does."""
    solved = {level: expert_successes(level, tasks) for level in track(BABYAI_LEVELS, description="Playing")}
    for level, count in solved.items():
        if count < tasks:
            print(f"{level}: {count} of {tasks}")
    print(f"all levels: {sum(solved.values())} of {tasks * len(solved)}")


def print_lengths(tasks: int) -> None:
    """Print the mean lengths of plans by the number of objects."""
    for actions in ("macro", "primitive"):
        for objects in OBJECTS:
            length, known = mean_length(objects, tasks, actions)
            print(f"actions={actions!r}, objects={objects}: {length:.2f} actions, mean of {known} tasks")


def print_speed() -> None:
    """Print the table beside upstream's."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise SystemExit(f"{VARIABLE} must name the folder agentenv-babyai of AgentGym")
    upstream = upstream_class(Path(folder))
    table = Table(title=f"BabyAI: a step with text and available actions, {SEEDS} tasks of {STEPS} steps a level")
    for column in ("level", "Minigrid alone", "AgentGym", "here", "ratio"):
        table.add_column(column)
    for level in PLAYED:
        grid, there, here = measure(upstream, level)
        table.add_row(level, *(f"{1e6 * each:,.0f} µs" for each in (grid, there, here)), f"{there / here:,.1f}")
    Console().print(table)


def main(config: Config) -> None:
    """Print the table that is asked for."""
    if config.table == "expert":
        print_expert(config.tasks or 3)
    elif config.table == "lengths":
        print_lengths(config.tasks or 60)
    else:
        print_speed()


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
