"""DAgger beside SFT at equal labels, on TextWorld's coin collector, with the tiny policy of the demo.

python -m benchmarks.imitation --labels 100 --seeds 5
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import tyro
from rich.table import Table

from baselines import dagger, demo
from baselines.command_line import let_waiting_threads_sleep

METHODS = {"SFT": 1, "DAgger": 5}
"""Number of iterations of DAgger; one is SFT on the oracle's episodes."""

_STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Quantile of Student's distribution for a 95% interval of a mean, by number of values."""


@dataclass(frozen=True)
class Config:
    """Compare DAgger with SFT on the same number of labels."""

    labels: int = 100
    """Number of labels of each method; a demonstration has five."""
    seeds: int = 5
    """Number of times that everything is done, from the random weights on; 2 to 10."""
    train_tasks: int = 50
    """Number of games to learn from."""
    test_tasks: int = 50
    """Number of held-out games."""
    random_episodes: int = 300
    """Number of transcripts of random play from which the policy learns the language of the games."""
    epochs: float = 12.0
    """Number of passes over the labels."""


@dataclass(frozen=True)
class Result:
    """What a method reached, and what its labels cost.

    Attributes:
        success: share of the held-out games that were won.
        calls: number of states in which the oracle was asked.
    """

    success: float
    calls: int


def compare(config: Config, seed: int, folder: Path) -> dict[str, Result]:
    """Result on the held-out games by method, for policies that begin with the same weights."""
    from baselines.evaluate import evaluate_policy

    tasks: dict[str, Any] = {"train_tasks": config.train_tasks, "test_tasks": config.test_tasks}
    first = demo.Config(out=folder, seed=seed, random_episodes=config.random_episodes, **tasks)
    folder.mkdir()
    demo.make_games(first)
    reader = demo.read_language(first, demo.write_random_play(first))
    results = {}
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
        metrics = (settings.out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        calls = sum(json.loads(line)["expert_calls"] for line in metrics)
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
        results[name] = Result(fmean(episode.success for episode in result.episodes), calls)
    return results


def interval(values: list[float]) -> str:
    """A mean with its 95% interval."""
    half = _STUDENT[len(values)] * stdev(values) / len(values) ** 0.5
    return f"{fmean(values):.3f} [{fmean(values) - half:.3f}, {fmean(values) + half:.3f}]"


def main() -> None:
    """Print success and calls of the oracle per seed, and their means."""
    let_waiting_threads_sleep()
    config = tyro.cli(Config)
    with tempfile.TemporaryDirectory() as folder:
        runs = [compare(config, seed, Path(folder) / str(seed)) for seed in range(config.seeds)]
    table = Table(title=f"Success on {config.test_tasks} held-out games after {config.labels} labels")
    for column in ("method", *(f"seed {seed}" for seed in range(config.seeds)), "mean"):
        table.add_column(column)
    rows = {name: [run[name].success for run in runs] for name in METHODS}
    rows["DAgger - SFT"] = [run["DAgger"].success - run["SFT"].success for run in runs]
    for name, values in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in values), interval(values))
    for name in METHODS:
        calls = [run[name].calls for run in runs]
        table.add_row(f"{name}: calls of the oracle", *map(str, calls), f"{fmean(calls):.0f}")
    demo.console.print(table)


if __name__ == "__main__":
    main()
