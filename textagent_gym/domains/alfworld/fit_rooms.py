"""Fit the table of rooms that generated games are drawn from to the official training games.

    python -m textagent_gym.domains.alfworld.fit_rooms --data FOLDER

It counts, for each kind of room, how many receptacles and objects of each kind there are and where the objects lie;
which kinds can be opened, hold what, and be cleaned, heated and so on; and which goals are asked for where. The table
is `rooms.json` beside this file.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from textagent_gym.domains.alfworld.data import find_games
from textagent_gym.domains.alfworld.engine import bits
from textagent_gym.domains.alfworld.game import Game, read_game
from textagent_gym.domains.alfworld.rooms import kind
from textagent_gym.domains.alfworld.tasks import official_type

TABLE = Path(__file__).with_name("rooms.json")
ROOMS = {0: "kitchen", 2: "living room", 3: "bedroom", 4: "bathroom"}
"""Kind of room, by the hundreds of the scene's number, with which an official id ends."""


@dataclass(frozen=True)
class Config:
    """What is fitted."""

    data: str | None = None
    """Folder of the official games."""
    split: str = "train"
    """Which of them."""
    out: Path = TABLE
    """The table."""


class Fit:
    """Counts over games."""

    def __init__(self) -> None:
        self.games: Counter[str] = Counter()
        self.receptacles: dict[str, Counter[str]] = defaultdict(Counter)
        self.objects: dict[str, Counter[str]] = defaultdict(Counter)
        self.placements: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self.goals: dict[str, dict[str, Counter[tuple[str, str]]]] = defaultdict(lambda: defaultdict(Counter))
        self.shared: dict[str, list[int]] = defaultdict(list)
        self.openable: set[str] = set()
        self.holds: dict[str, set[str]] = defaultdict(set)
        self.able: dict[str, set[str]] = defaultdict(set)

    def add(self, game: Game, room: str, task: str) -> None:
        """Count one game."""
        self.games[room] += 1
        kinds = [kind(name) for name in game.objects]
        for receptacle, name in enumerate(game.receptacles):
            of = kind(name)
            self.receptacles[room][of] += 1
            together = [r for r in game.here[game.places[receptacle]] if kind(game.receptacles[r]) == of]
            self.shared[of].append(len(together) > 1)
            if game.openable >> receptacle & 1:
                self.openable.add(of)
            self.holds[of].update(kinds[number] for number in bits(game.accepts[receptacle]))
            for number in bits(game.contents[receptacle]):
                self.objects[room][kinds[number]] += 1
                self.placements[room][kinds[number]][of] += 1
        for ability, objects in game.able.items():
            for number in bits(objects):
                self.able[kinds[number]].add(ability)
        for goal in game.goals:
            if goal.kind != "light" and goal.objects:
                wanted = kinds[next(bits(goal.objects))]
                where = kind(game.receptacles[goal.receptacles[0]]) if goal.receptacles else ""
                self.goals[task][room][wanted, where] += 1

    def table(self) -> dict[str, Any]:
        """The counts as the table: mean numbers a room, shares of placements, numbers of goals."""
        placed = {name for counts in self.objects.values() for name in counts}
        return {
            "rooms": {
                room: {
                    "receptacles": _rounded(self.receptacles[room], self.games[room]),
                    "objects": _rounded(self.objects[room], self.games[room]),
                    "placements": {
                        name: _rounded(where, sum(where.values()))
                        for name, where in sorted(self.placements[room].items())
                    },
                    "goals": {
                        task: [[*pair, count] for pair, count in sorted(rooms[room].items())]
                        for task, rooms in sorted(self.goals.items())
                        if rooms[room]
                    },
                }
                for room in sorted(self.games)
            },
            "receptacles": {
                name: {
                    "openable": name in self.openable,
                    "shared": round(sum(self.shared[name]) / len(self.shared[name]), 3),
                    "holds": sorted(self.holds[name] & placed),
                }
                for name in sorted(self.shared)
            },
            "objects": {name: sorted(self.able[name]) for name in sorted(placed)},
        }


def _rounded(counts: Counter[str], total: int) -> dict[str, float]:
    return {name: round(count / total, 3) for name, count in sorted(counts.items()) if count / total >= 0.0005}


def main() -> None:
    """Read the games, count, and write the table."""
    config = tyro.cli(Config)
    games = find_games(config.data)
    fit = Fit()
    for game_id in games.ids(config.split):
        scene = int(game_id.split("/")[1].rpartition("-")[2])
        fit.add(read_game(games.read(game_id), game_id), ROOMS[scene // 100], official_type(game_id))
    config.out.write_text(json.dumps(fit.table(), indent=1) + "\n", encoding="utf-8")
    print(f"{sum(fit.games.values())} games: {dict(fit.games)}; written to {config.out}")


if __name__ == "__main__":
    main()
