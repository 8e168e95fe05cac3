"""What the native engine of TextWorld costs as worlds grow, beside plain TextWorld and TextWorldExpress.

    python -m benchmarks.textworld_scaling --plot docs/measurements/textworld-scaling.svg

Both sides play the same games by the same commands: groups of random admissible walks, as a trainer plays them. Each
step is timed by itself, by the clock and without resets, and of several times that it is played the shortest counts, so
that a busy machine matters little. A group is played in games that nobody has played before; then once more, so that
every turn is known; then after everything is forgotten and other episodes of the same games have been played, where
only those turns count that nobody has played yet: the same command in the same situation. TextWorldExpress (its own
text and maps, so an anchor for speed only) is measured by the median of its steps, where
`pip install textworld-express` and Java are there.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import compress, product
from pathlib import Path
from statistics import fmean, median
from typing import Any

import gymnasium
import tyro
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.textworld import commands, store
from textagent_gym.domains.textworld.engines import turns
from textagent_gym.domains.textworld.specs import Spec, make_spec

SIZES = ((2, 3, 4), (4, 6, 8), (8, 12, 12), (12, 24, 12), (20, 40, 20))
"""Rooms, objects and quest length."""

INFORMATION = {
    "admissible actions": ("admissible_actions",),
    "and the next best": ("admissible_actions", "oracle_action"),
}
"""What is asked for after every step, by what the table calls it."""

TIMES = 7
"""Number of times that everything is played."""

EXPRESS_STEPS = 5_000
"""Steps that TextWorldExpress plays before it is measured, and again while it is: Java compiles while it runs."""

Walk = list[str]
"""Commands of an episode."""


@dataclass(frozen=True)
class Config:
    """What is measured."""

    games: int = 3
    """Number of games of each size."""
    group: int = 8
    """Number of episodes in each game."""
    others: int = 8
    """Number of other episodes in each game that are played before its turns are measured as new ones."""
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
        new: step that nobody has played, in a game of which other episodes were played.
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
    others, walks, are_new, listed = _walks(env, config)
    group = _shortest(lambda: _replay_anew(env, walks))
    known = _shortest(lambda: _replay(env, walks))
    new = _shortest(lambda: list(compress(_replay_after(env, others, walks), are_new)))
    snapshot = _shortest(lambda: [_seconds(lambda: env.restore(env.snapshot())) for _ in range(100)])
    env.close()
    upstream = _upstream(make_spec("custom", **options), walks, information, config)
    return Costs(size, information, listed, known, group, new, upstream, snapshot)


def _shortest(play_all: Callable[[], list[float]]) -> float:
    """Microseconds per step, of each step the shortest time; `play_all` returns the seconds of every step."""
    return 1e6 * fmean(map(min, zip(*(play_all() for _ in range(TIMES)), strict=True)))


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _replay_anew(env: Any, games: list[list[Walk]]) -> list[float]:
    """Seconds of each step of walks through games of which nothing is known, not even to the planner."""
    _forget()
    return _replay(env, games)


def _replay_after(env: Any, others: list[list[Walk]], games: list[list[Walk]]) -> list[float]:
    """Seconds of each step of walks through games of which nothing is known but other walks."""
    _forget()
    _replay(env, others)
    return _replay(env, games)


def _forget() -> None:
    store.forget()
    turns.forget()
    commands.forget()


def _walks(env: Any, config: Config) -> tuple[list[list[Walk]], list[list[Walk]], list[bool], float]:
    """Random walks through each game.

    Returns:
        other walks; the walks that are measured; of each of their steps, whether it is played there for the first time;
        and the mean number of admissible actions.
    """
    rng = random.Random(0)
    others: list[list[Walk]] = []
    games: list[list[Walk]] = []
    are_new: list[bool] = []
    listed: list[int] = []
    for index in range(config.games):
        walks, played = [], set()
        for episode in range(config.others + config.group):
            _, info = env.reset(options={"task_index": index})
            walk: Walk = []
            over = False
            while not over and len(walk) < config.turns:
                command = rng.choice(info["admissible_actions"])
                if episode >= config.others:
                    listed.append(len(info["admissible_actions"]))
                    are_new.append((env.state_key(), command) not in played)
                played.add((env.state_key(), command))
                walk.append(command)
                *_, over, _, info = env.step(command)
            walks.append(walk)
        others.append(walks[: config.others])
        games.append(walks[config.others :])
    return others, games, are_new, fmean(listed)


def _replay(env: Any, games: list[list[Walk]]) -> list[float]:
    """Seconds of each step of walks."""
    used = []
    for index, walks in enumerate(games):
        for walk in walks:
            env.reset(options={"task_index": index})
            for action in walk:
                used.append(_seconds(partial(env.step, action)))
    return used


def _upstream(spec: Spec, games: list[list[Walk]], information: str, config: Config) -> float:
    """Microseconds per step of plain TextWorld on some of the same walks."""
    import textworld

    infos = textworld.EnvInfos(
        admissible_commands=True, policy_commands="oracle_action" in INFORMATION[information], won=True, lost=True
    )

    def play_walk(env: Any, walk: Walk) -> list[float]:
        env.reset()
        return [_seconds(partial(env.step, command)) for command in walk]

    costs = []
    with tempfile.TemporaryDirectory() as folder:
        for index, walks in enumerate(games):
            env = textworld.start(str(store.export(spec, "test", index, Path(folder))), infos)
            for walk in walks[: config.upstream_episodes]:
                costs.append((_shortest(partial(play_walk, env, walk)), len(walk)))
            env.close()
    return sum(cost * steps for cost, steps in costs) / sum(steps for _, steps in costs)


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
    env.load(gameName="cookingworld", gameParams="")
    _play_express(env)
    stepping = median(_play_express(env))
    resetting = median([_seconds(partial(env.reset, seed=seed % 50, gameFold="train")) for seed in range(300)])
    env.close()
    return f"TextWorldExpress, cooking, valid actions: {1 / stepping:,.0f} steps/s, {1 / resetting:,.0f} resets/s."


def _play_express(env: Any) -> list[float]:
    """Seconds of each step of a random walk through games of TextWorldExpress."""
    rng, done, resets = random.Random(0), True, 0
    infos: dict[str, Any] = {}
    used = []
    for _ in range(EXPRESS_STEPS):
        if done:
            _, infos = env.reset(seed=resets % 50, gameFold="train")
            resets += 1
        action = rng.choice(infos["validActions"])
        started = time.perf_counter()
        _, _, done, infos = env.step(action)
        used.append(time.perf_counter() - started)
    return used


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
