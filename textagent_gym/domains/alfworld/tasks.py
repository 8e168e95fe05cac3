"""ALFWorld's official games as tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from textagent_gym.difficulty import Complexity
from textagent_gym.domains.alfworld.data import SPLITS, OfficialGames, find_games
from textagent_gym.domains.alfworld.engine import State
from textagent_gym.domains.alfworld.game import TASK_TYPES, Dialect, Game, read_game
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.errors import InvalidOptionError, UnknownTaskError
from textagent_gym.tasks import Task, TaskSource

_PREFIX = "ALFWorld"


@dataclass(frozen=True, kw_only=True)
class ALFWorldTask(Task):
    """A game; `game` is shared by everybody who plays it."""

    game: Game


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
        if dialect not in (None, "move", "put"):
            raise InvalidOptionError(f'dialect must be "move", "put" or None, got {dialect!r}')
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


@lru_cache(maxsize=64)
def _of_types(games: OfficialGames, split: str, task_types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in games.ids(split) if task_type(name) in task_types)


@lru_cache(maxsize=4096)
def _load(games: OfficialGames, game_id: str, dialect: Dialect | None, shuffle: int | None) -> tuple[Game, Complexity]:
    game = read_game(games.read(game_id), game_id, dialect, shuffle)
    return game, measure(game)


def task_type(game_id: str) -> str:
    """The short name of a game's type, from its id."""
    return TASK_TYPES[game_id.split("/")[1].split("-", maxsplit=1)[0]]


def measure(game: Game) -> Complexity:
    """Measured difficulty: receptacles and objects, admissible actions along the shortest plan, and its length."""
    state = State(game)
    plan = solve(state)
    admissible = []
    for command in plan.commands if plan else ():
        admissible.append(len(state.commands()))
        state.step(command)
    return Complexity(
        state_size=len(game.receptacles) + len(game.objects),
        action_size=sum(admissible) / len(admissible) if admissible else 0.0,
        solution_length=len(plan.commands) if plan else None,
        exact=plan is not None,
    )
