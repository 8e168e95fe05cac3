"""What the native engine of TextWorld costs as worlds grow, beside plain TextWorld and TextWorldExpress.

    python -m benchmarks.textworld_scaling --plot docs/measurements/textworld-scaling.svg

Both sides play the same games by the same commands: groups of random admissible walks, as a trainer plays them. Times
are of the processor, those of Java's processes included, without resets. A group is played in games that nobody has
played before; then once more, so that every turn is known; then with every turn forgotten before it is played.
TextWorldExpress (its own text and maps, so an anchor for speed only) is measured where `pip install textworld-express`
and Java are there.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.textworld_env import per_second, processor_seconds
from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.commands import admissible_commands
from textagent_gym.domains.textworld.engines.answers import play
from textagent_gym.domains.textworld.specs import Spec, make_spec

SIZES = ((2, 3, 4), (4, 6, 8), (8, 12, 12), (12, 24, 12), (20, 40, 20))
"""Rooms, objects and quest length."""

INFORMATION = {
    "admissible actions": ("admissible_actions",),
    "and the next best": ("admissible_actions", "oracle_action"),
}
"""What is asked for after every step, by what the table calls it."""

EXPRESS_SECONDS = 20.0
"""Seconds of the processor for which TextWorldExpress plays before it is measured, and again while it is: Java compiles
while it runs."""

Walk = list[str]
"""Commands of an episode."""


@dataclass(frozen=True)
class Config:
    """What is measured."""

    games: int = 3
    """Number of games of each size."""
    group: int = 8
    """Number of episodes in each game."""
    turns: int = 40
    """Most turns of an episode."""
    upstream_episodes: int = 2
    """Number of these episodes that plain TextWorld plays in each game."""
    sizes: tuple[tuple[int, int, int], ...] = SIZES
    """Worlds: rooms, objects and quest length of each."""
    plot: Path | None = None
    """SVG file for the plot of costs over admissible actions."""


@dataclass(frozen=True)
class Costs:
    """Costs in one size of world with the same information on both sides, in microseconds per step.

    Attributes:
        size: rooms, objects and quest length.
        information: what is asked for, as a key of `INFORMATION`.
        admissible: mean number of admissible actions.
        known: step that was played before.
        group: step of a group in a game that nobody has played.
        new: step that nobody has played.
        upstream: step of plain TextWorld.
        snapshot: snapshot and going back to it.
    """

    size: tuple[int, int, int]
    information: str
    admissible: float
    known: float
    group: float
    new: float
    upstream: float
    snapshot: float


def measure(size: tuple[int, int, int], information: str, config: Config) -> Costs:
    """Measure one size of world with one kind of information."""
    rooms, objects, length = size
    options: dict[str, Any] = {"rooms": rooms, "objects": objects, "quest_length": length}
    env: Any = gymnasium.make(
        "textagent/TextWorld-v0",
        **options,
        infos=INFORMATION[information],
        max_turns=10**9,
        num_tasks=config.games,
        split="test",
    ).unwrapped
    walks, listed = _walks(env, config)
    group = min(_replay_anew(env, walks) for _ in range(3))
    known = min(_replay(env, walks) for _ in range(3))
    new = min(_replay(env, walks, before_step=_forget_turns) for _ in range(3))
    snapshot = 1e6 / per_second(lambda: env.restore(env.snapshot()), 500)
    env.close()
    upstream = _upstream(make_spec("custom", **options), walks, information, config)
    return Costs(size, information, listed, known, group, new, upstream, snapshot)


def _replay_anew(env: Any, games: list[list[Walk]]) -> float:
    """Microseconds per step of walks through games of which nothing is known, not even to the planner."""
    store.forget()
    _forget_turns()
    return _replay(env, games)


def _forget_turns() -> None:
    play.cache_clear()
    admissible_commands.cache_clear()


def _walks(env: Any, config: Config) -> tuple[list[list[Walk]], float]:
    """Random walks through each game, and the mean number of admissible actions."""
    rng, listed, games = random.Random(0), 0, []
    for index in range(config.games):
        games.append([])
        for _ in range(config.group):
            _, info = env.reset(options={"task_index": index})
            walk: Walk = []
            over = False
            while not over and len(walk) < config.turns:
                listed += len(info["admissible_actions"])
                walk.append(rng.choice(info["admissible_actions"]))
                *_, over, _, info = env.step(walk[-1])
            games[-1].append(walk)
    return games, listed / _steps(games)


def _steps(games: list[list[Walk]]) -> int:
    return sum(len(walk) for walks in games for walk in walks)


def _replay(env: Any, games: list[list[Walk]], *, before_step: Callable[[], None] | None = None) -> float:
    """Microseconds per step of walks."""
    used = 0.0
    for index, walks in enumerate(games):
        for walk in walks:
            env.reset(options={"task_index": index})
            if before_step is None:
                started = time.process_time()
                for action in walk:
                    env.step(action)
                used += time.process_time() - started
                continue
            for action in walk:
                before_step()
                started = time.process_time()
                env.step(action)
                used += time.process_time() - started
    return 1e6 * used / _steps(games)


def _upstream(spec: Spec, games: list[list[Walk]], information: str, config: Config) -> float:
    """Microseconds per step of plain TextWorld on the beginning of the same walks."""
    import textworld

    infos = textworld.EnvInfos(
        admissible_commands=True, policy_commands="oracle_action" in INFORMATION[information], won=True, lost=True
    )
    used, played = 0.0, [walks[: config.upstream_episodes] for walks in games]
    with tempfile.TemporaryDirectory() as folder:
        for index, walks in enumerate(played):
            env = textworld.start(str(store.export(spec, "test", index, Path(folder))), infos)
            for walk in walks:
                env.reset()
                started = time.process_time()
                for command in walk:
                    env.step(command)
                used += time.process_time() - started
            env.close()
    return 1e6 * used / _steps(played)


def express() -> str:
    """What TextWorldExpress does in a second, or why it is not measured."""
    try:
        from textworld_express import TextWorldExpressEnv
    except ImportError as error:
        return f"TextWorldExpress is not measured: {error}."
    try:
        env = TextWorldExpressEnv(envStepLimit=10**6)
    except OSError as error:
        return f"TextWorldExpress is not measured, because Java does not start: {error}."
    java = env._gateway.java_process.pid
    env.load(gameName="cookingworld", gameParams="")
    _play_express(env, java)
    stepping = _play_express(env, java)
    started = processor_seconds() + _processor_of(java)
    for seed in range(300):
        env.reset(seed=seed % 50, gameFold="train")
    resetting = 300 / (processor_seconds() + _processor_of(java) - started)
    env.close()
    return f"TextWorldExpress, cooking, valid actions: {stepping:,.0f} steps/s, {resetting:,.0f} resets/s."


def _play_express(env: Any, java: int) -> float:
    """Steps of a random walk through games of TextWorldExpress per second of the processor."""
    rng, done, steps, resets = random.Random(0), True, 0, 0
    infos: dict[str, Any] = {}
    started = processor_seconds() + _processor_of(java)
    while (used := processor_seconds() + _processor_of(java) - started) < EXPRESS_SECONDS:
        for _ in range(100):
            if done:
                _, infos = env.reset(seed=resets % 50, gameFold="train")
                resets += 1
            _, _, done, infos = env.step(rng.choice(infos["validActions"]))
            steps += 1
    return steps / used


def _processor_of(process: int) -> float:
    """Seconds of the processor that another process has used (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def plot(costs: list[Costs], path: Path) -> None:
    """Draw costs of a step over the number of admissible actions."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
    for ax, information in zip(axes, INFORMATION, strict=True):
        shown = [cost for cost in costs if cost.information == information]
        for label, name in (
            ("plain TextWorld", "upstream"),
            ("native, new turns", "new"),
            ("native, a group in a new game", "group"),
            ("native, known turns", "known"),
        ):
            costs_shown = [getattr(cost, name) for cost in shown]
            ax.plot([cost.admissible for cost in shown], costs_shown, marker="o", label=label)
        ax.set(title=information, xscale="log", yscale="log", xlabel="admissible actions, mean of the walks")
    axes[0].set_ylabel("microseconds per step")
    axes[0].legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    """Print the costs of every size."""
    config = tyro.cli(Config)
    console, costs = Console(), []
    table = Table(title="TextWorld over the size of the world, microseconds per step", header_style="bold")
    for column in ("world", "information", "admissible", "known", "group", "new", "TextWorld", "ratios", "snapshot"):
        table.add_column(column, no_wrap=True)
    console.print(express())
    for size, information in product(config.sizes, INFORMATION):
        cost = measure(size, information, config)
        costs.append(cost)
        table.add_row(
            "w{}-o{}-q{}".format(*size),
            information,
            f"{cost.admissible:.1f}",
            f"{cost.known:.1f}",
            f"{cost.group:.1f}",
            f"{cost.new:.0f}",
            f"{cost.upstream:,.0f}",
            ", ".join(f"{cost.upstream / ours:.0f}" for ours in (cost.known, cost.group, cost.new)),
            f"{cost.snapshot:.1f}",
        )
        if config.plot is not None and information == list(INFORMATION)[-1]:
            plot(costs, config.plot)  # What is measured survives a run that is stopped.
        console.print(f"{cost}")
    console.print(table)


if __name__ == "__main__":
    main()
