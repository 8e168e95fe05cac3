"""TextCraft's tasks: recipe graphs without end, and the goals of Minecraft's recipes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

from textagent_gym.complexity import Complexity
from textagent_gym.domains.textcraft.book import Game, RecipeBook, Solution
from textagent_gym.domains.textcraft.engine import State
from textagent_gym.domains.textcraft.generator import VERSION, GraphSpec, generate
from textagent_gym.domains.textcraft.minecraft import PACKAGE_VERSION, digest, read_book
from textagent_gym.domains.textcraft.planner import solve
from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import Options, knob
from textagent_gym.sources import GeneratedTasks, ListedTasks
from textagent_gym.tasks import Task, in_split

_PREFIX = "TextCraft"


@dataclass(frozen=True, slots=True, kw_only=True)
class CraftingComplexity(Complexity):
    """What was measured in a goal and the recipes shown with it.

    `state_size` is the number of recipes in scope, `action_size` that of the items in scope that can be taken or
    crafted: amounts make the commands themselves endless.

    Attributes:
        depth: number of recipes on the longest way down to items that are there, by the shallowest recipes.
        crafts: number of actions of the shortest plan that craft; the others get.
    """

    depth: int
    crafts: int


@dataclass(frozen=True, kw_only=True)
class MinecraftOptions(Options):
    """Which of Minecraft's recipes are crafted."""

    data: str | None = knob(
        None, "folder of recipes, one JSON file each, as upstream has it; `None` for the package `minecraft_data`"
    )
    distractors: int = knob(10, "recipes shown that are not needed, at most", low=0, high=1000, short="x", always=True)
    depth: tuple[int, int] | None = knob(None, "recipes on the longest way from the goal down; `None` for any", low=1)
    lengths: tuple[int, int] | None = knob(None, "actions of the shortest plan; `None` for any", low=2)

    def __post_init__(self) -> None:
        """See `Options`."""
        super().__post_init__()
        if self.data == "":
            raise InvalidOptionError('data="" is not a folder: name one, or leave data out for the package')


class GraphTasks(GeneratedTasks[GraphSpec, Game]):
    """Recipe graphs. A graph belongs to one split only, by the name of its goal.

    Even those of one recipe and one ingredient are 28 million in the smallest split, by the names alone: none of these
    splits repeats itself.
    """

    prefix = _PREFIX
    version = VERSION

    def __init__(self, spec: GraphSpec | None = None) -> None:
        super().__init__(spec or GraphSpec())

    def _make(self, split: str, index: int) -> Game:
        return _generate(self.spec, split, index)

    def _measure(self, world: Game) -> tuple[Complexity, int, str]:
        return measure(world), len(solution_of(world).crafted), ""


