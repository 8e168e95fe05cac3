"""A game as its text is written: rooms, things, their names and descriptions, and what must come about.

    Fiction   everything that never changes, shared by all who play the game
    World     where things are and in which state, in one episode (see `world`)

Entities are numbered: the twelve directions, then the player, then rooms and things in the order in which Inform 7
numbers them, because lists and questions name things in an order that follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from textagent_gym.domains.textworld.inform.templates import Template, read_template
from textagent_gym.domains.textworld.inform.vocabulary import dictionary_form

FORMAT = 1  # Of `to_dict`; raised whenever old entries could not be read any more.

DIRECTIONS = (
    "north", "northeast", "northwest", "south", "southeast", "southwest", "east", "west", "up", "down", "inside",
    "outside",
)  # fmt: skip
FIRST_DIRECTION = 2  # 0 stands for nothing, and 1 for several things, wherever the parser returns an entity.
PLAYER = FIRST_DIRECTION + len(DIRECTIONS)
FIRST_ENTITY = PLAYER + 1

_ABBREVIATIONS = ("n", "ne", "nw", "s", "se", "sw", "e", "w", "u", "d", "in", "out")


@dataclass(frozen=True, slots=True)
class Entity:
    """A room or a thing.

    Attributes:
        kind: "room", "door", "container", "supporter", "food", "thing" or "idea" (what has no place, such as a recipe).
        name: name as it is printed.
        phrases: what a player may call it, the longest first.
        description: text when it is examined, or the room's, with Inform's substitutions in brackets.
        article: indefinite article where it is not "a" or "an", otherwise "".
        heat: past participle of what it does to food, such as "fried"; "" where it is not hot.
        traits: what holds for it for ever: "sharp", "cookable", "cuttable", "drinkable".
    """

    kind: str
    name: str
    phrases: tuple[str, ...]
    description: str
    article: str = ""
    heat: str = ""
    traits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """A quest as the compiled game follows it; see `logic.Quest`. A condition is a list of facts that hold together.

    Attributes:
        wins: conditions of which one completes the quest.
        fails: conditions of which one loses the game.
        reward: points.
        required: whether the game is won only with it.
        repeatable: whether it can be completed again and again.
    """

    wins: tuple[tuple[Fact, ...], ...]
    fails: tuple[tuple[Fact, ...], ...]
    reward: int
    required: bool
    repeatable: bool


Fact = tuple[str, int, int]
"""A name, an entity, and another one or 0, such as ("in", 17, 15)."""

Phrases = dict[str, tuple[tuple[str, ...], ...]]
"""What something may be called, by the first word: phrases in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Ingredient:
    """A food of the recipe, and how it must be prepared."""

    food: int
    cooking: str
    cutting: str


