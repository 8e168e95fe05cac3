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
from statistics import median
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
ROUNDS = 5
"""Number of times that each is played; the median counts."""


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


def play(step: Callable[[str], Any], commands: list[str]) -> None:
    """Give commands one after the other."""
    for command in commands:
        step(command)


def measure(env: TextCraftEnv, theirs: Any, goals: list[tuple[int, str]]) -> dict[str, tuple[float, float]]:
    """Seconds of upstream and of ours, for a reset and for a step."""
    resets: list[tuple[float, float]] = []
    steps: list[tuple[float, float]] = []
    for number, task in goals:
        env.reset(options={"task": task})
        commands = [*env.oracle()[:-1], "inventory", "get 1 sky"]  # The last one would end the episode.
        for _ in range(ROUNDS):
            resets.append(
                (
                    seconds(lambda n=number: theirs.reset(data_idx=n), 1),
                    seconds(lambda t=task: env.reset(options={"task": t}), 1),
                )
            )
            taken = tuple(seconds(lambda s=each.step, c=commands: play(s, c), 1) for each in (theirs, env))
            steps.append((taken[0] / len(commands), taken[1] / len(commands)))
    return {
        name: (median(pair[0] for pair in pairs), median(pair[1] for pair in pairs))
        for name, pairs in (("reset", resets), ("step", steps))
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
    """Seconds of a reset to a recipe graph that is drawn for it."""
    env = gymnasium.make("textagent/TextCraft-v0").unwrapped
    indices = iter(range(100))
    return seconds(lambda: env.reset(options={"task_index": next(indices)}), 100)


def graph_reset() -> float:
    """Seconds of a reset to a recipe graph that was drawn before."""
    env = gymnasium.make("textagent/TextCraft-v0").unwrapped
    return min(seconds(lambda: env.reset(options={"task_index": 0}), 200) for _ in range(ROUNDS))


if __name__ == "__main__":
    main()
