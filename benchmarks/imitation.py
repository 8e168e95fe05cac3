"""DAgger beside SFT at equal labels, on TextWorld's coin collector, with the tiny policy of the demo.

python -m benchmarks.imitation --labels 100 --seeds 5
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import tyro
from rich.table import Table

from baselines import dagger, demo
from baselines.command_line import let_waiting_threads_sleep
from benchmarks.learning import interquartile_mean, interval

METHODS = {"SFT": 1, "DAgger": 5}
"""Number of iterations of DAgger; one is SFT on the oracle's episodes."""


@dataclass(frozen=True)
class Config:
    """Compare DAgger with SFT on the same number of labels."""

    labels: int = 100
    """Number of labels of each method; a demonstration has five."""
    seeds: int = 5
    """Number of times that everything is done, from the random weights on."""
    train_tasks: int = 50
    """Number of games to learn from."""
    test_tasks: int = 50
    """Number of held-out games."""
    random_episodes: int = 300
    """Number of transcripts of random play from which the policy learns the language of the games."""
    epochs: float = 12.0
    """Number of passes over the labels."""


def compare(config: Config, seed: int, folder: Path) -> dict[str, float]:
    """Success on the held-out games by method, for policies that begin with the same weights."""
    from baselines.evaluation.evaluate import evaluate_policy

    tasks: dict[str, Any] = {"train_tasks": config.train_tasks, "test_tasks": config.test_tasks}
    first = demo.Config(out=folder, seed=seed, random_episodes=config.random_episodes, **tasks)
    folder.mkdir()
    demo.make_games(first)
    reader = demo.read_language(first, demo.write_random_play(first))
    success = {}
    for name, iterations in METHODS.items():
        settings = dagger.Config(
            model=str(reader),
            out=folder / name,
            env=demo.register(),
            set={"num_tasks": config.train_tasks},
            labels=config.labels,
            iterations=iterations,
            slots=32,
            max_action_tokens=demo.MAX_ACTION_TOKENS,
            epochs=config.epochs,
            batch_size=8,
            learning_rate=2e-3,
            seed=seed,
        )
        policy = dagger.run(settings)
        spec = demo.make_env(split="test").spec
        assert spec is not None
        result, _ = evaluate_policy(
            str(policy),
            spec,
            {},
            tasks=config.test_tasks,
            episodes=2,
            max_action_tokens=demo.MAX_ACTION_TOKENS,
        )
        success[name] = fmean(episode.success for episode in result.episodes)
    return success


def main() -> None:
    """Print success per seed, and its interquartile mean with the 95% interval."""
    let_waiting_threads_sleep()
    config = tyro.cli(Config)
    with tempfile.TemporaryDirectory() as folder:
        runs = [compare(config, seed, Path(folder) / str(seed)) for seed in range(config.seeds)]
    table = Table(title=f"Success on {config.test_tasks} held-out games after {config.labels} labels")
    for column in ("method", *(f"seed {seed}" for seed in range(config.seeds)), "interquartile mean"):
        table.add_column(column)
    rows = {name: [run[name] for run in runs] for name in METHODS}
    rows["DAgger - SFT"] = [run["DAgger"] - run["SFT"] for run in runs]
    for name, values in rows.items():
        middle, (low, high) = interquartile_mean(np.array(values)), interval([values])
        table.add_row(name, *(f"{value:.2f}" for value in values), f"{middle:.3f} [{low:.3f}, {high:.3f}]")
    demo.console.print(table)


if __name__ == "__main__":
    main()
