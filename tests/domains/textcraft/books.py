"""Small recipe books, drawn at random: alternatives, tags, counts, yields, shared ingredients."""

from __future__ import annotations

import random
from itertools import product

from textagent_gym.domains.textcraft import Game, Ingredient, Recipe, RecipeBook


def book_of(recipes: list[Recipe], gettable: str, **tags: str) -> RecipeBook:
    """A book from its recipes; names of several items are separated by spaces."""
    outputs = dict.fromkeys(recipe.output for recipe in recipes)
    ways = {output: tuple(r for r in recipes if r.output == output) for output in outputs}
    members = {tag: tuple(names.split()) for tag, names in tags.items()}
    tag_recipes = {tag: tuple(r for r in recipes if r.output in names) for tag, names in members.items()}
    return RecipeBook(ways, frozenset(gettable.split()), members, tag_recipes)


def inputs_of(recipe: Recipe, tags: dict[str, str]) -> set[tuple[tuple[str, int], ...]]:
    """All that a recipe can be crafted from."""
    kinds = [tags[each.name].split() if each.is_tag else [each.name] for each in recipe.ingredients]
    counts = [each.count for each in recipe.ingredients]
    return {tuple(sorted(zip(items, counts, strict=True))) for items in product(*kinds)}


def draw_game(rng: random.Random) -> Game:
    """A goal with a plan of a few actions."""
    below = ["a", "b"][: rng.randint(1, 2)]
    gettable = " ".join(below)
    tags: dict[str, str] = {}
    recipes: list[Recipe] = []
    for name in ("p", "q", "r", "goal")[rng.randint(0, 2) :]:
        if len(below) > 1 and not tags and rng.random() < 0.5:
            tags["tag"] = " ".join(rng.sample(below, 2))
        for _ in range(rng.choice((1, 1, 2))):
            names = rng.sample([*below, *tags], min(rng.randint(1, 2), len(below)))
            inputs = tuple(Ingredient(each, rng.randint(1, 3), each in tags) for each in names)
            drawn = Recipe(name, rng.randint(1, 3), inputs)
            others = [inputs_of(other, tags) for other in recipes if other.output == name]
            if all(inputs_of(drawn, tags).isdisjoint(other) for other in others):  # Else the first is always applied.
                recipes.append(drawn)
        below.append(name)
    return Game.of(book_of(recipes, gettable, **tags), "goal", tuple(recipes))
