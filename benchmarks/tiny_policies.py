"""A tiny policy learns each of four worlds: fine-tuned on demonstrations, then trained with GRPO.

    python -m benchmarks.tiny_policies textcraft --out runs/tiny

The settings are those of `baselines/recipes/WORLD/tiny`; what is made here are their demonstrations, of the world's
oracle or expert, and the policy with random weights that they begin with. Prints success on held-out tasks before
reinforcement learning and after it, and draws the curves of all worlds whose runs are in the folder. A stopped run
resumes. `--keep benchmarks/policies` keeps what `benchmarks.reference_entries` plays.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.progress import track

from baselines import grpo, sft
from baselines.command_line import let_waiting_threads_sleep, read_config
from baselines.envs.pool import make_text_env
from textagent_gym.evaluation import demonstrate

EXPERTS = {"textcraft": "oracle", "babyai": "oracle", "textworld": "oracle", "scienceworld": "expert"}
"""Who demonstrates each world."""


@dataclass(frozen=True)
class Config:
    """Train a tiny policy."""

    worlds: tyro.conf.Positional[tuple[str, ...]] = tuple(EXPERTS)
    """Worlds that are learned: "textcraft", "babyai", "textworld", "scienceworld"."""
    out: Path = Path("runs/tiny")
    """Folder of the runs."""
    seed: int = 0
    """Seed of the weights, the order of the demonstrations and the sampling."""
    plot: Path | None = None
    """File of the learning curves; its ending decides the format."""
    keep: Path | None = None
    """Folder of the policies that are kept as WORLD/policy, each beside the metrics of its training."""


def settings_of(world: str, config: Config) -> tuple[sft.Config, grpo.Config]:
    """The recipes of a world, in the folder of the run."""
    out = config.out / world
    common = ["--seed", str(config.seed)]
    taught = ["--model", out / "untrained", "--demos", out / "demos.jsonl", "--out", out / "sft"]
    trained = ["--model", out / "sft", "--out", out / "grpo"]
    return (
        read_config(sft.Config, ["--config", f"{world}/tiny/sft.yaml", *common, *map(str, taught)]),
        read_config(grpo.Config, ["--config", f"{world}/tiny/grpo.yaml", *common, *map(str, trained)]),
    )


def record(file: Path, settings: grpo.Config, agent: str, count: int) -> None:
    """Demonstrations of the first tasks, without instructions; those that the file holds are not played again."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    file.write_text("".join(whole), encoding="utf-8")
    env = make_text_env(settings.env, settings.set, settings.wrappers)
    with closing(env), open(file, "a", encoding="utf-8") as demos:
        for index in track(range(len(whole), count), description="Demonstrations"):
            demos.write(json.dumps(demonstrate(env, {"task_index": index}, agent, instructions=False)) + "\n")
            demos.flush()


def learn(world: str, config: Config) -> dict[str, Any]:
    """Success before and after reinforcement learning, and processor seconds of what was done now."""
    from baselines.policy.models import make_tiny_policy

    taught, trained = settings_of(world, config)
    taught.out.parent.mkdir(parents=True, exist_ok=True)
    seconds = {}
    started = time.process_time()
    assert taught.max_demos is not None
    record(taught.demos, trained, EXPERTS[world], taught.max_demos)
    if not (taught.out / "chat.json").exists():
        demos = sft.read_demos(taught.demos)
        texts = [message["content"] for demo in demos for message in demo["messages"]]
        make_tiny_policy(Path(taught.model), texts, hidden=64, layers=2, heads=2, seed=config.seed)
        seconds["demonstrations"] = time.process_time() - started
        started = time.process_time()
        sft.run(taught)
        seconds["sft"] = time.process_time() - started
    started = time.process_time()
    grpo.run(trained, lambda metrics: print({name: metrics.get(name) for name in ("iteration", "success", "return")}))
    seconds["grpo"] = time.process_time() - started
    evaluations = lines_of(trained.out / "evaluations.jsonl")
    return {"before": evaluations[0], "after": evaluations[-1], "seconds": seconds}


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of a run."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def keep(run: Path, place: Path) -> None:
    """Copy the policy of a run of GRPO, and the metrics of its training; what is there is replaced."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copytree(run / "policy", place / "policy")
    shutil.copy(run / "metrics.jsonl", place)


def draw(folder: Path, file: Path) -> None:
    """Success over env steps, in training and on held-out tasks with its 95% interval, a panel per world."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    worlds = [world for world in EXPERTS if (folder / world / "grpo" / "metrics.jsonl").exists()]
    figure, panels = plt.subplots(1, len(worlds), figsize=(5 * len(worlds), 3.4), layout="constrained", squeeze=False)
    for world, axes in zip(worlds, panels[0], strict=True):
        metrics = lines_of(folder / world / "grpo" / "metrics.jsonl")
        held_out = lines_of(folder / world / "grpo" / "evaluations.jsonl")
        steps = [0, *accumulate(each["env_steps"] for each in metrics)]
        axes.plot(steps[1:], [each["success"] for each in metrics], label="training", alpha=0.6)
        success = [each["success"] for each in held_out]
        bounds = [each["success_interval"] or (each["success"], each["success"]) for each in held_out]
        spread = list(zip(*((s - low, high - s) for s, (low, high) in zip(success, bounds, strict=True)), strict=True))
        at = [steps[each["iteration"]] for each in held_out]
        axes.errorbar(at, success, spread, label="held-out tasks", marker="o", capsize=3, color="black")
        axes.set(title=world, xlabel="env steps", ylabel="success", ylim=(0, 1))
        axes.legend()
    figure.savefig(file)
    plt.close(figure)


def main(config: Config) -> None:
    """Learn each world, and print what came of it."""
    let_waiting_threads_sleep()
    for world in config.worlds:
        result = learn(world, config)
        seconds = ", ".join(f"{name} {value:.0f} s" for name, value in result["seconds"].items())
        for when in ("before", "after"):
            success = result[when]["success"], result[when]["success_interval"]
            Console().print(f"{world}, {when} GRPO: success {success[0]:.2f} {success[1]}")
        Console().print(f"{world}: {seconds}")
        if config.keep is not None:
            keep(config.out / world / "grpo", config.keep / world)
    if config.plot is not None:
        draw(config.out, config.plot)


if __name__ == "__main__":
    main(tyro.cli(Config))
