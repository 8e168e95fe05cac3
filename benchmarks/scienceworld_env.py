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
from statistics import median
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
_CALLS = 300  # Of each kind that is timed in the table of shares.


@dataclass(frozen=True)
class Config:
    """What is compared."""

    out: Path = Path("scienceworld-episodes.jsonl")
    """File with one line per episode that has been played."""
    variations: int = 1
    """Number of variations per task, from the first of the test split on."""
    walk: int = 20
    """Number of steps of the random walk."""


@dataclass
class Comparison:
    """What two simulators answered to the same actions."""

    steps: int = 0
    valid_actions: int = 0
    theirs_seconds: float = 0.0
    ours_seconds: float = 0.0
    differences: list[str] | None = None


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
    theirs.load(task, variation, env.unwrapped._source.simplifications)
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


def shares(env: ScienceWorldEnv) -> dict[str, float]:
    """Seconds of one look around, as the median of many: in all, in the simulator's call, and in an empty call."""
    env.reset(options={"task_index": 0})
    server = env.server

    def seconds(call: Callable[[], Any]) -> float:
        taken = []
        for _ in range(_CALLS):
            started = time.perf_counter()
            call()
            taken.append(time.perf_counter() - started)
        return median(taken)

    return {
        "env.step": seconds(lambda: (env.snapshot(), env._act("look around"))),
        "the simulator's step": seconds(lambda: server.step("look around")),
        "a call that does nothing": seconds(server.completed),
        "valid actions": seconds(server.valid_actions),
    }


def main(config: Config) -> None:
    """Play what has not been played yet, and print what came of all."""
    theirs, env = package(), ScienceWorldEnv(max_turns=10**6)
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
    for name, seconds in shares(env).items():
        print(f"{name}: {1e3 * seconds:.2f} ms")
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
