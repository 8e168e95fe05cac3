"""ALFWorld's tasks: the official games, and generated rooms without end."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from textagent_gym.complexity import Complexity
from textagent_gym.domains.alfworld.data import SPLITS, STORY, OfficialGames, find_games
from textagent_gym.domains.alfworld.engine import PROCESSES, State
from textagent_gym.domains.alfworld.game import TASK_TYPES, Dialect, Game, read_game
from textagent_gym.domains.alfworld.generator import VERSION, RoomSpec, exploration_cost, generate, visible_content
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.domains.alfworld.reference import upstream_content
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.knobs import Options, knob
from textagent_gym.repetition import RepetitionWatch
from textagent_gym.sources import GeneratedTasks, ListedTasks
from textagent_gym.tasks import Task

_PREFIX = "ALFWorld"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationComplexity(Complexity):
    """What was measured in a household.

    Attributes:
        exploration_cost: number of turns that a systematic searcher is expected to need until it has found what the
            goal needs.
    """

    exploration_cost: float


@dataclass(frozen=True, kw_only=True)
class OfficialOptions(Options):
    """Which of the official games are played, and how their things are named."""

    data: str | None = knob(
        None, "folder of the games; `None` for the one that `ALFWORLD_DATA` names, or where upstream downloads them to"
    )
    task_types: tuple[str, ...] = knob(tuple(TASK_TYPES.values()), "types of the games", choices=TASK_TYPES.values())
    dialect: Dialect | None = knob(
        None, "wording of actions, `move X to Y` or `put X in/on Y`; `None` for that of the game's release"
    )
    shuffle: int | None = knob(
        None, "seed of another numbering of the things of a kind, as `AlfredDemangler(shuffle=True)` draws it", low=0
    )


class OfficialTasks(ListedTasks[Task]):
    """The official games, in the order of their ids; ids are `ALFWorld/SPLIT/TASK/TRIAL`.

    Raises:
        MissingDataError: the games are not there.
    """

    splits = SPLITS

    def __init__(self, options: OfficialOptions | None = None) -> None:
        self.options = options or OfficialOptions()
        self.games = find_games(self.options.data)

    def world(self, task: Task) -> Game:
        """The game of a task, shared by everybody who plays it."""
        return _load(self.games, task.id.removeprefix(f"{_PREFIX}/"), self.options.dialect, self.options.shuffle)

    def original(self, task: Task) -> dict[str, Any]:
        """The content of a game's `game.tw-pddl`."""
        return self.games.read(task.id.removeprefix(f"{_PREFIX}/"))

    def _ids(self, split: str) -> tuple[str, ...]:
        return _ids_of_types(self.games, split, self.options.task_types)

    def _load(self, task_id: str, split: str, index: int) -> Task:
        game = _load(self.games, task_id.removeprefix(f"{_PREFIX}/"), self.options.dialect, self.options.shuffle)
        return Task(
            id=task_id,
            split=split,
            index=index,
            complexity=measure(game),
            milestones=milestones(game),
            task_type=task_type(game),
        )

    def _advice(self) -> str:
        types = ", ".join(self.options.task_types)
        return f"Ids are {_PREFIX}/<split>/<task>/<trial>, of games of the types {types}."


class RoomTasks(GeneratedTasks[RoomSpec, Game]):
    """Generated rooms. A room belongs to one split only, by its content.

    Args:
        spec: properties of the rooms that are asked for.
        dialect: "move" or "put".
    """

    prefix = _PREFIX
    version = VERSION

    def __init__(self, spec: RoomSpec, dialect: Dialect = "move") -> None:
        super().__init__(spec)
        self.dialect = dialect
        self._repetition = RepetitionWatch(f"{_PREFIX}/{spec.slug}")

    def _make(self, split: str, index: int) -> Game:
        game = _generate(self.spec, split, index, self.dialect)
        self._repetition.note(split, index, lambda: visible_content(game))
        return game

    def _measure(self, world: Game) -> tuple[Complexity, int, str]:
        return measure(world), milestones(world), task_type(world)

    def original(self, task: Task) -> dict[str, Any]:
        """The content of a `game.tw-pddl` that upstream plays, with the domain and grammar of the `alfworld` package.

        Raises:
            MissingDependencyError: ALFWorld is not installed.
        """
        return upstream_content(generate(self.spec, task.split, task.index)[1])

    def export(self, task: Task, folder: Path) -> Path:
        """Write `<split>/<task type>-.../trial_<index>/game.tw-pddl`, which upstream finds and plays.

        Beside it lies the `traj_data.json` with the type of the task that upstream's own loader asks for.

        Raises:
            MissingDependencyError: ALFWorld is not installed.
        """
        content = self.original(task)
        kind = next(name for name, short in TASK_TYPES.items() if short == task.task_type.partition("+")[0])
        trial = folder / task.split / f"{kind}-{self.spec.slug}" / f"trial_{task.index:06d}"
        trial.mkdir(parents=True, exist_ok=True)
        (trial / "traj_data.json").write_text(json.dumps({"task_type": kind, "task_id": task.id}), encoding="utf-8")
        (trial / STORY).write_text(json.dumps(content), encoding="utf-8")
        return trial / STORY


@lru_cache(maxsize=4096)
def _generate(spec: RoomSpec, split: str, index: int, dialect: Dialect) -> Game:
    return replace(generate(spec, split, index)[0], dialect=dialect)


@lru_cache(maxsize=64)
def _ids_of_types(games: OfficialGames, split: str, task_types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{_PREFIX}/{name}" for name in games.ids(split) if official_type(name) in task_types)


@lru_cache(maxsize=4096)
def _load(games: OfficialGames, game_id: str, dialect: Dialect | None, shuffle: int | None) -> Game:
    return read_game(games.read(game_id), game_id, dialect, shuffle)


def milestones(game: Game) -> int:
    """Number of a game's milestones: those of all its goals."""
    return sum(goal.milestones for goal in game.goals)


def task_type(game: Game) -> str:
    """The short name of a game's type, such as "clean"; names of several goals are joined by "+"."""
    names = []
    for goal in game.goals:
        if goal.kind == "hold":
            names.append("look")
        elif goal.kind == "place":
            processes = [verb for verb, condition in PROCESSES.items() if condition in goal.conditions]
            names += processes or ["two" if goal.count > 1 else "pick"]
    return "+".join(names)


def official_type(game_id: str) -> str:
    """The short name of an official game's type, from its id."""
    return TASK_TYPES[game_id.split("/")[1].split("-", maxsplit=1)[0]]


@lru_cache(maxsize=4096)
def measure(game: Game) -> ExplorationComplexity:
    """Measured difficulty: receptacles and objects, the shortest plan and its admissible actions, and exploration."""
    state = State(game)
    try:
        plan = solve(state)
    except PlanningBudgetError:
        plan = None
    admissible = []
    for command in plan.commands if plan else ():
        admissible.append(len(state.commands()))
        state.step(command)
    return ExplorationComplexity(
        state_size=len(game.receptacles) + len(game.objects),
        action_size=sum(admissible) / len(admissible) if admissible else None,
        solution_length=len(plan.commands) if plan else None,
        exact=plan is not None and plan.exact,
        exploration_cost=exploration_cost(game),
    )
