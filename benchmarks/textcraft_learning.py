"""A tiny policy on TextCraft: a few demonstrations, then GRPO.

    python -m benchmarks.textcraft_learning --out runs/textcraft-learning --plot curve.svg

The policy has two layers and random weights. It learns ten recipe graphs and is measured on these: names of things that
it has never read are more than it can copy, so of held-out graphs it solves none. What the benchmark shows is that
episodes, rewards and credit of this world teach a policy what its demonstrations have not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import tyro

from baselines import grpo, sft
from baselines.policy.models import make_tiny_policy
from textagent_gym.evaluation import demonstrate

ENV = "textagent/TextCraft-v0"
KWARGS: dict[str, Any] = {
    "depth": 2, "recipes": 4, "branching": [1, 2], "counts": [1, 2], "max_turns": "2x", "reward_density": "dense",
    "num_tasks": 10,
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    """Teach a tiny policy with demonstrations of some graphs, then let it play all ten."""

    out: Path = Path("runs/textcraft-learning")
    """Folder of the run."""
    demonstrated: int = 3
    """Number of the ten graphs that are demonstrated in full; of the others, the policy reads random play."""
    epochs: float = 60.0
    """Number of passes over the demonstrations."""
    iterations: int = 60
    """Number of iterations of GRPO."""
    seed: int = 0
    """Seed of the weights and of the sampling."""
    plot: Path | None = None
    """File of the learning curve; its ending decides the format."""


def start(config: Config) -> Path:
    """The policy that GRPO begins with."""
    config.out.mkdir(parents=True, exist_ok=True)
    env = gymnasium.make(ENV, **KWARGS)
    graphs = [demonstrate(env, {"task_index": index}) for index in range(KWARGS["num_tasks"])]
    texts = [message["content"] for graph in graphs for message in graph["messages"]]
    # What is not demonstrated is read too, or its names would be unknown words.
    make_tiny_policy(config.out / "tiny", texts, hidden=64, layers=2, heads=4, seed=config.seed)
    file = config.out / "demos.jsonl"
    lines = graphs[: config.demonstrated] + [first_turns(graph) for graph in graphs[config.demonstrated :]]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return sft.run(
        sft.Config(
            model=str(config.out / "tiny"), demos=file, out=config.out / "start", epochs=config.epochs, batch_size=10,
            learning_rate=2e-3, seed=config.seed,
        )
    )  # fmt: skip


def first_turns(graph: dict[str, Any]) -> dict[str, Any]:
    """A demonstration without its last command, which crafts the goal."""
    return {**graph, "messages": graph["messages"][:-2]}


def learn(config: Config, policy: Path) -> list[dict[str, Any]]:
    """Metrics of every iteration."""
    out = config.out / "grpo"
    grpo.run(
        grpo.Config(
            model=str(policy), env=ENV, set=KWARGS, out=out, iterations=config.iterations, groups=10, group_size=8,
            slots=80, max_action_tokens=32, learning_rate=5e-4, warmup=5, credit="turn", minibatches=4,
            microbatch=16_384, seed=config.seed,
        )
    )  # fmt: skip
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def draw(metrics: list[dict[str, Any]], file: Path) -> None:
    """Success and return over the iterations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    for name in ("success", "return"):
        axes.plot([each["iteration"] for each in metrics], [each[name] for each in metrics], label=name)
    axes.set(xlabel="iteration of 80 episodes", ylim=(0, 1), title="GRPO on ten recipe graphs")
    axes.legend()
    figure.savefig(file)


def main(config: Config) -> None:
    """Train, and print success before and after."""
    metrics = learn(config, start(config))
    first, last = (sum(each["success"] for each in part) / 5 for part in (metrics[:5], metrics[-5:]))
    print(f"Success in training: {first:.2f} in the first five iterations, {last:.2f} in the last five")
    if config.plot is not None:
        draw(metrics, config.plot)


if __name__ == "__main__":
    main(tyro.cli(Config))
