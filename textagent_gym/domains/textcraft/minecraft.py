"""Minecraft's recipes, as crafting knows them: no furnaces, no blocks that are taken apart, no circles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from textagent_gym.domains.textcraft.book import Ingredient, Recipe, RecipeBook
from textagent_gym.errors import InvalidOptionError, MissingDependencyError

PACKAGE = "minecraft_data"
PACKAGE_VERSION = "1.16.2"
"""Release of the game whose recipes are read from the package: 562 outputs, nearest to upstream's folder, of which 547
are goals; see `read_package`."""

MOST_VARIANTS = 8
"""Variants of a recipe that are kept where no word names them; of more, such as a campfire's 32 logs, the first."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A recipe as it stands in the data.

    Attributes:
        recipe: recipe.
        group: tag that its output belongs to; "" for none.
    """

    recipe: Recipe
    group: str = ""


def read_folder(folder: Path) -> RecipeBook:
    """The recipes of a folder of JSON files, one per recipe, as Minecraft and upstream have them.

    Files are read in the order of their names, where upstream takes the order of the directory, on which it depends
    there which of two recipes that make a circle stays: iron ingots of nuggets or nuggets of ingots.

    Args:
        folder: folder of the files, or one that has them in a folder `recipes`.

    Raises:
        InvalidOptionError: there is no recipe, or a file is not one.
    """
    files = sorted(folder.glob("*.json")) or sorted((folder / "recipes").glob("*.json"))
    entries = [entry for file in files for entry in _read_file(file)]
    if not entries:
        raise InvalidOptionError(f"data={str(folder)!r} must be a folder of recipes, one JSON file each; there is none")
    tags: dict[str, dict[str, None]] = {}
    tag_of = {e.recipe.output: e.group for e in entries if e.group != e.recipe.output and not _takes_apart(e.recipe)}
    for output, group in tag_of.items():
        if group:
            tags.setdefault(group, {})[output] = None
    outputs = {entry.recipe.output for entry in entries if not _takes_apart(entry.recipe)}
    known = {tag for tag, members in tags.items() if not outputs.isdisjoint(members)}
    settled = [_Entry(_settled(entry.recipe, known), entry.group) for entry in entries]
    return _book(settled, {tag: tuple(members) for tag, members in tags.items()})


def read_package() -> RecipeBook:
    """The recipes of the package `minecraft_data`.

    It lists every variant of a recipe, such as a chest of oak planks and one of birch planks. Variants that differ in
    one ingredient become one recipe with a tag, named by the words that the items' names end with: "planks". Where no
    words are common and the variants are many, the first one is kept.

    Of the 562 outputs, 547 are goals, and 15 cannot be crafted. Upstream takes every recipe of nothing but one sort of
    block for a block that is taken apart: coal, diamonds, dried kelp, emeralds, lapis lazuli, redstone, slime balls and
    wheat, and also purpur slabs, quartz bricks, quartz pillars and snow. Gold nuggets, iron nuggets and honey bottles
    are made of what is made of them.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    installed = find_spec(PACKAGE)
    if installed is None or installed.origin is None:
        raise MissingDependencyError(PACKAGE, "textcraft")
    folder = Path(installed.origin).parent / "data" / "data" / "pc" / PACKAGE_VERSION
    names = {item["id"]: _plain(item["name"]) for item in json.loads((folder / "items.json").read_text("utf-8"))}
    listed = json.loads((folder / "recipes.json").read_text("utf-8"))
    variants: dict[str, dict[Recipe, None]] = {}
    for each in (variant for same_output in listed.values() for variant in same_output):
        cells = each.get("ingredients") or [cell for row in each["inShape"] for cell in row]
        recipe = _recipe(
            names[each["result"]["id"]], each["result"]["count"], [(names[c], False) for c in cells if c is not None]
        )
        variants.setdefault(recipe.output, {})[recipe] = None
    tags: dict[str, tuple[str, ...]] = {}
    entries = []
    for output in sorted(variants):
        entries += [_Entry(recipe) for recipe in _with_tags(list(variants[output]), tags)]
    return _book(entries, tags)


def digest(book: RecipeBook) -> str:
    """Eight hexadecimal digits that tell recipe books apart."""
    lines = sorted(recipe.command for recipes in book.recipes.values() for recipe in recipes)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def _plain(name: str) -> str:
    return name.removeprefix("minecraft:").replace("_", " ")


def _recipe(output: str, count: int, units: Iterable[tuple[str, bool]]) -> Recipe:
    """A recipe from what lies in each of its cells: an item or a tag."""
    counted: dict[tuple[str, bool], int] = {}
    for unit in units:
        counted[unit] = counted.get(unit, 0) + 1
    return Recipe(output, count, tuple(Ingredient(name, n, is_tag) for (name, is_tag), n in counted.items()))