@dataclass(frozen=True, eq=False)
class Fiction:
    """A game. Immutable, so it can be shared between threads and environments; equal to itself alone.

    Attributes:
        entities: rooms and things, the first of which has the number `FIRST_ENTITY`.
        exits: ways out of rooms: `(room, direction, room or door there)`.
        doors: doors with the two rooms that they join.
        contents: places of things at the beginning: `(holder, things in order)`.
        facts: what holds at the beginning and can change.
        keys: locks that have a key: `(door or container, key)`.
        goals: quests in order.
        objective: goal of the game in words.
        capacity: number of things that the player can carry.
        cooking: whether the game has the rules of cooking.
        recipe: foods of the recipe, in order.
        meal: meal that the recipe makes, or 0.
        kitchen: room in which the meal is prepared, or 0.
    """

    entities: tuple[Entity, ...]
    exits: tuple[tuple[int, int, int], ...]
    doors: tuple[tuple[int, int, int], ...]
    contents: tuple[tuple[int, tuple[int, ...]], ...]
    facts: tuple[Fact, ...]
    keys: tuple[tuple[int, int], ...]
    goals: tuple[Goal, ...]
    objective: str
    capacity: int
    cooking: bool
    recipe: tuple[Ingredient, ...]
    meal: int
    kitchen: int

    def __getitem__(self, number: int) -> Entity:
        return self.entities[number - FIRST_ENTITY]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kind of every number."""
        directions = ("",) * FIRST_DIRECTION + ("direction",) * len(DIRECTIONS)
        return (*directions, "player", *(entity.kind for entity in self.entities))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Printed name of every number; a room's is its heading."""
        names = (f"-= {entity.name.title()} =-" if entity.kind == "room" else entity.name for entity in self.entities)
        return ("",) * FIRST_DIRECTION + DIRECTIONS + ("yourself", *names)

    @cached_property
    def phrases(self) -> tuple[Phrases, ...]:
        """What every number may be called, in dictionary words."""
        directions = (
            _by_first_word((name, "directions", short)) for name, short in zip(DIRECTIONS, _ABBREVIATIONS, strict=True)
        )
        return ({},) * FIRST_DIRECTION + (*directions, {}, *(_by_first_word(thing.phrases) for thing in self.entities))

    @cached_property
    def words_of_directions(self) -> frozenset[str]:
        """Words with which the phrases of directions begin."""
        return frozenset().union(*self.phrases[FIRST_DIRECTION:PLAYER])

    @cached_property
    def descriptions(self) -> tuple[Template, ...]:
        """Description of every room and thing, ready to be printed."""
        return tuple(read_template(entity.description) for entity in self.entities)

    @cached_property
    def ways(self) -> dict[tuple[int, int], int]:
        """Room or door by room and direction."""
        return {(room, direction): there for room, direction, there in self.exits}

    @cached_property
    def key_of(self) -> dict[int, int]:
        """Key by door or container."""
        return dict(self.keys)

    @cached_property
    def sides(self) -> dict[int, tuple[int, int]]:
        """The two rooms by door."""
        return {door: (one, other) for door, one, other in self.doors}

    @cached_property
    def doors_of(self) -> dict[int, tuple[int, ...]]:
        """Doors by room."""
        rooms = {room for _, one, other in self.doors for room in (one, other)}
        return {room: tuple(door for door, *sides in self.doors if room in sides) for room in rooms}

    @cached_property
    def required(self) -> int:
        """Bits of the quests that must be completed to win."""
        return sum(1 << index for index, goal in enumerate(self.goals) if goal.required)

    @cached_property
    def highest_score(self) -> float:
        """Sum of the points of all quests that are required or pay."""
        paying = [goal for goal in self.goals if goal.required or goal.reward > 0]
        return float("inf") if any(goal.repeatable for goal in paying) else sum(goal.reward for goal in paying)

    def to_dict(self) -> dict[str, Any]:
        """The game as JSON values."""
        return {"format": FORMAT, **{field.name: _plain(getattr(self, field.name)) for field in fields(self)}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Fiction:
        """What `to_dict` wrote.

        Raises:
            ValueError: it was written in another format.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"fiction of format {data.get('format')!r}, expected {FORMAT}")
        values = {name: _tuples(value) for name, value in data.items() if name != "format"}
        values["entities"] = tuple(Entity(*entity) for entity in values["entities"])
        values["goals"] = tuple(Goal(*goal) for goal in values["goals"])
        values["recipe"] = tuple(Ingredient(*ingredient) for ingredient in values["recipe"])
        return cls(**values)


def _by_first_word(phrases: Sequence[str]) -> Phrases:
    """Phrases in dictionary words, by the first one."""
    grouped: dict[str, tuple[tuple[str, ...], ...]] = {}
    for phrase in phrases:
        words = tuple(dictionary_form(word) for word in phrase.split())
        if words:
            grouped[words[0]] = (*grouped.get(words[0], ()), words)
    return grouped


def _plain(value: Any) -> Any:
    if isinstance(value, Entity | Goal | Ingredient):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
