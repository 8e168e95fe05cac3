"""Recipe graphs without end.

A graph is drawn from the goal down: the goal lies at level `depth`, each recipe has one ingredient from the level right
below, and the others lie anywhere below or at the bottom, where items are there to be taken. The recipes in scope that
are left lead nowhere: they consume what the others consume, or items of their own. Every item has one recipe at most,
so every recipe above is needed, and the shortest plan is known exactly. A graph is kept if its plan has the length, and
its items the number, that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import shake_256
from itertools import chain, count, repeat
from math import ceil
from struct import Struct

from textagent_gym.domains.textcraft.book import Game, Solution
from textagent_gym.domains.textcraft.words import NAMES
from textagent_gym.errors import InfeasibleDifficultyError
from textagent_gym.knobs import Options, knob
from textagent_gym.tasks import in_split

VERSION = 2
"""Version of the generator, the second part of every id."""
DRAWS = 5_000
"""Graphs that are drawn for a task before it is called infeasible: about a second, and half a minute where each has a
hundred recipes of six ingredients."""

LONGEST = 200
"""Actions of the longest plan of a graph; counts multiply from level to level."""

WORDS = 2**32
"""Number of different words that are drawn: a chance of 1."""
_WORDS_OF_BLOCK = Struct("<64I")


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

    @cached_property
    def dice(self) -> tuple[tuple[int, int], ...]:
        """Least number, and how many there are, of ingredients, units and yields: `least + (word() * sides >> 32)`."""
        return tuple([(low, high + 1 - low) for low, high in (self.branching, self.counts, self.yields)])


def generate(spec: GraphSpec, split: str, index: int) -> Game:
    """The game of a task: the same one for the same arguments, everywhere.

    Raises:
        InfeasibleDifficultyError: no such graph was found; the message says what was.
    """
    draws = _Draws(f"TextCraft/{VERSION}/{spec.slug}/{split}/{index}")
    goals = _goals(split)
    goal = goals[draws.word() * len(goals) >> 32]
    lengths: set[int] = set()
    sizes: set[int] = set()
    for _ in range(DRAWS):
        graph = _Graph(spec, draws)
        if not graph.grow():
            continue
        graph.solve()
        if graph.length > LONGEST or spec.solution_length not in (None, graph.length):
            lengths.add(graph.length)
        elif graph.distract():
            return graph.game(goal)
        else:
            sizes |= graph.feasible_items
    raise InfeasibleDifficultyError(_complaint(spec, lengths, sizes))


@cache
def _goals(split: str) -> tuple[int, ...]:
    """Places, among the names, of those that goals of a split have: no goal is in two splits, so no game is."""
    return tuple([place for place, name in enumerate(NAMES) if in_split(name, split)])


def _complaint(spec: GraphSpec, lengths: set[int], sizes: set[int]) -> str:
    start = f"no recipe graph has {spec.slug}, of {DRAWS:,} that were drawn"
    if sizes:
        return f"{start}: with recipes={spec.recipes}, items goes from {min(sizes)} to {max(sizes)}"
    if lengths:
        low, high, asked = min(lengths), max(lengths), spec.solution_length or 0
        if low < asked < high:
            below = max(length for length in lengths if length < asked)
            above = min(length for length in lengths if length > asked)
            return f"{start}: of their shortest plans, the nearest have {below} and {above} actions"
        return (
            f"{start}: their shortest plans have {low} to {high} actions. "
            "More come from a larger depth, branching or counts, fewer from smaller ones"
        )
    short = spec.solution_length is not None and spec.solution_length <= spec.recipes
    bound = f"solution_length={spec.solution_length}" if short else f"recipes={spec.recipes}"
    return f"{start}: depth={spec.depth} with branching={spec.branching} needs more than {bound}"


class _Draws:
    """What is drawn from a seed, the same everywhere: words of 32 bits, from SHAKE-256 of the seed.

    Args:
        seed: seed.

    Attributes:
        word: function that draws a word. `word() * bound >> 32` is a number from 0 to below the bound.
    """

    def __init__(self, seed: str) -> None:
        self.word: Callable[[], int] = chain.from_iterable(map(_block, repeat(seed), count())).__next__


def _block(seed: str, number: int) -> tuple[int, ...]:
    return _WORDS_OF_BLOCK.unpack(shake_256(f"{seed}/{number}".encode()).digest(256))


class _Graph:
    """A graph being drawn; items are numbers, and have names only at the end. The goal is item 0.

    Args:
        spec: properties that are asked for.
        draws: source of all that is drawn.

    Attributes:
        levels: level of each item that the goal needs; of the others, 0 for those that are there to be taken, else 1.
        needs: ingredients of each item that is crafted, with their units.
        yields: units that one crafting of an item yields.
        needed: items that the goal needs crafted, itself included, once `solve` has run.
        crafts: actions of the shortest plan that craft, once `solve` has run.
        length: actions of the shortest plan, once `solve` has run.
        feasible_items: least and largest number of items that the graph can have, once `distract` has failed.
    """

    def __init__(self, spec: GraphSpec, draws: _Draws) -> None:
        self.spec = spec
        self.levels = [spec.depth]
        self.needs: dict[int, list[tuple[int, int]]] = {}
        self.yields: dict[int, int] = {}
        self.feasible_items: set[int] = set()
        self._word = draws.word

    def grow(self) -> bool:
        """Draw all that the goal needs; false where that takes more recipes than are asked for."""
        spec, word, levels, needs = self.spec, self._word, self.levels, self.needs
        (low, sides), (few, amounts), (little, numbers) = spec.dice
        crafted = word()  # Share of the ingredients that are crafted where they need not be.
        shared = ceil(spec.shared * WORDS)
        most = min(spec.recipes, (spec.solution_length or LONGEST) - 1)  # Each takes an action, and a get.
        at_level: list[list[int]] = [[] for _ in range(spec.depth)]
        waiting = [0]
        while waiting:
            if len(needs) + len(waiting) > most:
                return False
            item = waiting.pop()
            level = highest = levels[item] - 1  # That of the first ingredient.
            chosen: list[int] = []
            for number in range(low + (word() * sides >> 32)):
                if number:
                    level = 0 if word() >= crafted else word() * (highest + 1) >> 32
                known = at_level[level]
                if known and chosen:
                    known = [each for each in known if each not in chosen]
                if known and word() < shared:
                    chosen.append(known[word() * len(known) >> 32])
                else:
                    new = len(levels)
                    levels.append(level)
                    at_level[level].append(new)
                    chosen.append(new)
                    if level:
                        waiting.append(new)
            needs[item] = [(each, few + (word() * amounts >> 32)) for each in chosen]
            self.yields[item] = little + (word() * numbers >> 32)
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
            for each, needed in self.needs[item]:
                units[each] += needed * times
        self.length = self.crafts + self.levels.count(0)  # One get for each.

    def distract(self) -> bool:
        """Draw the recipes that lead nowhere; false where the items cannot be as many as are asked for."""
        spec, word, levels, needs = self.spec, self._word, self.levels, self.needs
        (low, sides), (few, amounts), (little, numbers) = spec.dice
        branching = [low + (word() * sides >> 32) for _ in range(spec.recipes - len(needs))]
        slots = sum(branching)
        size = len(levels)
        if spec.items is None:
            rarely = ceil(max(spec.shared, 0.5) * WORDS)
            fresh = sum([word() >= rarely for _ in range(slots)])
        else:
            least = size + len(branching)
            fresh = spec.items - least
            if not 0 <= fresh <= slots:
                self.feasible_items = {least, least + slots}
                return False
        for ingredients in branching:
            known = left = size - 1  # All but the goal, which ends the game: nothing consumes it.
            chosen: list[int] = []
            for _ in range(ingredients):
                if word() * slots >> 32 < fresh:
                    fresh -= 1
                    item = size
                    size += 1
                    levels.append(0)
                elif left:
                    left -= 1
                    item = 1 + (word() * known >> 32)
                    while item in chosen:
                        item = 1 + (word() * known >> 32)
                else:
                    return False
                chosen.append(item)
                slots -= 1
            needs[size] = [(each, few + (word() * amounts >> 32)) for each in chosen]
            self.yields[size] = little + (word() * numbers >> 32)
            size += 1
            levels.append(1)
        return True

    def game(self, goal: int) -> Game:
        """The game.

        Args:
            goal: place of the goal's name among `NAMES`; the other items get other names.
        """
        word, needs, yields = self._word, self.needs, self.yields
        different = len(NAMES)
        places = dict.fromkeys([goal, *[word() * different >> 32 for _ in self.levels[1:]]])
        while len(places) < len(self.levels):
            places[word() * different >> 32] = None
        names = [NAMES[place] for place in places]
        lines = []
        for item in sorted(needs, key=lambda _: word()):
            consumed = ", ".join([f"{units} {names[each]}" for each, units in needs[item]])
            lines.append(f"craft {yields[item]} {names[item]} using {consumed}")
        crafted = frozenset([names[item] for item in self.needed])
        solution = Solution(self.length, self.crafts, self.spec.depth, crafted)
        return Game(names[0], tuple(lines), frozenset(names), solution)
