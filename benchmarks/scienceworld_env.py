"""ScienceWorld beside the package's own `step`: the same actions, two Java processes, texts compared and steps timed.

    python -m benchmarks.scienceworld_env --out episodes.jsonl

In each task: a gold path, and a random walk of valid actions and nonsense that ends with a focus. After each action the
text, the score, the end and the valid actions are compared. A stopped run resumes where it was. The package's process
gets the two options of Java without which it does not even agree with itself.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import quantiles
from typing import Any

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scienceworld import ScienceWorldEnv as PackageEnv

from textagent_gym.domains.scienceworld import ScienceWorldEnv, gold_path
from textagent_gym.domains.scienceworld.server import DETERMINISTIC
from textagent_gym.domains.scienceworld.tasks import SPLITS, TASKS, VERSION

NONSENSE = (
    "",
    " ",
    "dance",
    "look at",
    "open",
    "pick up air",
    "7",
    "use thermometer",
    "go to \N{BED}",
    "((",
    "LOOK AROUND",
)
_WARM_UP, _ROUNDS = 500, 300  # Calls of each kind before and in the table of shares.
_FEW = 20  # Calls of the kinds that take long.


@dataclass(frozen=True)
class Config:
    """What is compared."""

    out: Path = Path("scienceworld-episodes.jsonl")
    """File with one line per episode that has been played."""
    variations: int = 1
    """Number of variations per task, from the first of the test split on."""
    walk: int = 20
    """Number of steps of the random walk."""
    only_shares: bool = False
    """Whether to leave out the comparison, and print only where the time of a step goes."""


@dataclass
class Comparison:
    """What two simulators answered to the same actions."""

    steps: int = 0
    valid_actions: int = 0
    theirs_seconds: float = 0.0
    ours_seconds: float = 0.0
    differences: list[str] | None = None


@dataclass(frozen=True)
class Shares:
    """Seconds of a step here and of its parts, and what stands beside it.

    Attributes:
        step: a step of the environment: three calls of the simulator, and what Python does.
        java: the simulator's part: its step and its score, less two empty calls.
        python: processor time of this process, py4j's part included.
        empty: a call that does nothing, there and back.
        valid_actions: the list of valid actions.
        reset: beginning an episode in a simulator that runs.
        megabytes: memory of the Java process in use, after all this.
    """

    step: float
    java: float
    python: float
    empty: float
    valid_actions: float
    reset: float
    megabytes: float

    @property
    def sockets(self) -> float:
        """The rest of the step: the way there and back of three calls."""
        return self.step - self.java - self.python


def package() -> PackageEnv:
    """The package's environment, made deterministic, and without a limit of moves."""
    before = os.environ.get("JAVA_TOOL_OPTIONS")
    os.environ["JAVA_TOOL_OPTIONS"] = " ".join(DETERMINISTIC)
    try:
        return PackageEnv(envStepLimit=sys.maxsize)  # By default, it says "completed" after 100.
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]
        if before is not None:
            os.environ["JAVA_TOOL_OPTIONS"] = before


def variation_of(task: str, rank: int) -> int:
    """Number of the variation with this rank in the test split."""
    train, dev, _ = TASKS[task]
    return train + dev + rank


def split_of(task: str, variation: int) -> str:
    """Split of a variation: their numbers follow each other, in the order of the splits."""
    return next(split for split, end in zip(SPLITS, accumulate(TASKS[task]), strict=True) if variation < end)


def compare(
    theirs: PackageEnv, env: ScienceWorldEnv, task: str, variation: int, actions: Callable[[list[str]], str | None]
) -> Comparison:
    """Play one episode on both sides.

    Args:
        theirs: environment of the package.
        env: environment of ours.
        task: name of the task.
        variation: number of the variation.
        actions: the next action for the package's valid ones; `None` at the end.
    """
    result = Comparison(differences=[])
    assert result.differences is not None
    theirs.load(task, variation, env.unwrapped._source.options.simplified)
    text, info = theirs.reset()
    observation, _ = env.reset(
        options={"task": f"ScienceWorld/v{VERSION}/{split_of(task, variation)}/{task}/{variation}"}
    )
    told: tuple[Any, ...] = (f"{info['taskDesc'].strip()}", text, 0, False)
    here: tuple[Any, ...] = (info["taskDesc"].strip(), observation.partition("\n\n")[2], 0, False)
    if not observation.startswith(theirs.get_task_description()):
        result.differences.append(f"the task of {task} {variation}: {observation!r}")
    action: str | None = "reset"
    while True:
        if told != here:
            result.differences.append(f"{action!r}: {here!r}, the package {told!r}")
        valid = sorted(set(info["valid"]))
        result.valid_actions += 1
        if not here[-1] and valid != list(env.admissible_actions()):
            only = (set(valid) ^ set(env.admissible_actions())) or {"nothing when asked again"}
            result.differences.append(f"{action!r}: valid actions differ in {sorted(only)[:4]}")
        action = None if here[-1] else actions(info["valid"])
        if action is None:
            return result
        started = time.perf_counter()
        text, _, completed, info = theirs.step(action)
        between = time.perf_counter()
        observation, _, terminated, _, ours = env.step(action)
        ended = time.perf_counter()
        told = (text, info["score"], completed)
        score = -100 if terminated and not ours["success"] and info["score"] < 0 else round(100 * ours["score"])
        here = (observation, score, terminated)
        result.steps += 1
        result.theirs_seconds += between - started
        result.ours_seconds += ended - between