def _read_file(file: Path) -> Iterator[_Entry]:
    """The recipe of a file; nothing where it is not for crafting."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        kind = content["type"]
        if kind == "minecraft:crafting_shaped":
            cells = "".join(content["pattern"])
            units = [unit for key, unit in content["key"].items() for _ in range(cells.count(key))]
        elif kind == "minecraft:crafting_shapeless":
            units = content["ingredients"]
        else:
            return
        result = content["result"]
        output, count = (result, 1) if isinstance(result, str) else (result["item"], result.get("count") or 1)
        recipe = _recipe(_plain(output), count, map(_unit, units))
        yield _Entry(recipe, _plain(content.get("group", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidOptionError(f"{file} is not a recipe of Minecraft: {error!r}") from None


def _unit(cell: Any) -> tuple[str, bool]:
    """An item or a tag; of a list of alternatives, the first, as upstream has it."""
    first = cell[0] if isinstance(cell, list) else cell
    return (_plain(first["item"]), False) if "item" in first else (_plain(first["tag"]), True)


def _takes_apart(recipe: Recipe) -> bool:
    return len(recipe.ingredients) == 1 and recipe.ingredients[0].name.endswith(" block")


def _book(entries: list[_Entry], tags: Mapping[str, tuple[str, ...]]) -> RecipeBook:
    """What can be crafted and what is there to be taken."""
    recipes: dict[str, list[Recipe]] = {}
    tag_recipes: dict[str, list[Recipe]] = {}
    items: set[str] = set()
    below: dict[str, set[str]] = {}
    for entry in entries:
        recipe = entry.recipe
        items |= {recipe.output, *(each.name for each in recipe.ingredients if not each.is_tag)}
        if _takes_apart(recipe):
            continue
        inputs = {kind for each in recipe.ingredients for kind in (tags[each.name] if each.is_tag else (each.name,))}
        if recipe.output in inputs or any(recipe.output in _reached(kind, below) for kind in inputs):
            continue
        below.setdefault(recipe.output, set()).update(inputs)
        recipes.setdefault(recipe.output, []).append(recipe)
        for tag in {entry.group} - {""} if entry.group else {t for t, m in tags.items() if recipe.output in m}:
            tag_recipes.setdefault(tag, []).append(recipe)
    gettable = items - set(recipes) - set(tag_recipes) - set(tags)
    return RecipeBook(
        {output: tuple(ways) for output, ways in recipes.items()},
        frozenset(gettable),
        dict(tags),
        {tag: tuple(ways) for tag, ways in tag_recipes.items()},
    )


def _settled(recipe: Recipe, known: Set[str]) -> Recipe:
    """The recipe with every tag of which nothing can be crafted taken for an item, as upstream has it."""
    ingredients = tuple(Ingredient(i.name, i.count, i.is_tag and i.name in known) for i in recipe.ingredients)
    return Recipe(recipe.output, recipe.count, ingredients)


def _reached(start: str, below: Mapping[str, set[str]]) -> set[str]:
    """Everything that an item is made of."""
    reached = {start}
    waiting = [start]
    while waiting:
        new = below.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _with_tags(variants: list[Recipe], tags: dict[str, tuple[str, ...]]) -> list[Recipe]:
    """The recipes of one output, variants of one ingredient as one recipe; what is new is added to `tags`."""
    alike: dict[object, dict[str, Recipe]] = {}
    for recipe in variants:
        for each in recipe.ingredients:
            others = frozenset(recipe.ingredients) - {each}
            alike.setdefault((recipe.count, each.count, others), {})[each.name] = recipe
    left = dict.fromkeys(variants)
    merged = []
    for candidates in sorted(alike.values(), key=len, reverse=True):
        same = {name: recipe for name, recipe in candidates.items() if recipe in left}
        tag, members = _common_ending(list(same)), tuple(sorted(same))
        is_tag = len(same) > 1 and bool(tag) and tags.setdefault(tag, members) == members
        if not is_tag and len(same) <= MOST_VARIANTS:
            continue
        first = next(iter(same.values()))
        for recipe in same.values():
            del left[recipe]
        if is_tag:
            ingredients = (Ingredient(tag, i.count, True) if i.name in same else i for i in first.ingredients)
            first = Recipe(first.output, first.count, tuple(ingredients))
        merged.append(first)
    return merged + list(left)


def _common_ending(names: list[str]) -> str:
    """The words that all names end with, unless one name has no others.

    >>> _common_ending(["birch planks", "dark oak planks"]), _common_ending(["coal", "charcoal"])
    ('planks', '')
    """
    words = [name.split() for name in names]
    length = 0
    while all(len(w) > length for w in words) and len({tuple(w[len(w) - length - 1 :]) for w in words}) == 1:
        length += 1
    return " ".join(words[0][len(words[0]) - length :]) if 0 < length < min(map(len, words)) else ""


@lru_cache(maxsize=16)
def read_book(folder: str | None) -> RecipeBook:
    """The recipes of a folder, or of the package; read once.

    Raises:
        InvalidOptionError, MissingDependencyError: there are none.
    """
    return read_package() if folder is None else read_folder(Path(folder))
