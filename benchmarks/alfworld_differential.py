"""Every official ALFWorld game in the native engine and in upstream's, step by step.

    python -m benchmarks.alfworld_differential --data FOLDER --out differences.jsonl

In each game: nonsense, the walkthrough, and a random walk of admissible commands and nonsense; after each command the
text, the sorted admissible commands and the win flag are compared. Upstream needs seconds a game, so the games are
shared out among processes, and a stopped run goes on where it was. Upstream parses the same few texts of its grammar
again and again; here its parsers remember what they have parsed, which halves the time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tyro
from rich.progress import track

from textagent_gym.domains.alfworld.data import SPLITS, find_games
from textagent_gym.domains.alfworld.engine import State
from textagent_gym.domains.alfworld.game import read_game
from textagent_gym.domains.alfworld.reference import ReferenceState

NONSENSE = (
    "", " ", "dance", "look around", "LOOK", "go to", "go to sofa 99", "go", "take", "take x from y", "open", "close",
    "move  to ", "put mug 1 in/on desk 1", "examine", "use", "use lamp 1", "slice", "slice a with b", "help me",
    "clean a with b", "heat", "cool x", "inventory 1", "go to \N{BED} 1", "take a from b from c", "{o}", "#task#",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """What is compared."""

    data: str | None = None
    """Folder of the games."""
    out: Path = Path("alfworld-differences.jsonl")
    """A line for each game that has been played."""
    splits: tuple[str, ...] = SPLITS
    """Of which splits."""
    walk: int = 12
    """Steps of the random walk."""
    limit: int | None = None
    """Play so many more games at most."""
    workers: int = os.cpu_count() or 1
    """Processes."""


def play(job: tuple[str | None, str, int]) -> dict[str, object]:
    """Play one game in both engines; returns its id, the number of steps, and what differed."""
    data, game_id, walk = job
    warnings.simplefilter("ignore")
    remember_parses()
    content = find_games(data).read(game_id)
    here, there = State(read_game(content, game_id)), ReferenceState(content)
    differences: list[str] = []
    steps = 0

    def compare(command: str, ours: str | None, theirs: str | None) -> None:
        nonlocal steps
        steps += 1
        if ours != theirs or here.commands() != there.commands() or here.won != there.won:
            differences.append(f"{command!r}: {ours!r}, upstream {theirs!r}")

    compare("reset", here.introduction(), there.introduction())
    for command in commands(here, content["walkthrough"], random.Random(game_id), walk):
        compare(command, here.step(command.strip()), there.step(command))
    return {"id": game_id, "steps": steps, "differences": differences}


@cache
def remember_parses() -> None:
    """Let upstream's parsers parse a text once; what is made of the syntax tree is still made anew each time."""
    from textworld import logic
    from textworld.envs.pddl import textgen

    for module in (logic, textgen):
        module._PARSER.parse = _remembered(module._PARSER.parse)


def _remembered(parse: Any) -> Any:
    trees: dict[tuple[str, str], Any] = {}

    def remembered(text: str, rule_name: str, **options: Any) -> Any:
        key = (text, rule_name)
        if key not in trees:
            trees[key] = parse(text, rule_name=rule_name, **options)
        return trees[key]

    return remembered


def commands(state: State, walkthrough: list[str], draw: random.Random, walk: int) -> Iterator[str]:
    """What is typed: nonsense, the walkthrough, a walk."""
    yield from draw.sample(NONSENSE, 3)
    yield from walkthrough
    if not state.won:
        raise AssertionError(f"the walkthrough does not win {state.game.id}")
    for _ in range(walk):
        if draw.random() < 0.1:
            yield draw.choice(NONSENSE)
        else:
            possible = state.commands()
            nearby = [command for command in possible if not command.startswith("go to")]
            yield draw.choice(nearby if draw.random() < 0.6 else possible)


def main() -> None:
    """Play what has not been played yet, and print the sums."""
    config = tyro.cli(Config)
    games = find_games(config.data)
    played = {}
    if config.out.is_file():
        for line in config.out.read_text(encoding="utf-8").splitlines():
            if line.endswith("}"):
                record = json.loads(line)
                played[record["id"]] = record
    ids = [game_id for split in config.splits for game_id in games.ids(split)]
    random.Random(0).shuffle(ids)
    jobs = [(config.data, game_id, config.walk) for game_id in ids if game_id not in played][: config.limit]
    pool = multiprocessing.get_context("spawn").Pool(config.workers, maxtasksperchild=50)
    with pool, open(config.out, "a", encoding="utf-8") as file:
        for record in track(pool.imap_unordered(play, jobs), "Comparing", len(jobs)):
            played[str(record["id"])] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
    different = [record for record in played.values() if record["differences"]]
    print(f"{len(played)} games, {sum(int(r['steps']) for r in played.values())} steps, {len(different)} different")
    for record in different[:20]:
        print(record)


if __name__ == "__main__":
    main()
