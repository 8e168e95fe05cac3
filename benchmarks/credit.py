"""What exact states buy at an equal number of env steps: success of GRPO, GiGPO and VinePPO on the lights world.

python -m benchmarks.credit

Every method begins with the same policy, which has learned from a few demonstrations how to speak, and spends the same
number of env steps; those of VinePPO's branches count. A method is judged by its training episodes, which the current
policy has just played.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.learning import prepare, start_of_lights

ENV, SWITCHES, DEMOS = "lights/Lights-v0", 3, 60
PARTS = 3  # Parts of the budget, each a column of the table.
SIZES: dict[str, dict[str, int]] = {
    "grpo": {"groups": 4, "group_size": 8},
    "gigpo": {"groups": 4, "group_size": 8},
    "vineppo": {"groups": 4, "group_size": 2, "branches": 2},
}
"""Sizes at which an iteration of each method takes about as many env steps."""


@dataclass(frozen=True)
class Config:
    """How much is compared."""

    steps: int = 6_000
    """Number of env steps per run."""
    seeds: int = 5
    """Number of runs per method."""


class _SpentError(Exception):
    """The env steps of a run are spent."""


def curve(method: str, policy: Path, out: Path, steps: int, seed: int) -> list[tuple[int, float]]:
    """Env steps spent so far, and success, for every iteration of a run."""
    from importlib import import_module

    module = import_module(f"baselines.{method}")
    points: list[tuple[int, float]] = []

    def log(metrics: dict[str, Any]) -> None:
        spent = (points[-1][0] if points else 0) + int(metrics["env_steps"])
        points.append((spent, float(metrics["success"])))
        if spent >= steps:
            raise _SpentError

    config = module.Config(
        model=str(policy),
        env=ENV,
        set={"switches": SWITCHES, "max_turns": "2x", "split": "train"},
        out=out,
        iterations=steps,
        slots=32,
        max_action_tokens=6,
        learning_rate=1e-3,
        minibatches=1,
        checkpoint_every=steps,
        seed=seed,
        **SIZES[method],
    )
    with suppress(_SpentError):
        module.run(config, log)
    return points


def by_part(points: list[tuple[int, float]], steps: int) -> list[float]:
    """Mean success of the iterations in each part of the budget."""
    parts: list[list[float]] = [[] for _ in range(PARTS)]
    for spent, success in points:
        parts[min(PARTS - 1, spent * PARTS // steps)].append(success)
    return [float(np.mean(part)) if part else float("nan") for part in parts]


def main(config: Config) -> None:
    """Print the success of each method, part by part of the budget."""
    prepare()
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy = start_of_lights(folder, seed=0, demos=DEMOS)
        runs = [(method, seed) for method in SIZES for seed in range(config.seeds)]
        rows: dict[str, list[list[float]]] = {method: [] for method in SIZES}
        for method, seed in track(runs, "Training", console=console):
            points = curve(method, policy, folder / f"{method}-{seed}", config.steps, seed)
            rows[method].append(by_part(points, config.steps))
    table = Table(title=f"Success on {ENV}, {config.seeds} seeds: mean (deviation)", header_style="bold")
    table.add_column("method")
    for part in range(PARTS):
        table.add_column(f"to {(part + 1) * config.steps // PARTS:,} steps")
    for method, seeds in rows.items():
        cells = [f"{np.nanmean(part):.2f} ({np.nanstd(part):.2f})" for part in np.array(seeds).T]
        table.add_row(method, *cells)
    console.print(table)


if __name__ == "__main__":
    main(tyro.cli(Config))
