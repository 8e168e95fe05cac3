"""Recipe graphs without end.

A graph is drawn from the goal down: the goal lies at level `depth`, each recipe has one ingredient from the level right
below, and the others lie anywhere below or at the bottom, where items are there to be taken. The recipes in scope that
are left lead nowhere: they consume what the others consume, or items of their own. Every item has one recipe at most,
so every recipe above is needed, and the shortest plan is known exactly. A graph is kept if its plan has the length, and
its items the number, that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log
from random import Random
from typing import Any, TypeVar

from textagent_gym.domains.textcraft.book import Game, Ingredient, Recipe, RecipeBook, Solution
from textagent_gym.domains.textcraft.words import NAMES
from textagent_gym.errors import InfeasibleDifficultyError
from textagent_gym.knobs import Options, knob
from textagent_gym.tasks import in_split

VERSION = 1
"""Version of the generator, the second part of every id."""
DRAWS = 5_000
"""Graphs that are drawn for a task before it is called infeasible: about a second."""

LONGEST = 200
"""Actions of the longest plan of a graph; counts multiply from level to level."""

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class GraphSpec(Options):
    """What can be asked of a recipe graph."""

    depth: int = knob(2, "recipes on the longest way from the goal down", low=1, high=10, short="d", always=True)
    recipes: int = knob(
        8, "recipes in scope, those that lead nowhere included", low=1, high=100, short="r", always=True,
        axis="state_size",
    )  # fmt: skip
    items: int | None = knob(
        None, "gettable and craftable items in scope; `None` for any number", low=2, high=400, short="i",
        axis="action_size",
    )  # fmt: skip
    solution_length: int | None = knob(
        None, "actions of the shortest plan, exactly; `None` for any", low=2, high=LONGEST, short="q",
        axis="solution_length",
    )  # fmt: skip
    branching: tuple[int, int] = knob((1, 3), "ingredients of a recipe", low=1, high=6, short="b")
    counts: tuple[int, int] = knob(
        (1, 2), "units of an ingredient that one crafting consumes", low=1, high=64, short="n"
    )
    yields: tuple[int, int] = knob((1, 2), "units that one crafting yields", low=1, high=64, short="y")
    shared: float = knob(
        0.3, "chance that an ingredient is one that another recipe consumes too", low=0.0, high=1.0, short="s"
    )


def generate(spec: GraphSpec, split: str, index: int) -> Game:
    """The game of a task: the same one for the same arguments, everywhere.

    Raises:
        InfeasibleDifficultyError: no such graph was found; the message says what was.
    """
    draws = _Draws(f"TextCraft/{VERSION}/{spec.slug}/{split}/{index}")
    lengths: set[int] = set()
    sizes: set[int] = set()
    for _ in range(DRAWS):
        graph = _Graph(spec, draws)
        if not graph.grow():
            continue
        graph.solve()
        if graph.length > LONGEST or spec.solution_length not in (None, graph.length):
            lengths.add(graph.length)
            continue
        if not graph.distract():
            sizes |= graph.feasible_items
            continue
        graph.name()
        commands = graph.commands()
        if in_split(_content(graph.names[0], commands), split):
            game = graph.game()
            vars(game)["commands"] = tuple(commands)  # A cached property, which would compute the same.
            return game
    raise InfeasibleDifficultyError(_complaint(spec, lengths, sizes))


def content(game: Game) -> str:
    """What decides which split a game belongs to: its goal and its recipes, in any order."""
    return _content(game.goal, game.commands)


def _content(goal: str, commands: Sequence[str]) -> str:
    return "\n".join([goal, *sorted(commands)])


def _complaint(spec: GraphSpec, lengths: set[int], sizes: set[int]) -> str:
    start = f"no recipe graph has {spec.slug}, of {DRAWS:,} that were drawn"
    if sizes:
        return f"{start}: with recipes={spec.recipes}, items goes from {min(sizes)} to {max(sizes)}"
    if lengths:
        low, high = min(lengths), max(lengths)
        return (
            f"{start}: their shortest plans have {low} to {high} actions. "
            "More come from a larger depth, branching or counts, fewer from smaller ones"
        )
    short = spec.solution_length is not None and spec.solution_length <= spec.recipes
    bound = f"solution_length={spec.solution_length}" if short else f"recipes={spec.recipes}"
    return f"{start}: depth={spec.depth} with branching={spec.branching} needs more than {bound}"


class _Draws:
    """What is drawn from a seed: the same in every version of Python, which promises that of single bits alone.

    Args:
        seed: seed.
    """

    def __init__(self, seed: str) -> None:
        generator = Random(seed)
        self._bits = generator.getrandbits
        self.share = generator.random

    def below(self, bound: int) -> int:
        """A number from 0 to below a bound."""
        bits = bound.bit_length()
        drawn = self._bits(bits)
        while drawn >= bound:
            drawn = self._bits(bits)
        return drawn

    def die(self, bounds: tuple[int, int]) -> Callable[[], int]:
        """A function that draws a number of a range, both ends included."""
        get_bits, low, sides = self._bits, bounds[0], bounds[1] + 1 - bounds[0]
        bits = sides.bit_length()

        def throw() -> int:
            drawn = get_bits(bits)
            while drawn >= sides:
                drawn = get_bits(bits)
            return low + drawn

        return throw

    def shuffle(self, values: list[Any]) -> None:
        """Bring values into a random order."""
        for last in range(len(values) - 1, 0, -1):
            chosen = self.below(last + 1)
            values[last], values[chosen] = values[chosen], values[last]

    def sample(self, values: Sequence[_T], count: int) -> list[_T]:
        """Different ones of some values, in random order; drawn as `random.sample` of Python 3.11 to 3.14 does."""
        size = len(values)
        if count == 1:
            return [values[self.below(size)]]
        if size > 21 + (4 ** ceil(log(count * 3, 4)) if count > 5 else 0):
            places: dict[int, None] = {}
            while len(places) < count:
                places[self.below(size)] = None
            return [values[place] for place in places]
        pool = list(values)
        chosen = []
        for left in range(size, size - count, -1):
            place = self.below(left)
            chosen.append(pool[place])
            pool[place] = pool[left - 1]
        return chosen


class _Graph:
    """A graph being drawn; items are numbers, and have names only at the end. The goal is item 0.

    Args:
        spec: properties that are asked for.
        draws: source of all that is drawn.

    Attributes:
        levels: level of each item, 0 for those that are there to be taken.
        needs: ingredients of each item that is crafted, with their counts.
        yields: units that one crafting of an item yields.
        needed: items that the goal needs crafted, itself included, once `solve` has run.
        crafts: actions of the shortest plan that craft, once `solve` has run.
        length: actions of the shortest plan, once `solve` has run.
        feasible_items: least and largest number of items that the graph can have, once `distract` has failed.
        names: names of the items, once `name` has run.
        order: items that are crafted, in the order in which their recipes are shown, once `name` has run.
    """

    def __init__(self, spec: GraphSpec, draws: _Draws) -> None:
        self.spec = spec
        self.levels: list[int] = []
        self.needs: dict[int, list[tuple[int, int]]] = {}
        self.yields: dict[int, int] = {}
        self._draws = draws
        self._branching = draws.die(spec.branching)
        self._counts = draws.die(spec.counts)
        self._yields = draws.die(spec.yields)

    def grow(self) -> bool:
        """Draw all that the goal needs; false where that takes more recipes than are asked for."""
        spec, draws = self.spec, self._draws
        crafted = draws.share()  # Share of the ingredients that are crafted where they need not be.
        most = min(spec.recipes, (spec.solution_length or LONGEST) - 1)  # Each takes an action, and a get.
        at_level: list[list[int]] = [[] for _ in range(spec.depth + 1)]
        waiting = [self._new(spec.depth)]
        at_level[spec.depth].append(0)
        while waiting:
            if len(self.needs) + len(waiting) > most:
                return False
            item = waiting.pop()
            level = below = self.levels[item] - 1  # That of the first ingredient.
            chosen: list[int] = []
            for number in range(self._branching()):
                if number:
                    level = 0 if draws.share() >= crafted else draws.below(below + 1)
                known = [each for each in at_level[level] if each not in chosen]
                if known and draws.share() < spec.shared:
                    chosen.append(known[draws.below(len(known))])
                else:
                    new = self._new(level)
                    chosen.append(new)
                    at_level[level].append(new)
                    if level:
                        waiting.append(new)
            self._add_recipe(item, chosen)
        return True

    def solve(self) -> None:
        """Find the shortest plan: with one recipe per item, there is nothing to choose."""
        units = [0] * len(self.levels)
        units[0] = 1
        self.needed = sorted(self.needs, key=self.levels.__getitem__, reverse=True)
        self.crafts = 0
        for item in self.needed:
            times = -(-units[item] // self.yields[item])
            self.crafts += times
            for each, count in self.needs[item]:
                units[each] += count * times
        self.length = self.crafts + self.levels.count(0)  # One get for each.

    def distract(self) -> bool:
        """Draw the recipes that lead nowhere; false where the items cannot be as many as are asked for."""
        spec, draws, levels = self.spec, self._draws, self.levels
        branching = [self._branching() for _ in range(spec.recipes - len(self.needs))]
        slots = sum(branching)
        if spec.items is None:
            rarely = max(spec.shared, 0.5)
            fresh = sum([draws.share() >= rarely for _ in range(slots)])
        else:
            fresh = spec.items - len(levels) - len(branching)
            if not 0 <= fresh <= slots:
                self.feasible_items = {len(levels) + len(branching), len(levels) + len(branching) + slots}
                return False
        is_fresh = [True] * fresh + [False] * (slots - fresh)
        draws.shuffle(is_fresh)
        start = 0
        for count in branching:
            known = range(1, len(levels))  # The goal ends the game: nothing consumes it.
            old = is_fresh[start : start + count].count(False)
            start += count
            if old > len(known):
                self.feasible_items = set()
                return False
            chosen = draws.sample(known, old) if old else []
            chosen += [self._new(0) for _ in range(count - old)]
            draws.shuffle(chosen)
            self._add_recipe(self._new(1 + max([levels[item] for item in chosen])), chosen)
        return True

    def name(self) -> None:
        """Give names to the items, and an order to the recipes."""
        self.order = list(self.needs)
        self._draws.shuffle(self.order)
        self.names = self._draws.sample(NAMES, len(self.levels))

    def commands(self) -> list[str]:
        """The lines that show the recipes; those of the game's recipes, without making these."""
        names = self.names
        return [
            f"craft {self.yields[item]} {names[item]} using "
            + ", ".join([f"{count} {names[each]}" for each, count in self.needs[item]])
            for item in self.order
        ]

    def game(self) -> Game:
        """The game."""
        names = self.names
        recipes = tuple(
            [
                Recipe(names[item], self.yields[item], tuple([Ingredient(names[i], n) for i, n in self.needs[item]]))
                for item in self.order
            ]
        )
        gettable = frozenset([name for name, level in zip(names, self.levels, strict=True) if level == 0])
        book = RecipeBook({recipe.output: (recipe,) for recipe in recipes}, gettable, {}, {})
        crafted = frozenset([names[item] for item in self.needed])
        return Game(book, names[0], recipes, Solution(self.length, self.crafts, self.spec.depth, crafted))

    def _new(self, level: int) -> int:
        self.levels.append(level)
        return len(self.levels) - 1

    def _add_recipe(self, item: int, ingredients: list[int]) -> None:
        draw_count = self._counts
        self.needs[item] = [(each, draw_count()) for each in ingredients]
        self.yields[item] = self._yields()
