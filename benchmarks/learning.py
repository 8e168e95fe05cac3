"""Proof of learning: every method from the same policies, on held-out tasks, over several seeds.

    python -m benchmarks.learning --out runs/learning --processes 2

A method is said to learn a world where the interquartile mean of its success reaches the goal that stands in `WORLDS`,
which was written down before the runs. Means and intervals are those of Agarwal et al., 2021 (arXiv 2108.13264): the
mean of the middle half of the runs, and the 2.5% and 97.5% quantiles of its stratified bootstrap. Every run is a line
of `results.jsonl`; what a stopped benchmark has finished is not done again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

LIGHTS = Path(__file__).parents[1] / "tests" / "third_party" / "lights"
RESAMPLES = 10_000
"""Number of bootstrap samples."""

METHODS: dict[str, dict[str, Any]] = {
    "ppo": {"group_size": 1, "critic_learning_rate": 2e-3},
    "grpo": {"credit": "turn"},
    "gigpo": {},
    "rloo": {},
    "reinforce_pp": {},
    "vineppo": {"group_size": 1, "branches": 2},
}
"""Settings of each method beside those of the world."""

SHARES = {"vineppo": 0.25}
"""Part of the world's episodes per iteration that a method plays: branches cost env steps too."""

IMITATION = {"sft": 1, "dagger": 4}
"""Iterations of DAgger; one is SFT on the oracle's own episodes."""


@dataclass(frozen=True)
class World:
    """A world in which methods are compared.

    Attributes:
        goal: success on held-out tasks that a method has to reach, as the interquartile mean over the seeds.
        episodes: number of episodes per iteration.
        settings: settings of the trainers.
        labels: number of labels for imitation.
        start: function that makes the policy that all methods begin with, for a seed.
    """

    goal: float
    episodes: int
    settings: dict[str, Any]
    labels: int
    start: Callable[[Path, int], Path]


def start_of_lights(folder: Path, seed: int) -> Path:
    """A tiny policy that names switches, though seldom the right ones."""
    import gymnasium

    from baselines import sft
    from baselines.policy.models import make_tiny_policy
    from textagent_gym.evaluation import demonstrate

    env = gymnasium.make("lights/Lights-v0", switches=3)
    demos = [demonstrate(env, {"task_index": index}) for index in range(40)]
    file = folder / "demos.jsonl"
    file.write_text("".join(json.dumps(demo) + "\n" for demo in demos), encoding="utf-8")
    texts = [message["content"] for demo in demos for message in demo["messages"]]
    make_tiny_policy(folder / "tiny", texts, hidden=32, layers=2, heads=2, seed=seed)
    taught = {"epochs": 8, "batch_size": 8, "learning_rate": 5e-3, "seed": seed}
    return sft.run(sft.Config(model=str(folder / "tiny"), demos=file, out=folder / "start", **taught))


def start_of_games(folder: Path, seed: int) -> Path:
    """The demo's policy after random play and a few demonstrations."""
    from baselines import demo

    sizes = {"level": 3, "train_tasks": 100, "random_episodes": 300, "demos": 20}
    config = demo.Config(out=folder, seed=seed, sft_epochs=10.0, **sizes)
    demo.make_games(config)
    return demo.train_sft(config, demo.read_language(config, demo.write_random_play(config)), demo.write_demos(config))


def lights(reward_density: str) -> World:
    """The lights world of the tests: three lights, twice as many turns as are needed."""
    return World(
        goal=0.7,
        episodes=128,
        settings={
            "env": "lights/Lights-v0",
            "set": {"switches": 3, "max_turns": "2x", "reward_density": reward_density},
            "iterations": 60,
            "slots": 128,
            "max_action_tokens": 6,
            "learning_rate": 3e-3,
        },
        labels=50,
        start=start_of_lights,
    )


WORLDS = {
    "lights": lights("dense"),
    "sparse lights": lights("sparse"),
    "games": World(
        goal=0.7,
        episodes=64,
        settings={
            "env": "textagent/Demo-v0",
            "set": {"level": 3, "reward_density": "dense", "num_tasks": 100, "engine": "native"},
            "iterations": 60,
            "slots": 64,
            "max_action_tokens": 8,
            "learning_rate": 5e-4,
            "warmup": 20,
            "minibatches": 4,
            "microbatch": 16_384,
        },
        labels=100,
        start=start_of_games,
    ),
}
"""The lights world, paid for each light or for the last, and coin collector games of TextWorld as in the demo."""


