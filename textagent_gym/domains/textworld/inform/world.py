"""Where things are and in which state: the part of a game that changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from textagent_gym.domains.textworld.inform.fiction import DIRECTIONS, FIRST_DIRECTION, PLAYER, Fact, Fiction

NOWHERE = 0
"""The holder of what is out of play."""

FIXED = frozenset(("door", "container", "supporter"))
"""Kinds of what cannot be taken."""

UNCUT, RAW = "uncut", "raw"
"""Food as nobody has touched it."""

_SIZES = 4  # Rows of places, one for each entity, before the last places.
COMPLETED, SCORE, ENDING = 0, 1, 2  # The last places of a world, counted from the end of those rows.


class World:
    """The state of one game while a turn changes it, and what the turn has looked at.

    The state is a row of places, each of which holds a value that never changes itself:

        holder of each entity | contents of each | states of each | count of each | completed | score | ending

    A turn that finds the same values in the places that it looks at does the same; `engines.turns` makes use of that.

    Args:
        fiction: what never changes.
        places: the state that the turn begins with; what follows the ending is left alone.

    Attributes:
        fiction: what never changes.
        places: the row of places.
        looked: places whose values at the beginning of the turn mattered, in the order in which they did.
        moves: things that were moved, and where to, in order.
        written: places that were given a value otherwise.
    """

    def __init__(self, fiction: Fiction, places: Sequence[Any]) -> None:
        self.fiction = fiction
        self.places = list(places)
        self.looked: dict[int, None] = {}
        self.moves: list[tuple[int, int]] = []
        self.written: set[int] = set()
        self._moved: set[int] = set()
        self._stirred: set[int] = set()
        self._size = len(fiction.kinds)

    def look(self, place: int) -> Any:
        """The value in a place, which matters from now on if the turn has not written it itself."""
        if place not in self.written:
            self.looked[place] = None
        return self.places[place]

    def write(self, place: int, value: Any) -> None:
        """Put a value into a place that is no holder, contents or count."""
        self.written.add(place)
        self.places[place] = value

    def holder(self, entity: int) -> int:
        """Place of an entity: what it is in, on or carried by; `NOWHERE` out of play."""
        if entity not in self._moved:
            self.looked[entity] = None
        value: int = self.places[entity]
        return value

    def contents(self, holder: int) -> tuple[int, ...]:
        """Things in, on or with an entity, in the order in which they are listed."""
        place = self._size + holder
        # Also where the turn has moved things: what it finds then depends on what was there.
        self.looked[place] = None
        things: tuple[int, ...] = self.places[place]
        return things

    @property
    def room(self) -> int:
        """The room in which the player is."""
        return self.holder(PLAYER)

    @property
    def completed(self) -> int:
        """Bits of the quests that are completed."""
        value: int = self.look(_SIZES * self._size + COMPLETED)
        return value

    @completed.setter
    def completed(self, value: int) -> None:
        self.write(_SIZES * self._size + COMPLETED, value)

    @property
    def score(self) -> int:
        """Points."""
        value: int = self.look(_SIZES * self._size + SCORE)
        return value

    @score.setter
    def score(self, value: int) -> None:
        self.write(_SIZES * self._size + SCORE, value)

    @property
    def ending(self) -> str:
        """Whether the game has ended: "won", "lost" or ""."""
        value: str = self.look(_SIZES * self._size + ENDING)
        return value

    @ending.setter
    def ending(self, value: str) -> None:
        self.write(_SIZES * self._size + ENDING, value)

    def has(self, state: str, entity: int) -> bool:
        """Whether a state such as "open", "edible" or "burned" holds of an entity."""
        return state in self.look(2 * self._size + entity)

    def states(self, entity: int) -> frozenset[str]:
        """All states that hold of an entity."""
        value: frozenset[str] = self.look(2 * self._size + entity)
        return value

    def cooking(self, entity: int) -> str:
        """How a food is cooked."""
        return next(iter(self.look(2 * self._size + entity) & _COOKED), RAW)

    def cutting(self, entity: int) -> str:
        """How a food is cut."""
        return next(iter(self.look(2 * self._size + entity) & _CUT), UNCUT)

    def prepare(self, entity: int, how: str) -> None:
        """Cook or cut a food, whatever was done with it before."""
        place = 2 * self._size + entity
        self.write(place, self.look(place) - (_COOKED if how in _COOKED else _CUT) | {how})

    def count(self, holder: int) -> int:
        """Number of things in, on or with an entity, or lying in a room: 0, 1, or 2 for several."""
        if holder in self._stirred:
            return _count(self.fiction, holder, self.contents(holder))
        value: int = self.look(3 * self._size + holder)
        return value

    def is_full(self, holder: int, capacity: int) -> bool:
        """Whether an entity can hold no more things."""
        return capacity < self._size and len(self.contents(holder)) >= capacity

    def is_open(self, entity: int) -> bool:
        """Whether a door or container is open."""
        return self.has("open", entity)

    def is_locked(self, entity: int) -> bool:
        """Whether a door or container is locked."""
        return self.has("locked", entity)

    def is_see_through(self, entity: int) -> bool:
        """Whether what is in or on an entity can be reached."""
        kind = self.fiction.kinds[entity]
        return kind in ("supporter", "player", "room") or (kind == "container" and self.has("open", entity))

    def is_within(self, entity: int, other: int) -> bool:
        """Whether an entity is in or on another one, or on what is in it, and so on."""
        while entity not in (NOWHERE, other):
            entity = self.holder(entity)
        return entity == other

    def has_trait(self, entity: int, trait: str) -> bool:
        """Whether something holds for ever for a thing."""
        return entity > PLAYER and trait in self.fiction[entity].traits

    def shown_states(self, entity: int) -> tuple[str, ...]:
        """Words for how a food is cooked and cut, by which it can be called."""
        if not self.fiction.cooking or self.fiction.kinds[entity] != "food":
            return ()
        return self.cooking(entity), self.cutting(entity)

    def set(self, state: str, entity: int, value: bool = True) -> None:
        """Make a state hold, or no longer."""
        place = 2 * self._size + entity
        self.write(place, self.look(place) | {state} if value else self.look(place) - {state})

    def move(self, entity: int, holder: int) -> None:
        """Put an entity somewhere, before everything else that is there."""
        before = self.holder(entity)
        self.moves.append((entity, holder))
        self._moved.add(entity)
        kinds = self.fiction.kinds
        lies = entity != PLAYER and kinds[entity] not in FIXED
        self._stirred.update(place for place in (before, holder) if lies or kinds[place] != "room")
        move(self.fiction, self.places, entity, holder)

    def enter(self, room: int) -> None:
        """Move the player into a room, and the room's doors with the player."""
        self.move(PLAYER, room)
        for door in self.fiction.doors_of.get(room, ()):
            if self.holder(door) != room:
                self.move(door, room)

    def is_watched(self, goal: int) -> bool:
        """Whether the turn can have changed what a quest is about."""
        places = _watched(self.fiction)[goal]
        return places is None or not (places.isdisjoint(self.written) and places.isdisjoint(self._moved))

    def behind(self, door: int) -> int:
        """The room on the other side of a door."""
        one, other = self.fiction.sides[door]
        return other if self.room == one else one

    def way(self, direction: int) -> tuple[int, int]:
        """Where a direction leads from here: the room, and the door on the way; 0 where there is none."""
        there = self.fiction.ways.get((self.room, direction), 0)
        if self.fiction.kinds[there] == "door":
            return self.behind(there), there
        return there, 0

    def way_through(self, door: int) -> tuple[int, int]:
        """Where a door leads from here, and the door."""
        return self.behind(door), door

    def holds(self, fact: Fact) -> bool:
        """Whether a fact of a quest's condition holds."""
        name, entity, other = fact
        if name == "in":
            return self.holder(entity) == other
        if name in _COOKED:
            return self.cooking(entity) == name
        if name in _CUT:
            return self.cutting(entity) == name
        if name in _OPPOSITES:
            return not self.has(_OPPOSITES[name], entity)
        return self.has(name, entity)


