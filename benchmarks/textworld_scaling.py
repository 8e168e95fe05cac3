"""What the native engine of TextWorld costs as worlds grow, beside plain TextWorld and TextWorldExpress.

    python -m benchmarks.textworld_scaling --plot docs/measurements/textworld-scaling.svg

Random admissible walks, with the text and the admissible actions after every step; times are of the processor, those of
the compiler's and Java's processes included. Known turns were played before in this process, new ones were not.
TextWorldExpress (its own text and maps, so an anchor for speed only) is measured where `pip install textworld-express`
and Java are there.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.textworld_env import per_second, processor_seconds
from textagent_gym.domains.textworld.commands import admissible_commands
from textagent_gym.domains.textworld.engines.answers import play
from textagent_gym.domains.textworld.generation import draw_as_made
from textagent_gym.domains.textworld.specs import Spec, make_spec

SIZES = ((2, 3, 4), (4, 6, 8), (8, 12, 12), (12, 24, 12), (20, 40, 20))
"""Rooms, objects and quest length."""

EXPRESS_SECONDS = 20.0
"""Seconds of the processor for which TextWorldExpress plays before it is measured, and again while it is: Java compiles
while it runs."""


@dataclass(frozen=True)
class Config:
    """What is measured."""

    steps: int = 1_500
    """Steps of each walk."""
    upstream_steps: int = 100
    """Steps of plain TextWorld."""
    sizes: tuple[tuple[int, int, int], ...] = SIZES
    """Worlds: rooms, objects and quest length of each."""
    plot: Path | None = None
    """SVG file for the plot of costs over admissible actions."""


@dataclass(frozen=True)
class Costs:
    """Costs in one size of world, in microseconds for each step.

    Attributes:
        size: rooms, objects and quest length.
        admissible: mean number of admissible actions.
        new: step that nobody in the process has played.
        known: step that was played before.
        upstream: step of plain TextWorld.
        snapshot: snapshot and going back to it.
    """

    size: tuple[int, int, int]
    admissible: float
    new: float
    known: float
    upstream: float
    snapshot: float


def measure(size: tuple[int, int, int], config: Config) -> Costs:
    """Measure one size of world."""
    rooms, objects, length = size
    spec = make_spec("custom", rooms=rooms, objects=objects, quest_length=length)
    options: dict[str, Any] = {"rooms": rooms, "objects": objects, "quest_length": length}
    env: Any = gymnasium.make(
        "textagent/TextWorld-v0", **options, infos=("admissible_actions",), max_turns=10**9, num_tasks=1
    ).unwrapped
    actions, listed = _walk(env, config.steps)
    new = min(_replay(env, actions, anew=True) for _ in range(3))
    known = min(_replay(env, actions) for _ in range(3))
    snapshot = 1e6 / per_second(lambda: env.restore(env.snapshot()), 500)
    env.close()
    return Costs(size, listed, new, known, _upstream(spec, config), snapshot)


def _walk(env: Any, steps: int) -> tuple[list[str | None], float]:
    """A random walk as actions, `None` for a reset, and the mean number of admissible actions."""
    rng, listed, over = random.Random(0), 0, True
    actions: list[str | None] = []
    info: dict[str, Any] = {}
    while len(actions) < steps:
        if over:
            _, info = env.reset(options={"task_index": 0})
            actions.append(None)
        actions.append(rng.choice(info["admissible_actions"]))
        listed += len(info["admissible_actions"])
        *_, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    return actions, listed / len(actions)


def _replay(env: Any, actions: list[str | None], *, anew: bool = False) -> float:
    """Microseconds for each step of a walk, of which nothing is known at its beginning if it is played `anew`."""
    if anew:
        play.cache_clear()
        admissible_commands.cache_clear()
    started = time.process_time()
    for action in actions:
        if action is None:
            env.reset(options={"task_index": 0})
        else:
            env.step(action)
    return 1e6 * (time.process_time() - started) / len(actions)


def _upstream(spec: Spec, config: Config) -> float:
    """Microseconds for each step of plain TextWorld."""
    import textworld

    with tempfile.TemporaryDirectory() as folder:
        options = textworld.GameOptions()
        options.path = str(Path(folder, "game.z8"))
        story = textworld.generator.compile_game(draw_as_made(spec, 2), options)
        env, rng = textworld.start(story, textworld.EnvInfos(admissible_commands=True)), random.Random(0)
        state = env.reset()
        started = time.process_time()
        for _ in range(config.upstream_steps):
            state, _, done = env.step(rng.choice(state.admissible_commands))
            state = env.reset() if done else state
        return 1e6 * (time.process_time() - started) / config.upstream_steps


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

    figure, axes = plt.subplots(figsize=(6, 4))
    admissible = [cost.admissible for cost in costs]
    for label, name in (
        ("plain TextWorld", "upstream"),
        ("native, new turns", "new"),
        ("native, known turns", "known"),
    ):
        axes.plot(admissible, [getattr(cost, name) for cost in costs], marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="admissible actions, mean of a walk", ylabel="microseconds per step")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    """Print the costs of every size."""
    config = tyro.cli(Config)
    console, costs = Console(), []
    table = Table(title="TextWorld over the size of the world", header_style="bold")
    for column in ("world", "admissible", "known µs", "new µs", "upstream µs", "ratio", "snapshot µs"):
        table.add_column(column)
    console.print(express())
    for size in config.sizes:
        cost = measure(size, config)
        costs.append(cost)
        table.add_row(
            "w{}-o{}-q{}".format(*size),
            f"{cost.admissible:.1f}",
            f"{cost.known:.1f}",
            f"{cost.new:.0f}",
            f"{cost.upstream:.0f}",
            f"{cost.upstream / cost.known:.0f}, {cost.upstream / cost.new:.0f}",
            f"{cost.snapshot:.1f}",
        )
        if config.plot is not None:  # What is measured survives a run that is stopped.
            plot(costs, config.plot)
        console.print(f"{cost}")
    console.print(table)


if __name__ == "__main__":
    main()