class MinecraftTasks(ListedTasks[Task]):
    """Everything that Minecraft's recipes craft; ids are `TextCraft/SOURCE/xDISTRACTORS/SPLIT/GOAL`.

    Goals are dealt out to the splits by their names. Upstream numbers them in the order of a directory, which differs
    from machine to machine.

    Raises:
        InvalidOptionError: the folder holds no recipes, or none of the goals is as `depth` and `lengths` say.
        MissingDependencyError: there is no folder, and the package is not installed.
    """

    def __init__(self, options: MinecraftOptions | None = None) -> None:
        self.options = options or MinecraftOptions()
        self.book = read_book(self.options.data)
        source = f"minecraft-{PACKAGE_VERSION if self.options.data is None else digest(self.book)}"
        self._start = f"{_PREFIX}/{source}/{self.options.slug}"
        if self.book.recipes and not any(map(self._ids, self.splits)):
            raise InvalidOptionError(self._none())

    def world(self, task: Task) -> Game:
        """The game of a task, shared by everybody who plays it."""
        return _game(self.book, task.id, _goal(task.id), self.options.distractors)

    def _ids(self, split: str) -> tuple[str, ...]:
        return _goal_ids(self.book, self._start, split, self.options.depth, self.options.lengths)

    def _load(self, task_id: str, split: str, index: int) -> Task:
        game = _game(self.book, task_id, _goal(task_id), self.options.distractors)
        complexity = measure(game)
        return Task(
            id=task_id,
            split=split,
            index=index,
            complexity=complexity,
            milestones=len(solution_of(game).crafted),
            task_type=f"depth {complexity.depth}",
        )

    def _advice(self) -> str:
        example = next((task_id for split in self.splits for task_id in self._ids(split)), "")
        return f"Ids are {self._start}/<split>/<goal>, such as {example}." if example else ""

    def _none(self) -> str:
        """What was asked for without any goal, and what there is."""
        asked = {"depth": self.options.depth, "lengths": self.options.lengths}
        chosen = " and ".join(f"{name}={pair}" for name, pair in asked.items() if pair)
        depths = [self.book.depth(goal) for goal in self.book.recipes]
        lengths = [len(_plan(self.book, goal)) for goal in self.book.recipes]
        return (
            f"no goal has {chosen}: of the {len(depths)} goals, depth goes from {min(depths)} to {max(depths)} and "
            f"lengths from {min(lengths)} to {max(lengths)}"
        )


@lru_cache(maxsize=4096)
def _generate(spec: GraphSpec, split: str, index: int) -> Game:
    return generate(spec, split, index)


@lru_cache(maxsize=4096)
def _game(book: RecipeBook, task_id: str, goal: str, distractors: int) -> Game:
    """A goal with the recipes that may help, and others that consume the same."""
    needed = book.needed(goal)
    names = {each.name for recipe in needed for each in recipe.ingredients}
    consuming = {
        recipe
        for ways in book.recipes.values()
        for recipe in ways
        if recipe not in needed and any(each.name in names for each in recipe.ingredients)
    }
    others = sorted(consuming, key=lambda recipe: recipe.command)
    rng = Random(task_id)
    shown = [*needed, *rng.sample(others, min(distractors, len(others)))]
    rng.shuffle(shown)
    return Game.of(book, goal, tuple(shown))


@lru_cache(maxsize=64)
def _goal_ids(
    book: RecipeBook, start: str, split: str, depth: tuple[int, int] | None, length: tuple[int, int] | None
) -> tuple[str, ...]:
    """Ids of a split, sorted."""
    return tuple(
        f"{start}/{split}/{goal.replace(' ', '_')}"
        for goal in sorted(book.recipes)
        if in_split(goal, split)
        and (depth is None or depth[0] <= book.depth(goal) <= depth[1])
        and (length is None or length[0] <= len(_plan(book, goal)) <= length[1])
    )


@lru_cache(maxsize=4096)
def _plan(book: RecipeBook, goal: str) -> tuple[str, ...]:
    return solve(Game.of(book, goal, ()), {}).commands


def _goal(task_id: str) -> str:
    return task_id.rpartition("/")[2].replace("_", " ")


def solution_of(game: Game) -> Solution:
    """What a shortest plan of a game is like. The last item that it crafts is the goal; each of them is a milestone."""
    return game.solution or _solution(game.book, game.goal)


@lru_cache(maxsize=4096)
def _solution(book: RecipeBook, goal: str) -> Solution:
    plan = _plan(book, goal)
    state = State(Game.of(book, goal, ()))
    for command in plan:
        state.step(command)
    crafts = sum(command.startswith("craft") for command in plan)
    return Solution(len(plan), crafts, book.depth(goal), state.crafted)


@lru_cache(maxsize=4096)
def measure(game: Game) -> CraftingComplexity:
    """Measured difficulty."""
    solution = solution_of(game)
    return CraftingComplexity(
        state_size=len(game.commands),
        action_size=float(len(game.items)),
        solution_length=solution.length,
        exact=True,
        depth=solution.depth,
        crafts=solution.crafts,
    )
