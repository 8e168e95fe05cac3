"""BabyAI beside AgentGym's: the same levels, the same actions, one process.

    BABYAI_UPSTREAM=FOLDER python -m benchmarks.babyai_env

The folder is `agentenv-babyai` of AgentGym; nothing of it is kept here.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.babyai import LevelSpec

VARIABLE = "BABYAI_UPSTREAM"
"""Environment variable that names upstream's folder."""
PLAYED = ("GoToRedBall", "GoToObjMazeS7", "UnblockPickup", "KeyCorridorS6R3", "BossLevel")
"""Levels that are played."""
SEEDS = 6
"""Number of tasks per level."""
STEPS = 60
"""Steps per task."""


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


def main() -> None:
    """Print the table."""
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


if __name__ == "__main__":
    main()
