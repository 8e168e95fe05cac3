"""ALFWorld's tasks: the official games, and generated rooms without end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from textagent_gym.complexity import Complexity
from textagent_gym.domains.alfworld.data import SPLITS, STORY, OfficialGames, find_games
from textagent_gym.domains.alfworld.engine import PROCESSES, State
from textagent_gym.domains.alfworld.game import TASK_TYPES, Dialect, Game, read_game
from textagent_gym.domains.alfworld.generator import RoomSpec, exploration_cost, generate, visible_content
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.domains.alfworld.reference import upstream_content
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError, UnknownTaskError
from textagent_gym.repetition import RepetitionWatch
from textagent_gym.tasks import Task, TaskSource

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
class ALFWorldTask(Task):
    """A game; `game` is shared by everybody who plays it, and tasks of the same id are equal."""

    game: Game = field(compare=False)


class OfficialTasks(TaskSource[ALFWorldTask]):
    """The official games, in the order of their ids.

    Args:
        data: folder of the games; see `data.find_games`.
        task_types: which of "pick", "look", "clean", "heat", "cool" and "two"; all by default.
        dialect: "move" or "put" for `move X to Y` or `put X in/on Y`; by default what the game's release says.
        shuffle: seed of the numbering of things; see `game.read_game`.

    Raises:
        MissingDataError: the games are not there.
        InvalidOptionError: there is no such task type or dialect.
    """

    splits = SPLITS

    def __init__(
        self,
        data: str | None = None,
        task_types: Sequence[str] | None = None,
        dialect: Dialect | None = None,
        shuffle: int | None = None,
    ) -> None:
        if isinstance(task_types, str):
            task_types = (task_types,)
        unknown = [name for name in task_types or () if name not in TASK_TYPES.values()]
        if unknown:
            raise InvalidOptionError(f"task_types={unknown} do not exist; choose of {', '.join(TASK_TYPES.values())}")
        _check_dialect(dialect)
        self.games = find_games(data)
        self.task_types = tuple(task_types or TASK_TYPES.values())
        self.dialect = dialect
        self.shuffle = shuffle

    def size(self, split: str) -> int:
        """Number of games in a split."""
        return len(self._ids(split))

    def task(self, split: str, index: int) -> ALFWorldTask:
        """The `index`-th game of a split; see `TaskSource.task`."""
        ids = self._ids(split)
        if not 0 <= index < len(ids):
            raise UnknownTaskError(
                f"task_index={index} does not exist in split {split!r}: it goes from 0 to {len(ids) - 1}"
                if ids
                else f"split {split!r} has no games of the types {', '.join(self.task_types)} here"
            )
        game, complexity = _load(self.games, ids[index], self.dialect, self.shuffle)
        return ALFWorldTask(
            id=f"{_PREFIX}/{ids[index]}",
            split=split,
            index=index,
            complexity=complexity,
            milestones=sum(goal.milestones for goal in game.goals),
            task_type=task_type(game),
            game=game,
        )

    def find(self, task_id: str) -> ALFWorldTask:
        """The game with this id; see `TaskSource.find`."""
        split, _, _ = task_id.removeprefix(f"{_PREFIX}/").partition("/")
        if task_id.startswith(f"{_PREFIX}/") and split in self.splits:
            ids = self._ids(split)
            if task_id[len(_PREFIX) + 1 :] in ids:
                return self.task(split, ids.index(task_id[len(_PREFIX) + 1 :]))
        raise UnknownTaskError(
            f"task {task_id!r} is not here: ids are {_PREFIX}/<split>/<task>/<trial>, "
            f"of the types {', '.join(self.task_types)}"
        )

    def _ids(self, split: str) -> tuple[str, ...]:
        return _of_types(self.games, self.check_split(split), self.task_types)


class GeneratedTasks(TaskSource[ALFWorldTask]):
    """Generated rooms, addressed by what is asked, split and index. A room belongs to one split only, by its content.

    Args:
        spec: what is asked for.
        dialect: "move" or "put".
    """

    def __init__(self, spec: RoomSpec, dialect: Dialect = "move") -> None:
        _check_dialect(dialect)
        self.spec = spec
        self.dialect = dialect
        self._repetition = RepetitionWatch(f"{_PREFIX}/{spec.slug}")

    def size(self, split: str) -> None:
        """Endless."""
        self.check_split(split)

    def task(self, split: str, index: int) -> ALFWorldTask:
        """The `index`-th room of a split; see `TaskSource.task`."""
        self.check_split(split)
        if index < 0:
            raise UnknownTaskError(f"task_index={index} does not exist: it goes from 0")
        game, complexity = _generate(self.spec, split, index, self.dialect)
        self._repetition.note(split, index, visible_content(game))
        return ALFWorldTask(
            id=f"{_PREFIX}/{self.spec.slug}/{split}/{index}",
            split=split,
            index=index,
            complexity=complexity,
            milestones=sum(goal.milestones for goal in game.goals),
            task_type=task_type(game),
            game=game,
        )

    def find(self, task_id: str) -> ALFWorldTask:
        """The room with this id; see `TaskSource.find`."""
        parts = task_id.split("/")
        if len(parts) == 4 and parts[:2] == [_PREFIX, self.spec.slug] and parts[2] in self.splits:
            number = parts[3]
            if number.isascii() and number.isdigit() and str(int(number)) == number:
                return self.task(parts[2], int(number))
        raise UnknownTaskError(
            f"task {task_id!r} is none of this environment's: their ids are {_PREFIX}/{self.spec.slug}/<split>/<index>."
            " A task is played by an environment made with the same options."
        )

    def original(self, task: ALFWorldTask) -> dict[str, Any]:
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
        assert isinstance(task, ALFWorldTask)
        content = self.original(task)
        kind = next(name for name, short in TASK_TYPES.items() if short == task.task_type.partition("+")[0])
        trial = folder / task.split / f"{kind}-{self.spec.slug}" / f"trial_{task.index:06d}"
        trial.mkdir(parents=True, exist_ok=True)
        (trial / "traj_data.json").write_text(json.dumps({"task_type": kind, "task_id": task.id}), encoding="utf-8")
        (trial / STORY).write_text(json.dumps(content), encoding="utf-8")
        return trial / STORY


@lru_cache(maxsize=4096)
def _generate(spec: RoomSpec, split: str, index: int, dialect: Dialect) -> tuple[Game, ExplorationComplexity]:
    game, _ = generate(spec, split, index)
    game = replace(game, dialect=dialect)
    return game, measure(game)


def _check_dialect(dialect: Dialect | None) -> None:
    if dialect not in (None, "move", "put"):
        raise InvalidOptionError(f'dialect must be "move" or "put", got {dialect!r}')


@lru_cache(maxsize=64)
def _of_types(games: OfficialGames, split: str, task_types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in games.ids(split) if official_type(name) in task_types)


@lru_cache(maxsize=4096)
def _load(
    games: OfficialGames, game_id: str, dialect: Dialect | None, shuffle: int | None
) -> tuple[Game, ExplorationComplexity]:
    game = read_game(games.read(game_id), game_id, dialect, shuffle)
    return game, measure(game)


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
