"""The rules of TextCraft: a state and what each command does to it.

The answers are upstream's (AgentGym's `agentenv-textcraft`), word for word, in its own spelling or in a person's. What
upstream gets wrong is not repeated: `get 0 x` succeeds there, `inventory` with anything after it too, and crafting with
an ingredient that is named twice may fail halfway.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import product
from typing import Self

from textagent_gym.domains.textcraft.book import Game, Ingredient, Recipe, craft_command

_CRAFT = re.compile(r"craft (.*) using (.*)")
_GET = re.compile(r"get ([0-9]{1,9}) (.*)")  # No recipe needs a billion, and longer numbers take long to read.
_COUNTED = re.compile(r"([0-9]{1,9}) (.*)")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the world says to a command.

    Attributes:
        text: answer as a person reads it.
        upstream: the same in upstream's spelling.
        valid: whether the command was understood and could be carried out.
    """

    text: str
    upstream: str
    valid: bool = True


def _refused(text: str, upstream: str | None = None) -> Answer:
    return Answer(text, text if upstream is None else upstream, valid=False)


@dataclass(slots=True)
class State:
    """A moment of a game.

    Attributes:
        game: what is played.
        inventory: units of each item, at least 1, in the order in which they came.
        crafted: items that have been crafted so far.
    """

    game: Game
    inventory: dict[str, int] = field(default_factory=dict)
    crafted: frozenset[str] = frozenset()

    @property
    def won(self) -> bool:
        """Whether the goal has been crafted."""
        return self.game.goal in self.crafted

    def copy(self) -> Self:
        """An independent state."""
        return type(self)(self.game, dict(self.inventory), self.crafted)

    def step(self, command: str) -> Answer:
        """Carry out a command whose words are separated by single spaces."""
        if command.startswith("get "):
            return self._get(command)
        if command.startswith("craft "):
            return self._craft(command)
        if command == "inventory":
            return self._list_inventory()
        return _refused(f"Could not execute {command}")

    def _get(self, command: str) -> Answer:
        match = _GET.fullmatch(command)
        count = int(match[1]) if match else 0
        if match is None or count == 0:
            return _refused(f"Could not execute {command}")
        item = _name(match[2])
        if item not in self.game.book.gettable:
            return _refused(f"Could not find {match[2]}")
        self._add(item, count)
        text = f"Got {count} {match[2]}"
        return Answer(text, text)

    def _craft(self, command: str) -> Answer:
        match = _CRAFT.fullmatch(command)
        if match is None:
            return _refused(f"Could not execute {command}")
        counted = _COUNTED.fullmatch(match[1])
        output = _name(counted[2] if counted else match[1])
        inputs: list[tuple[str, int]] = []
        for part in match[2].split(","):
            used = _COUNTED.fullmatch(part.strip())
            if used is None:
                return _refused(f"Wrong item format: {part.strip()}")
            inputs.append((_name(used[2]), int(used[1])))
        recipe = None
        if all(self.inventory.get(name, -1) >= count for name, count in inputs):
            recipe = self._matching(output, inputs)
            if recipe is None:
                text = f"Could not find a valid recipe for {output}"
                return _refused(text, self._no_recipe(output, int(counted[1]) if counted else 1))
        needed: dict[str, int] = {}
        for name, count in inputs:
            needed[name] = needed.get(name, 0) + count
        if recipe is None or any(self.inventory[name] < count for name, count in needed.items()):
            named = None if output in self.game.book.tags else _upstream_id(output)
            return _refused(
                f"Could not find enough items to craft {output}", f"Could not find enough items to craft {named}"
            )
        for name, count in needed.items():
            self._remove(name, count)
        self._add(output, recipe.count)
        self.crafted |= {output}
        return Answer(f"Crafted {recipe.count} {output}", f"Crafted {recipe.count} {_upstream_id(output)}")

    def _matching(self, output: str, inputs: list[tuple[str, int]]) -> Recipe | None:
        """The recipe of an item that takes exactly these inputs, each of them for one ingredient."""
        for recipe in self.game.book.recipes.get(output, ()):
            left = list(inputs)
            for each in recipe.ingredients:
                taken = next((pair for pair in left if self._fits(pair[0], each)), None)
                if taken is None or taken[1] != each.count:
                    break
                left.remove(taken)
            else:
                if not left:
                    return recipe
        return None

    def _fits(self, item: str, ingredient: Ingredient) -> bool:
        return item in self.game.book.tags[ingredient.name] if ingredient.is_tag else item == ingredient.name

    def _no_recipe(self, output: str, count: int) -> str:
        """Upstream prints the object that its parser has made."""
        is_tag = output in self.game.book.tags
        tag, item = (_upstream_id(output), None) if is_tag else (None, _upstream_id(output))
        return (
            "Could not find a valid recipe for "
            f"ItemTagWithCount(item_tag=ItemTag(tag={tag!r}, item_id={item!r}), count={count})"
        )

    def _list_inventory(self) -> Answer:
        if not self.inventory:
            empty = "Inventory: You are not carrying anything."
            return Answer(empty, empty)
        text = ", ".join(f"{count} {item}" for item, count in sorted(self.inventory.items()))
        upstream = "".join(f"[{item}] ({count}) " for item, count in self.inventory.items())
        return Answer(f"Inventory: {text}", f"Inventory: {upstream}")

    def _add(self, item: str, count: int) -> None:
        self.inventory[item] = self.inventory.get(item, 0) + count

    def _remove(self, item: str, count: int) -> None:
        left = self.inventory[item] - count
        if left:
            self.inventory[item] = left
        else:
            del self.inventory[item]

    def commands(self) -> tuple[str, ...]:
        """What can be done now, sorted: each amount that a recipe in scope asks for, and recipes in scope."""
        commands = {f"get {count} {item}" for item, count in self.game.amounts}
        commands.add("inventory")
        for recipe in self.game.shown:
            choices = [self._available(each) for each in recipe.ingredients]
            for items in product(*choices):
                needed: dict[str, int] = {}
                for each, item in zip(recipe.ingredients, items, strict=True):
                    needed[item] = needed.get(item, 0) + each.count
                if all(self.inventory[item] >= count for item, count in needed.items()):
                    commands.add(craft_command(recipe, items))
        return tuple(sorted(commands))

    def _available(self, ingredient: Ingredient) -> list[str]:
        kinds = self.game.book.tags[ingredient.name] if ingredient.is_tag else (ingredient.name,)
        return [kind for kind in kinds if self.inventory.get(kind, 0) >= ingredient.count]


def _name(typed: str) -> str:
    """An item's name as it was typed, where an underscore is a space."""
    return typed.replace("_", " ")


def _upstream_id(item: str) -> str:
    return "minecraft:" + item.replace(" ", "_")