def move(fiction: Fiction, places: list[Any], entity: int, holder: int) -> None:
    """Put an entity somewhere, before everything else that is there; see `World.move`."""
    kinds = fiction.kinds
    size = len(kinds)
    lies = entity != PLAYER and kinds[entity] not in FIXED  # The floor of a room holds nothing else.
    before = places[entity]
    places[entity] = holder
    if before != NOWHERE:
        left = places[size + before] = tuple([other for other in places[size + before] if other != entity])
        if lies or kinds[before] != "room":
            places[3 * size + before] = _count(fiction, before, left)
    if holder != NOWHERE:
        there = places[size + holder] = (entity, *places[size + holder])
        if lies or kinds[holder] != "room":
            places[3 * size + holder] = _count(fiction, holder, there)


def lying(fiction: Fiction, things: Sequence[int]) -> list[int]:
    """What lies on the floor of a room, out of all that is in it."""
    return [thing for thing in things if thing != PLAYER and fiction.kinds[thing] not in FIXED]


def last_thing(things: Sequence[int]) -> int:
    """The last of things that is not the player; 0 where there is none."""
    for thing in reversed(things):
        if thing != PLAYER:
            return thing
    return 0


def _count(fiction: Fiction, holder: int, things: tuple[int, ...]) -> int:
    if fiction.kinds[holder] != "room":
        return min(len(things), 2)
    number, kinds = 0, fiction.kinds
    for thing in things:
        if thing != PLAYER and kinds[thing] not in FIXED:
            number += 1
            if number == 2:
                break
    return number


