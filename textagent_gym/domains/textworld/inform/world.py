"""Where things are and in which state: the part of a game that changes."""

from __future__ import annotations

from typing import NamedTuple

from textagent_gym.domains.textworld.inform.fiction import DIRECTIONS, FIRST_DIRECTION, PLAYER, Fact, Fiction

NOWHERE = 0
"""The holder of what is out of play."""

FIXED = frozenset(("door", "container", "supporter"))
"""Kinds of what cannot be taken."""

UNCUT, RAW = "uncut", "raw"
"""Food as nobody has touched it."""


class Moment(NamedTuple):
    """The state of a world, which never changes; see `World`."""

    room: int
    holder: tuple[int, ...]
    contents: tuple[tuple[int, ...], ...]
    flags: frozenset[tuple[str, int]]
    cooking: tuple[tuple[int, str], ...] = ()
    cutting: tuple[tuple[int, str], ...] = ()
    completed: int = 0
    score: int = 0
    ending: str = ""


class World:
    """The state of one game while a turn changes it.

    Args:
        fiction: what never changes.
        moment: state that the turn begins with.

    Attributes:
        fiction: what never changes.
        room: room in which the player is.
        holder: place of each entity: what it is in, on or carried by; `NOWHERE` out of play.
        contents: things in, on or with each entity, in the order in which they are listed.
        flags: what is "open", "locked", "edible", "needs_cooking", "cooked", "burned" or "consumed".
        cooking, cutting: how foods were cooked and cut, where they were.
        completed: bits of the quests that are completed.
        score: points.
        ending: "won", "lost" or "".
    """

    def __init__(self, fiction: Fiction, moment: Moment) -> None:
        self.fiction = fiction
        self.room = moment.room
        self.holder = list(moment.holder)
        self.contents = list(moment.contents)
        self.flags = set(moment.flags)
        self.cooking, self.cutting = dict(moment.cooking), dict(moment.cutting)
        self.completed = moment.completed
        self.score = moment.score
        self.ending = moment.ending

    @property
    def moment(self) -> Moment:
        """The present state."""
        return Moment(
            self.room,
            tuple(self.holder),
            tuple(self.contents),
            frozenset(self.flags),
            tuple(self.cooking.items()),
            tuple(self.cutting.items()),
            self.completed,
            self.score,
            self.ending,
        )

    def is_open(self, entity: int) -> bool:
        """Whether a door or container is open."""
        return ("open", entity) in self.flags

    def is_locked(self, entity: int) -> bool:
        """Whether a door or container is locked."""
        return ("locked", entity) in self.flags

    def is_see_through(self, entity: int) -> bool:
        """Whether what is in or on an entity can be reached."""
        kind = self.fiction.kinds[entity]
        return kind in ("supporter", "player", "room") or (kind == "container" and ("open", entity) in self.flags)

    def is_within(self, entity: int, other: int) -> bool:
        """Whether an entity is in or on another one, or on what is in it, and so on."""
        while entity not in (NOWHERE, other):
            entity = self.holder[entity]
        return entity == other

    def has_trait(self, entity: int, trait: str) -> bool:
        """Whether something holds for ever for a thing."""
        return entity > PLAYER and trait in self.fiction[entity].traits

    def shown_states(self, entity: int) -> tuple[str, ...]:
        """Words for how a food is cooked and cut, by which it can be called."""
        if not self.fiction.cooking or self.fiction.kinds[entity] != "food":
            return ()
        return self.cooking.get(entity, RAW), self.cutting.get(entity, UNCUT)

    def set(self, flag: str, entity: int, value: bool = True) -> None:
        """Make a flag hold, or no longer."""
        (self.flags.add if value else self.flags.discard)((flag, entity))

    def move(self, entity: int, holder: int) -> None:
        """Put an entity somewhere, before everything else that is there."""
        before = self.holder[entity]
        if before != NOWHERE:
            self.contents[before] = tuple(other for other in self.contents[before] if other != entity)
        self.holder[entity] = holder
        if holder != NOWHERE:
            self.contents[holder] = (entity, *self.contents[holder])

    def enter(self, room: int) -> None:
        """Move the player into a room, and the room's doors with the player."""
        self.move(PLAYER, room)
        self.room = room
        self.carry_doors()

    def carry_doors(self) -> None:
        """Put every door where Inform has it, which changes the order of what is in a room.

        A door stands in one of its two rooms, in the one that the player has entered. The first loop of Inform's own
        routine leaves a door where it is once an earlier one belongs here; a door that has no place yet is put behind
        itself, seen from here.
        """
        belongs = False
        for door, (one, other) in self.fiction.sides.items():
            if self.room in (one, other):
                belongs = True
                if self.holder[door] != self.room:
                    self.move(door, self.room)
            elif not belongs and self.holder[door] == self.room:
                self.move(door, NOWHERE)
            if self.holder[door] == NOWHERE:
                self.move(door, self.behind(door))

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
            return self.holder[entity] == other
        if name in COOKED:
            return self.cooking.get(entity, RAW) == name
        if name in CUT:
            return self.cutting.get(entity, UNCUT) == name
        if name in _OPPOSITES:
            return (_OPPOSITES[name], entity) not in self.flags
        return (name, entity) in self.flags


def beginning(fiction: Fiction) -> Moment:
    """The state in which a game begins."""
    holder = [NOWHERE] * len(fiction.kinds)
    contents: list[tuple[int, ...]] = [()] * len(holder)
    for place, things in fiction.contents:
        contents[place] = things
        for thing in things:
            holder[thing] = place
    cooking = tuple((entity, name) for name, entity, _ in fiction.facts if name in COOKED)
    cutting = tuple((entity, name) for name, entity, _ in fiction.facts if name in CUT)
    flags = frozenset((name, entity) for name, entity, _ in fiction.facts if name not in COOKED + CUT)
    world = World(fiction, Moment(holder[PLAYER], tuple(holder), tuple(contents), flags, cooking, cutting))
    world.carry_doors()
    return world.moment


COOKED = ("raw", "fried", "roasted", "grilled")
"""States of cooking."""

CUT = ("uncut", "sliced", "diced", "chopped")
"""States of cutting."""

_OPPOSITES = {"closed": "open", "unlocked": "locked", "inedible": "edible"}

ALL_DIRECTIONS = tuple(range(FIRST_DIRECTION, FIRST_DIRECTION + len(DIRECTIONS)))
"""Numbers of the directions, in the order in which the parser tries them."""