def along(path: tuple[str, ...]) -> Callable[[list[str]], str | None]:
    """Actions of a path."""
    rest = iter(path)
    return lambda valid: next(rest, None)


def walk(rng: random.Random, steps: int) -> Callable[[list[str]], str | None]:
    """Valid actions and nonsense at random; the last one focuses."""

    def actions() -> Iterator[Callable[[list[str]], str]]:
        for _ in range(steps - 1):
            yield lambda valid: rng.choice(
                NONSENSE if rng.random() < 0.2 else [each for each in sorted(valid) if "focus" not in each]
            )
        yield lambda valid: rng.choice([each for each in sorted(valid) if "focus" in each])

    rest = actions()

    def choose(valid: list[str]) -> str | None:
        draw = next(rest, None)
        return None if draw is None else draw(valid)

    return choose


def shares(env: ScienceWorldEnv, rounds: int = _ROUNDS, warm_up: int = _WARM_UP) -> Shares:
    """Where the time of a look around goes, with a Java that is warm: first deciles of calls that take turns.

    The calls take turns, and the fast ones count, so that a busy machine changes the parts little.

    Args:
        env: environment, without a limit of turns that matters here.
        rounds: number of calls of each kind.
        warm_up: number of calls of each kind before, for Java compiles what it runs often.
    """
    env.reset(options={"task_index": 0})
    server = env.server
    calls: dict[str, Callable[[], Any]] = {
        "step": lambda: env.step("look around"),
        "simulator": lambda: server.step("look around"),
        "score": server.score,
        "empty": server.completed,
    }
    taken: dict[str, list[float]] = {name: [] for name in (*calls, "python", "valid", "load")}
    for turn in range(-warm_up, rounds):
        for name, call in calls.items():
            processor, started = time.thread_time(), time.perf_counter()
            call()
            if turn >= 0:
                taken[name].append(time.perf_counter() - started)
            if turn >= 0 and name == "step":
                taken["python"].append(time.thread_time() - processor)
    for _ in range(min(rounds, _FEW)):
        for name, call in (("valid", server.valid_actions), ("load", lambda: env.reset(options={"task_index": 0}))):
            started = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - started)
    seconds = {name: quantiles(each, n=10)[0] for name, each in taken.items()}
    java = seconds["simulator"] + seconds["score"] - 2 * seconds["empty"]
    return Shares(
        step=seconds["step"],
        java=java,
        python=seconds["python"],
        empty=seconds["empty"],
        valid_actions=seconds["valid"],
        reset=seconds["load"],
        megabytes=resident_megabytes(server.pid),
    )


def resident_megabytes(pid: int) -> float:
    """Memory that a process has in use, on Linux."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def print_shares(shares: Shares) -> None:
    """Print the parts of a step and what stands beside them."""
    table = Table(title="A look around, warm", header_style="bold")
    for column in ("", "time", "of the step"):
        table.add_column(column)
    parts = {"env.step": shares.step, "Java": shares.java, "sockets": shares.sockets, "Python": shares.python}
    for name, seconds in parts.items():
        table.add_row(name, f"{1e3 * seconds:.2f} ms", f"{seconds / shares.step:.0%}")
    for name, seconds in (
        ("an empty call", shares.empty),
        ("valid actions", shares.valid_actions),
        ("reset, which loads a task", shares.reset),
    ):
        table.add_row(name, f"{1e3 * seconds:.2f} ms", "")
    table.add_row("memory of Java", f"{shares.megabytes:.0f} MB", "")
    Console().print(table)


def main(config: Config) -> None:
    """Play what has not been played yet, and print what came of all."""
    env = ScienceWorldEnv(max_turns=10**6)
    if config.only_shares:
        print_shares(shares(env))
        env.close()
        return
    theirs = package()
    lines = config.out.read_text(encoding="utf-8").splitlines() if config.out.exists() else []
    done = {(each["task"], each["variation"], each["kind"]) for each in map(json.loads, lines)}
    jobs = [
        (task, variation_of(task, rank), kind)
        for rank in range(config.variations)
        for task, counts in TASKS.items()
        if rank < counts[2]
        for kind in ("gold", "walk")
    ]
    with open(config.out, "a", encoding="utf-8") as file:
        for task, variation, kind in track([job for job in jobs if job not in done], description="Playing"):
            rng = random.Random(f"{task}/{variation}")
            actions = along(gold_path(task, variation).actions) if kind == "gold" else walk(rng, config.walk)
            result = compare(theirs, env, task, variation, actions)
            file.write(json.dumps({"task": task, "variation": variation, "kind": kind, **vars(result)}) + "\n")
            file.flush()
    report([json.loads(line) for line in config.out.read_text(encoding="utf-8").splitlines()])
    print_shares(shares(env))
    env.close()


def report(episodes: list[dict[str, Any]]) -> None:
    """Print the differences, and the ratio of the times."""
    table = Table(title="ScienceWorld beside the package's step", header_style="bold")
    for column in ("", "episodes", "steps", "differences", "package", "here", "ratio"):
        table.add_column(column)
    for kind in ("gold", "walk"):
        played = [each for each in episodes if each["kind"] == kind]
        steps = sum(each["steps"] for each in played) or 1
        there, here = (1e3 * sum(each[f"{side}_seconds"] for each in played) / steps for side in ("theirs", "ours"))
        differences = [line for each in played for line in each["differences"]]
        for line in differences[:10]:
            print(line)
        cells = (kind, len(played), steps, len(differences), f"{there:.1f} ms", f"{here:.1f} ms", f"{there / here:.1f}")
        table.add_row(*map(str, cells))
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Config))