@dataclass(frozen=True)
class Config:
    """Train every method on every world, over several seeds."""

    out: Path = Path("runs/learning")
    """Folder of the runs and their results."""
    worlds: tuple[str, ...] = tuple(WORLDS)
    """Worlds that are played: "lights", "sparse lights", "games"."""
    methods: tuple[str, ...] = (*METHODS, *IMITATION)
    """Methods that are compared."""
    seeds: int = 5
    """Number of runs of each method on each world, each from a policy of its own."""
    first_seed: int = 0
    """Seed of the first of these runs; the settings were chosen with seeds from 100 on."""
    processes: int = 1
    """Number of runs at the same time."""
    eval_tasks: int = 100
    """Number of held-out tasks."""
    plot: Path | None = None
    """File of the learning curves; its ending decides the format."""


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        world, method, seed: what is run.
        out: folder of the benchmark.
        eval_tasks: number of held-out tasks.
    """

    world: str
    method: str
    seed: int
    out: Path
    eval_tasks: int

    @property
    def key(self) -> dict[str, Any]:
        """What tells its result from others."""
        return {"world": self.world, "method": self.method, "seed": self.seed, "eval_tasks": self.eval_tasks}


def prepare() -> None:
    """Register the worlds and keep to one thread: runs are side by side."""
    from baselines.command_line import let_waiting_threads_sleep

    let_waiting_threads_sleep()
    sys.path.insert(0, str(LIGHTS))
    import gymnasium
    import torch
    from lights import register

    from baselines import demo

    torch.set_num_threads(1)
    if "lights/Lights-v0" not in gymnasium.registry:
        register()
    demo.register()


def begin(world: str, seed: int, out: Path) -> Path:
    """The policy that all methods begin with."""
    prepare()
    folder = out / world / str(seed)
    done = folder / "began"
    if not done.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        policy = WORLDS[world].start(folder, seed)
        done.write_text(str(policy.relative_to(folder)), encoding="utf-8")
    return folder / done.read_text(encoding="utf-8")


def train(job: Job) -> dict[str, Any]:
    """Success on the held-out tasks before and after."""
    policy = begin(job.world, job.seed, job.out)
    world, out = WORLDS[job.world], job.out / job.world / str(job.seed) / "runs" / job.method
    if job.method in IMITATION:
        return {**job.key, **imitate(job, world, policy, out)}
    module = import_module(f"baselines.{job.method}")
    iterations = world.settings["iterations"]
    settings = {"group_size": 8, **world.settings, **METHODS[job.method]}
    settings["groups"] = round(world.episodes * SHARES.get(job.method, 1)) // settings["group_size"]
    config = module.Config(
        model=str(policy), out=out, seed=job.seed, eval_every=iterations, eval_tasks=job.eval_tasks, **settings
    )
    module.run(config)
    first, *_, last = map(json.loads, (out / "evaluations.jsonl").read_text(encoding="utf-8").splitlines())
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = sum(each["env_steps"] for each in metrics)
    return {**job.key, "before": first["success"], "after": last["success"], "env_steps": steps}


def imitate(job: Job, world: World, policy: Path, out: Path) -> dict[str, Any]:
    """Success of a policy that has learned from labels, and of the one that it began with."""
    from baselines import dagger
    from baselines.evaluation.evaluate import evaluate_policy
    from textagent_gym.evaluation import summarize

    settings = {name: world.settings[name] for name in ("env", "set", "slots", "max_action_tokens")}
    taught = dagger.Config(
        model=str(policy), out=out, seed=job.seed, labels=world.labels, iterations=IMITATION[job.method],
        epochs=12, batch_size=8, learning_rate=2e-3, **settings,
    )  # fmt: skip

    def success(of: Path) -> float:
        kwargs = {name: value for name, value in world.settings["set"].items() if name != "num_tasks"}
        result, _ = evaluate_policy(
            str(of), settings["env"], {**kwargs, "split": "test"}, tasks=job.eval_tasks, slots=settings["slots"],
            max_action_tokens=settings["max_action_tokens"], seed=job.seed,
        )  # fmt: skip
        return summarize(result.episodes).success.mean

    before = success(policy)
    return {"before": before, "after": success(dagger.run(taught)), "labels": world.labels}


def interquartile_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the values without the lowest and the highest quarter, over the last axis.

    >>> float(interquartile_mean(np.array([0.0, 0.5, 0.6, 0.7, 9.0])))
    0.6
    """
    cut = values.shape[-1] // 4
    middle: NDArray[np.float64] = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(-1)
    return middle


def interval(strata: Sequence[Sequence[float]], seed: int = 0) -> tuple[float, float]:
    """95% interval of the interquartile mean of all values, by a bootstrap that resamples each stratum on its own.

    >>> interval([[0.5] * 5, [0.5] * 5])
    (0.5, 0.5)
    """
    rng = np.random.default_rng(seed)
    drawn = [np.asarray(values)[rng.integers(len(values), size=(RESAMPLES, len(values)))] for values in strata]
    low, high = np.quantile(interquartile_mean(np.concatenate(drawn, axis=1)), (0.025, 0.975))
    return float(low), float(high)