def beginning(fiction: Fiction) -> tuple[Any, ...]:
    """The places of a world in which a game begins."""
    size = len(fiction.kinds)
    holder = [NOWHERE] * size
    contents: list[tuple[int, ...]] = [()] * size
    for place, things in fiction.contents:
        contents[place] = things
        for thing in things:
            holder[thing] = place
    states: list[frozenset[str]] = [frozenset()] * size
    for name, entity, _ in fiction.facts:
        states[entity] |= {name}
    counts = [_count(fiction, place, things) for place, things in enumerate(contents)]
    world = World(fiction, (*holder, *contents, *states, *counts, 0, 0, ""))
    _carry_doors(world)
    return tuple(world.places)


def _carry_doors(world: World) -> None:
    """Put every door where Inform has it, which decides the order of what is in a room.

    A door stands in one of its two rooms, in the one that the player has entered. The first loop of Inform's own
    routine leaves a door where it is once an earlier one belongs here; a door that has no place yet is put behind
    itself, seen from here.
    """
    belongs = False
    for door, (one, other) in world.fiction.sides.items():
        if world.room in (one, other):
            belongs = True
            if world.holder(door) != world.room:
                world.move(door, world.room)
        elif not belongs and world.holder(door) == world.room:
            world.move(door, NOWHERE)
        if world.holder(door) == NOWHERE:
            world.move(door, world.behind(door))


@lru_cache(maxsize=256)
def _watched(fiction: Fiction) -> tuple[frozenset[int] | None, ...]:
    """Of each quest, the places that it is about; `None` where every turn may complete it.

    What is not the case after a turn can only come about by a change; but a quest that can be completed again and
    again, or whose facts hold from the beginning, needs none.
    """
    world, size = World(fiction, beginning(fiction)), len(fiction.kinds)
    watched: list[frozenset[int] | None] = []
    for goal in fiction.goals:
        conditions = goal.wins + goal.fails
        facts = [fact for condition in conditions for fact in condition]
        always = goal.repeatable or any(all(map(world.holds, condition)) for condition in conditions)
        places = frozenset(entity if name == "in" else 2 * size + entity for name, entity, _ in facts)
        watched.append(None if always else places)
    return tuple(watched)


COOKED = ("raw", "fried", "roasted", "grilled")
"""States of cooking."""

CUT = ("uncut", "sliced", "diced", "chopped")
"""States of cutting."""

_COOKED, _CUT = frozenset(COOKED), frozenset(CUT)

_OPPOSITES = {"closed": "open", "unlocked": "locked", "inedible": "edible"}

ALL_DIRECTIONS = tuple(range(FIRST_DIRECTION, FIRST_DIRECTION + len(DIRECTIONS)))
"""Numbers of the directions, in the order in which the parser tries them."""
