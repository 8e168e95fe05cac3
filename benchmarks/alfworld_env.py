"""The native ALFWorld engine beside upstream's: the same games, the same commands, one process.

python -m benchmarks.alfworld_env --data FOLDER
"""

from __future__ import annotations

import random
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import gymnasium
import tyro
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.alfworld.data import SPLITS, OfficialGames, find_games
from textagent_gym.domains.alfworld.engine import State
from textagent_gym.domains.alfworld.game import TASK_TYPES, Game, read_game
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.domains.alfworld.tasks import official_type


@dataclass(frozen=True)
class Config:
    """What is measured."""

    data: str | None = None
    """Folder of the official games."""
    steps: int = 40
    """Commands a game."""


def seconds(work: Callable[[], Any], times: int = 1) -> float:
    """Seconds of one piece of work, the best of three."""
    best = float("inf")
    for _ in range(3 if times > 1 else 1):
        started = time.perf_counter()
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter() - started) / times)
    return best


def walk(game: Game, steps: int) -> list[str]:
    """Admissible commands, drawn at random."""
    state, draw, commands = State(game), random.Random(0), []
    for _ in range(steps):
        commands.append(draw.choice(state.commands()))
        state.step(commands[-1])
    return commands


def play(state: State, commands: Sequence[str]) -> None:
    """Step, list the admissible commands, look whether it is won."""
    for command in commands:
        state.step(command)
        state.commands()
        _ = state.won


@dataclass(frozen=True)
class Seconds:
    """What one game took: upstream and native pairs, and what only the native engine does."""

    load: tuple[float, float]
    reset: tuple[float, float]
    step: tuple[float, float]
    env_step: float
    plan: float
    snapshot: float


def measure(games: OfficialGames, game_id: str, config: Config) -> Seconds:
    """Measure one game."""
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    content = games.read(game_id)
    game = read_game(content, game_id)
    commands = walk(game, config.steps)
    upstream = AlfredDemangler(PddlEnv(EnvInfos(admissible_commands=True, won=True)))
    load = seconds(lambda: upstream.load(content)), seconds(lambda: read_game(content, game_id), 20)
    reset = seconds(upstream.reset), seconds(lambda: State(game).introduction(), 500)
    there = seconds(lambda: [upstream.step(command) for command in commands])
    here = seconds(lambda: play(State(game), commands), 50)
    env = gymnasium.make(
        "textagent/ALFWorld-official-v0", data=config.data, infos=("admissible_actions",), max_turns=10**9
    ).unwrapped
    env.reset(options={"task": f"ALFWorld/{game_id}"})
    # Commands that do not end the episode.
    quiet = [command for command in commands if command.split()[0] in ("go", "look", "examine", "open", "close")]
    return Seconds(
        load=load,
        reset=reset,
        step=(there / len(commands), here / len(commands)),
        env_step=seconds(lambda: [env.step(command) for command in quiet], 20) / len(quiet),
        plan=seconds(lambda: solve(State(game)), 5),
        snapshot=seconds(State(game).copy, 2000),
    )


def memory(game: Game, count: int = 2_000) -> float:
    """Bytes of a state, beside the game that all states share."""
    tracemalloc.start()
    states = [State(game) for _ in range(count)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / len(states)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    config = tyro.cli(Config)
    games = find_games(config.data)
    ids = [next(i for i in games.ids("valid_seen") if official_type(i) == name) for name in TASK_TYPES.values()]
    measured = [measure(games, game_id, config) for game_id in ids]
    table = Table(title="ALFWorld: a game of each type of valid_seen", header_style="bold")
    for column in ("", "upstream", "native", "ratio"):
        table.add_column(column)
    for what in ("load", "reset", "step"):
        theirs, ours = (fmean(getattr(m, what)[side] for m in measured) for side in (0, 1))
        name = f"{what} with admissible commands" if what == "step" else what
        table.add_row(name, f"{1000 * theirs:,.0f} ms", f"{1e6 * ours:,.1f} µs", f"{theirs / ours:,.0f}")
    Console().print(table)
    print(f"A step of the Gymnasium environment, likewise: {1e6 * fmean(m.env_step for m in measured):.1f} µs")
    print(f"A shortest plan: {1000 * fmean(m.plan for m in measured):.1f} ms")
    print(f"A snapshot: {1e6 * fmean(m.snapshot for m in measured):.2f} µs")
    print(f"A game being played: {memory(read_game(games.read(ids[0]), ids[0])) / 1024:.1f} KiB")
    started = time.perf_counter()
    everything = [game_id for split in SPLITS for game_id in games.ids(split)]
    for game_id in everything:
        read_game(games.read(game_id), game_id)
    print(f"All {len(everything):,} games loaded in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