def read(path: Path) -> list[dict[str, Any]]:
    """Results of finished runs; half a line of a killed benchmark is left out."""
    results = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            results.append(json.loads(line))
        except ValueError:
            continue
    return results


def table(results: Sequence[dict[str, Any]], worlds: Sequence[str], methods: Sequence[str]) -> Table:
    """Success of each method on each world, and on all of them together."""
    shown = Table(title="Success on held-out tasks: interquartile mean [95% interval]", header_style="bold")
    shown.add_column("method")
    for world in worlds:
        shown.add_column(f"{world}, before")
        shown.add_column(f"{world}, goal {WORLDS[world].goal}")
        shown.add_column("learned")
    shown.add_column("all worlds")
    for method in methods:
        cells, strata = [], []
        for world in worlds:
            runs = [each for each in results if (each["world"], each["method"]) == (world, method)]
            if not runs:
                cells += ["", "", ""]
                continue
            after = [each["after"] for each in runs]
            mean = float(interquartile_mean(np.array(after)))
            low, high = interval([after])
            before = float(interquartile_mean(np.array([each["before"] for each in runs])))
            learned = "yes" if round(mean, 9) >= WORLDS[world].goal else "no"
            cells += [f"{before:.2f}", f"{mean:.2f} [{low:.2f}, {high:.2f}], {len(runs)} runs", learned]
            strata.append(after)
        if strata:
            low, high = interval(strata)
            cells.append(f"{float(interquartile_mean(np.concatenate(strata))):.2f} [{low:.2f}, {high:.2f}]")
        shown.add_row(method, *cells)
    return shown


def draw(config: Config, file: Path) -> None:
    """Success in training over the env steps that were spent: the interquartile mean of the runs, per world."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(config.worlds), figsize=(5 * len(config.worlds), 3.6), layout="constrained", squeeze=False
    )
    for world, axes in zip(config.worlds, panels[0], strict=True):
        for method in (each for each in config.methods if each in METHODS):
            files = sorted((config.out / world).glob(f"*/runs/{method}/metrics.jsonl"))
            if not files:
                continue
            runs = [[json.loads(line) for line in each.read_text(encoding="utf-8").splitlines()] for each in files]
            length = min(map(len, runs))
            success, steps = (
                np.array([[line[name] for line in run[:length]] for run in runs]) for name in ("success", "env_steps")
            )
            # Five iterations together, so that the lines can be told from each other.
            smooth = np.apply_along_axis(np.convolve, 1, success, np.full(5, 0.2), "valid")
            axes.plot(steps.cumsum(1).mean(0)[4:], interquartile_mean(smooth.T), label=method)
        axes.axhline(WORLDS[world].goal, color="black", linestyle=":", linewidth=1)
        axes.set(title=world, xlabel="env steps", ylabel="success in training", ylim=(0, 1))
        axes.legend()
    figure.savefig(file)
    plt.close(figure)


def main(config: Config) -> None:
    """Run what is missing, and print the table."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    path = config.out / "results.jsonl"
    config.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(world, method, seed, config.out, config.eval_tasks)
        for world in config.worlds
        for seed in range(config.first_seed, config.first_seed + config.seeds)
        for method in config.methods
    ]
    done = read(path)
    missing = [job for job in jobs if not any(job.key.items() <= each.items() for each in done)]
    context = multiprocessing.get_context("spawn")
    console = Console()
    failed: list[str] = []
    with ProcessPoolExecutor(config.processes, mp_context=context) as pool, Progress(console=console) as progress:
        starts = sorted({(job.world, job.seed) for job in missing})
        bar = progress.add_task("Making first policies", total=len(starts))
        for future in as_completed([pool.submit(begin, world, seed, config.out) for world, seed in starts]):
            future.result()
            progress.advance(bar)
        bar = progress.add_task("Training", total=len(missing))
        with open(path, "a", encoding="utf-8") as file:
            started = {pool.submit(train, job): job for job in missing}
            for future in as_completed(started):
                progress.advance(bar)
                if error := future.exception():  # The other runs are not lost with it.
                    failed.append(f"{started[future].key} failed: {error!r}")
                    continue
                done.append(future.result())
                file.write(json.dumps(future.result()) + "\n")
                file.flush()
    wanted = [each for each in done if any(job.key.items() <= each.items() for job in jobs)]
    console.print(table(wanted, config.worlds, config.methods))
    if config.plot is not None:
        draw(config, config.plot)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main(tyro.cli(Config))
