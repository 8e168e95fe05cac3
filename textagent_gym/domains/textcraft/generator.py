"""Recipe graphs without end.

A graph is drawn from the goal down: the goal lies at level `depth`, each recipe has one ingredient from the level right
below, and the others lie anywhere below or at the bottom, where items are there to be taken. The recipes in scope that
are left lead nowhere: they consume what the others consume, or items of their own. Every item has one recipe at most,
so every recipe above is needed, and the shortest plan is known exactly. A graph is kept if its plan has the length, and
its items the number, that are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from textagent_gym.domains.textcraft.book import Game, Ingredient, Recipe, RecipeBook
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
    rng = Random(f"TextCraft/{VERSION}/{spec.slug}/{split}/{index}")
    lengths: set[int] = set()
    sizes: set[int] = set()
    for _ in range(DRAWS):
        graph = _Graph(spec, rng)
        if not graph.grow():
            continue
        length = graph.length()
        if length > LONGEST or spec.solution_length not in (None, length):
            lengths.add(length)
            continue
        if not graph.distract():
            sizes |= graph.feasible_items
            continue
        game = graph.named()
        if in_split(content(game), split):
            return game
    raise InfeasibleDifficultyError(_complaint(spec, lengths, sizes))


def content(game: Game) -> str:
    """What decides which split a game belongs to: its goal and its recipes, in any order."""
    return "\n".join([game.goal, *sorted(recipe.command for recipe in game.shown)])


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


@dataclass
class _Graph:
    """A graph being drawn; items are numbers, and have names only at the end.

    Attributes:
        spec: properties that are asked for.
        rng: source of all that is drawn.
        levels: level of each item, 0 for those that are there to be taken.
        needs: ingredients of each item that is crafted, with their counts.
        yields: units that one crafting of an item yields.
        feasible_items: least and largest number of items that the graph can have, once `distract` has failed.
    """

    spec: GraphSpec
    rng: Random
    levels: list[int] = field(default_factory=list)
    needs: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    yields: dict[int, int] = field(default_factory=dict)
    feasible_items: set[int] = field(default_factory=set)

    def grow(self) -> bool:
        """Draw all that the goal needs; false where that takes more recipes than are asked for."""
        crafted = self.rng.random()  # Share of the ingredients that are crafted where they need not be.
        most = min(self.spec.recipes, (self.spec.solution_length or LONGEST) - 1)  # Each takes an action, and a get.
        waiting = [self._new(self.spec.depth)]
        while waiting:
            if len(self.needs) + len(waiting) > most:
                return False
            item = waiting.pop()
            below = self.levels[item] - 1
            chosen: list[int] = []
            for number in range(self.rng.randint(*self.spec.branching)):
                anywhere = number and self.rng.random() >= crafted
                level = 0 if anywhere else self.rng.randint(0, below) if number else below
                known = [i for i, at in enumerate(self.levels) if at == level and i not in chosen]
                if known and self.rng.random() < self.spec.shared:
                    chosen.append(self.rng.choice(known))
                else:
                    chosen.append(self._new(level))
                    if level:
                        waiting.append(chosen[-1])
            self._add_recipe(item, chosen)
        return True

    def distract(self) -> bool:
        """Draw the recipes that lead nowhere; false where the items cannot be as many as are asked for."""
        branching = [self.rng.randint(*self.spec.branching) for _ in range(self.spec.recipes - len(self.needs))]
        slots = sum(branching)
        if self.spec.items is None:
            fresh = sum(self.rng.random() >= max(self.spec.shared, 0.5) for _ in range(slots))
        else:
            fresh = self.spec.items - len(self.levels) - len(branching)
            if not 0 <= fresh <= slots:
                self.feasible_items = {len(self.levels) + len(branching), len(self.levels) + len(branching) + slots}
                return False
        is_fresh = [True] * fresh + [False] * (slots - fresh)
        self.rng.shuffle(is_fresh)
        for count in branching:
            known = list(range(1, len(self.levels)))  # The goal ends the game: nothing consumes it.
            here, is_fresh = is_fresh[:count], is_fresh[count:]
            old = count - sum(here)
            if old > len(known):
                self.feasible_items = set()
                return False
            chosen = self.rng.sample(known, old) + [self._new(0) for _ in range(count - old)]
            self.rng.shuffle(chosen)
            self._add_recipe(self._new(1 + max(self.levels[item] for item in chosen)), chosen)
        return True

    def length(self) -> int:
        """Actions of the shortest plan: with one recipe per item, there is nothing to choose."""
        units = {0: 1}
        actions = sum(level == 0 for level in self.levels)  # One get for each.
        for item in sorted(self.needs, key=self.levels.__getitem__, reverse=True):
            times = -(-units[item] // self.yields[item])
            actions += times
            for each, count in self.needs[item]:
                units[each] = units.get(each, 0) + count * times
        return actions

    def named(self) -> Game:
        """The game with names, and its recipes in any order."""
        order = list(self.needs)
        self.rng.shuffle(order)
        names = self.rng.sample(NAMES, len(self.levels))
        recipes = tuple(
            Recipe(names[item], self.yields[item], tuple(Ingredient(names[each], n) for each, n in self.needs[item]))
            for item in order
        )
        gettable = frozenset(name for name, level in zip(names, self.levels, strict=True) if level == 0)
        return Game(RecipeBook({r.output: (r,) for r in recipes}, gettable, {}, {}), names[0], recipes)

    def _new(self, level: int) -> int:
        self.levels.append(level)
        return len(self.levels) - 1

    def _add_recipe(self, item: int, ingredients: list[int]) -> None:
        self.needs[item] = tuple((each, self.rng.randint(*self.spec.counts)) for each in ingredients)
        self.yields[item] = self.rng.randint(*self.spec.yields)
