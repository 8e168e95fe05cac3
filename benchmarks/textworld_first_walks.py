"""TextWorld as an agent meets it first: random walks through games that nobody has played, beside plain TextWorld.

    python -m benchmarks.textworld_first_walks

Every game is played by one walk of random admissible commands, from its beginning, with nothing remembered: neither
turns nor texts nor admissible commands nor what the planner has found. Where a game ends, the walk begins it again.
Times are of the processor and without resets. The walk is played several times on both sides in turns, of which the
shortest counts, and everything is forgotten each time.
"""

from __future__ import annotations

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

from textagent_gym.domains.textworld import commands, prose, store
from textagent_gym.domains.textworld.engines import turns
from textagent_gym.domains.textworld.specs import make_spec

GAMES: dict[str, dict[str, Any]] = {
    "w2-o3-q4": {"rooms": 2, "objects": 3, "quest_length": 4},
    "w4-o6-q8": {"rooms": 4, "objects": 6, "quest_length": 8},
    "w8-o12-q12": {"rooms": 8, "objects": 12, "quest_length": 12},
    "cooking": {"game": "cooking"},
}
"""Options of each kind of game."""

INFORMATION = {"admissible actions": ("admissible_actions",), "all": ("admissible_actions", "oracle_action")}
"""What is asked for after every step, by what the table calls it."""

BEGIN = ""
"""Stands in a walk where the game has ended and is begun again."""


@dataclass(frozen=True)
class Config:
    """What is measured."""

    games: int = 4
    """Number of games of each kind."""
    lengths: tuple[int, ...] = (500, 3_000)
    """Numbers of steps of the walks."""
    upstream_steps: int = 400
    """Number of steps of each walk that plain TextWorld plays."""
    times: int = 3
    """Number of times that every walk is played."""


def random_walk(env: Any, game: int, steps: int) -> list[str]:
    """Random admissible commands in a game."""
    rng, walk = random.Random(game), []
    _, info = env.reset(options={"task_index": game})
    while len(walk) < steps:
        walk.append(rng.choice(info["admissible_actions"]))
        *_, over, _, info = env.step(walk[-1])
        if over:
            _, info = env.reset(options={"task_index": game})
            walk.append(BEGIN)
    return walk[:steps]


def forget() -> None:
    """Forget all that was ever found out about a game."""
    store.forget()
    turns.forget()
    commands.forget()
    prose.readable.cache_clear()


def seconds(env: Any, walk: list[str], **begin: Any) -> float:
    """Seconds of the processor of the steps of a walk."""
    env.reset(**begin)
    used, started = 0.0, time.process_time()
    for command in walk:
        if command == BEGIN:
            used += time.process_time() - started
            env.reset(**begin)
            started = time.process_time()
        else:
            env.step(command)
    return used + time.process_time() - started


def measure(options: dict[str, Any], information: str, length: int, config: Config) -> tuple[float, float]:
    """Microseconds of a step here and of plain TextWorld."""
    import textworld

    infos = INFORMATION[information]
    env: Any = gymnasium.make(
        "textagent/TextWorld-v0", **options, infos=infos, max_turns=10**9, num_tasks=config.games, split="test"
    ).unwrapped
    requested = textworld.EnvInfos(
        admissible_commands=True, policy_commands="oracle_action" in infos, won=True, lost=True
    )
    spec = make_spec(options.get("game", "custom"), **{k: v for k, v in options.items() if k != "game"})
    ours = theirs = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for game in range(config.games):
            walk = random_walk(env, game, length)
            upstream = textworld.start(str(store.export(spec, "test", game, Path(folder))), requested)
            own, other = [], []
            for _ in range(config.times):
                forget()
                own.append(seconds(env, walk, options={"task_index": game}))
                other.append(seconds(upstream, walk[: config.upstream_steps]))
            upstream.close()
            ours += min(own) / len(walk)
            theirs += min(other) / min(len(walk), config.upstream_steps)
    env.close()
    return 1e6 * ours / config.games, 1e6 * theirs / config.games


def main() -> None:
    """Print what a step costs, and the ratios."""
    config = tyro.cli(Config)
    table = Table(title="First walks through games of TextWorld, microseconds per step", header_style="bold")
    for column in ("game", "information", "steps", "here", "TextWorld", "ratio"):
        table.add_column(column)
    for name, options in GAMES.items():
        for information in INFORMATION:
            for length in config.lengths:
                here, there = measure(options, information, length, config)
                row = (name, information, f"{length:,}", f"{here:.0f}", f"{there:,.0f}", f"{there / here:.0f}")
                Console().print(*row)
                table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
