"""Recipes, and the game that is played with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self


class Ingredient(NamedTuple):
    """What a recipe consumes.

    Attributes:
        name: an item, such as "oak planks", or a tag, such as "planks".
        count: number of units, at least 1.
        is_tag: whether any one item of the tag will do.
    """

    name: str
    count: int  # type: ignore[assignment]  # It hides `tuple.count`.
    is_tag: bool = False


class Recipe(NamedTuple):
    """A way to craft an item.

    Attributes:
        output: item that is crafted.
        count: number of units that one crafting yields, at least 1.
        ingredients: what one crafting consumes.

    >>> Recipe("stick", 4, (Ingredient("planks", 2, is_tag=True),)).command
    'craft 4 stick using 2 planks'
    """

    output: str
    count: int  # type: ignore[assignment]
    ingredients: tuple[Ingredient, ...]

    @property
    def command(self) -> str:
        """The line that shows the recipe; a command too, once items stand for its tags."""
        return _command(self, [f"{count} {name}" for name, count, _ in self.ingredients])


def craft_command(recipe: Recipe, items: Iterable[str]) -> str:
    """The command that crafts a recipe from these items, one per ingredient."""
    return _command(recipe, [f"{each.count} {item}" for each, item in zip(recipe.ingredients, items, strict=True)])


def _command(recipe: Recipe, consumed: list[str]) -> str:
    return f"craft {recipe.count} {recipe.output} using {', '.join(consumed)}"


def _read(command: str) -> Recipe:
    """The recipe that a line without tags shows."""
    crafted, _, consumed = command.removeprefix("craft ").partition(" using ")
    count, _, output = crafted.partition(" ")
    inputs = [each.partition(" ") for each in consumed.split(", ")]
    return Recipe(output, int(count), tuple([Ingredient(name, int(units)) for units, _, name in inputs]))


@dataclass(frozen=True, eq=False)
class RecipeBook:
    """All recipes of a world; immutable and shared.

    Attributes:
        recipes: recipes of each item that can be crafted.
        gettable: items that are there to be taken, in any number.
        tags: items of each tag; no item has the name of a tag.
        tag_recipes: recipes that are shown for a tag.
    """

    recipes: Mapping[str, tuple[Recipe, ...]]
    gettable: frozenset[str]
    tags: Mapping[str, tuple[str, ...]]
    tag_recipes: Mapping[str, tuple[Recipe, ...]]

    def recipes_of(self, name: str) -> tuple[Recipe, ...]:
        """Recipes of an item or of a tag."""
        return self.recipes.get(name) or self.tag_recipes.get(name, ())

    def needed(self, goal: str) -> tuple[Recipe, ...]:
        """Every recipe that may help to craft an item, with those of its ingredients, in the order of a walk."""
        recipes: dict[Recipe, None] = {}
        waiting = [goal]
        visited = {goal}
        while waiting:
            for recipe in self.recipes_of(waiting.pop()):
                recipes[recipe] = None
                for each in recipe.ingredients:
                    if each.name not in visited:
                        visited.add(each.name)
                        waiting.append(each.name)
        return tuple(recipes)

    def depth(self, name: str) -> int:
        """Number of recipes on the longest way down to items that are there, by the shallowest recipes; 0 for those."""
        return self._depth(name, {})

    def _depth(self, name: str, known: dict[str, int]) -> int:
        if name not in known:
            ways = [max(self._depth(each.name, known) for each in r.ingredients) for r in self.recipes_of(name)]
            known[name] = 1 + min(ways) if ways else 0
        return known[name]


class Solution(NamedTuple):
    """What a shortest plan is like.

    Attributes:
        length: number of actions.
        crafts: number of actions that craft; the others get.
        depth: number of recipes on the longest way down to items that are there, by the shallowest recipes.
        crafted: items that it crafts, the goal included.
    """

    length: int
    crafts: int
    depth: int
    crafted: frozenset[str]


class Game:
    """One goal, and the recipes that are shown with it; immutable and shared.

    Args:
        goal: item to craft.
        commands: the lines that show the recipes in scope, in order.
        items: gettable and craftable items in scope: those that the recipes shown name.
        solution: what a shortest plan is like, where that is known from how the game was made.

    Attributes:
        introduction: the first observation, in upstream's words.

    Every recipe that holds is shown, one per item, without tags: recipes are read from their lines once somebody asks
    for them. For other games, see `of`.

    >>> game = Game("mast", ("craft 1 mast using 2 pole",), frozenset({"mast", "pole"}))
    >>> game.shown
    (Recipe(output='mast', count=1, ingredients=(Ingredient(name='pole', count=2, is_tag=False),)),)
    """

    def __init__(
        self, goal: str, commands: tuple[str, ...], items: frozenset[str], solution: Solution | None = None
    ) -> None:
        self.goal = goal
        self.commands = commands
        self.items = items
        self.solution = solution
        self.introduction = "Crafting commands:\n" + "\n".join(commands) + f"\n\nGoal: craft {goal}."

    @classmethod
    def of(cls, book: RecipeBook, goal: str, shown: tuple[Recipe, ...]) -> Self:
        """A game of a book in which more recipes may hold than are shown."""
        names = {recipe.output for recipe in shown}
        names |= {name for recipe in shown for name, _, is_tag in recipe.ingredients if not is_tag}
        game = cls(goal, tuple([recipe.command for recipe in shown]), frozenset(names))
        game.book = book
        game.shown = shown
        return game

    @cached_property
    def shown(self) -> tuple[Recipe, ...]:
        """Recipes in scope, in the order in which they are shown."""
        return tuple(map(_read, self.commands))

    @cached_property
    def book(self) -> RecipeBook:
        """Recipes that hold, also those that are not shown."""
        recipes = {recipe.output: (recipe,) for recipe in self.shown}
        return RecipeBook(recipes, self.items - recipes.keys(), {}, {})

    @cached_property
    def amounts(self) -> tuple[tuple[str, int], ...]:
        """Every gettable item in scope with each amount in which a recipe shown asks for it, sorted."""
        pairs: set[tuple[str, int]] = set()
        for recipe in self.shown:
            for each in recipe.ingredients:
                kinds = self.book.tags[each.name] if each.is_tag else (each.name,)
                pairs |= {(kind, each.count) for kind in kinds if kind in self.book.gettable}
        return tuple(sorted(pairs))
