"""What making a game of TextWorld costs, from its parameters to its first observation, beside plain TextWorld.

    python -m benchmarks.textworld_making

Plain TextWorld makes a game with as many rooms and objects and a quest of as many actions (`make_game`), compiles it
and starts it; it does not prove that no shorter solution exists. Seconds are of the processor, the compiler's included.
Its times differ much from seed to seed, so that means and medians are printed, and each pair of games while it runs.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from unittest.mock import patch

import textworld
import textworld.generator
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.textworld_env import processor_seconds
from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.engines import Native
from textagent_gym.domains.textworld.specs import Spec, make_spec


@dataclass(frozen=True)
class Config:
    """What is made."""

    sizes: tuple[tuple[int, int, int], ...] = ((4, 6, 8), (8, 12, 12), (20, 40, 20))
    """Worlds: rooms, objects and quest length of each."""
    games: int = 8
    """Games of each size."""
    first: int = 1_000
    """Number of the first game, and TextWorld's first seed."""


def make_here(spec: Spec, index: int) -> float:
    """Seconds until a game that nobody has made yet says what it says first."""
    started = processor_seconds()
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, TEXTAGENT_CACHE=folder):
        Native().start(store.load(spec, "train", index, compiled=False))
    return processor_seconds() - started


def make_there(size: tuple[int, int, int], seed: int) -> tuple[float, float]:
    """Seconds of `make_game`, and of the compiler and the first observation of plain TextWorld."""
    started = processor_seconds()
    options = textworld.GameOptions()
    options.seeds = seed
    options.nb_rooms, options.nb_objects, length = size
    options.chaining.min_length = options.chaining.max_length = options.chaining.max_depth = length
    game = textworld.generator.make_game(options)
    made = processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        options.path = str(Path(folder, "game.z8"))
        env = textworld.start(textworld.generator.compile_game(game, options))
        env.reset()
        env.close()
    return made - started, processor_seconds() - made


def main() -> None:
    """Make games, and print the table."""
    config, console = tyro.cli(Config, description=__doc__), Console()
    table = Table(title="From parameters to the first observation, seconds: mean (median)", header_style="bold")
    for column in ("world", "games", "native", "make_game", "compiler, first observation", "ratio"):
        table.add_column(column)
    make_here(make_spec("custom"), 0)  # Imports and word lists, once for all.
    for size in config.sizes:
        rooms, objects, length = size
        spec = make_spec("custom", rooms=rooms, objects=objects, quest_length=length)
        here, making, starting = [], [], []
        for index in range(config.first, config.first + config.games):
            here.append(make_here(spec, index))
            made, started = make_there(size, index)
            making.append(made)
            starting.append(started)
            console.print(f"{size}, game {index}: {here[-1]:.3f} s, TextWorld {made:.2f} s and {started:.2f} s")
        there = [sum(pair) for pair in zip(making, starting, strict=True)]
        table.add_row(
            f"w{rooms}-o{objects}-q{length}",
            str(config.games),
            f"{mean(here):.3f} ({median(here):.3f})",
            f"{mean(making):.2f} ({median(making):.2f})",
            f"{mean(starting):.2f} ({median(starting):.2f})",
            f"{mean(there) / mean(here):.0f} ({median(there) / median(here):.0f})",
        )
    console.print(table)


if __name__ == "__main__":
    main()
