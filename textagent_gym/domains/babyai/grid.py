"""The grid: what lies where, what the six primitive actions do, what has been done, and what the agent sees.

    World  what never changes: size, things, the instruction, the start
    State  what does: the agent, what lies in each cell, doors, what has been done
    View   the square before the agent, with what walls and closed doors hide left out

A cell is a number, `y * width + x`, and holds the number of a thing, `EMPTY` or `WALL`. Rules and view are those of
Minigrid 3.2 (`minigrid_env.py`, `core/grid.py`, `envs/babyai/core/verifier.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from textagent_gym.domains.babyai.instruction import Clause, Instruction, clauses

EMPTY, WALL = -1, -2
NOWHERE = -1
"""Place of a thing that is carried, in a box or gone, and number of what is carried by empty hands."""
OPEN, CLOSED, LOCKED = range(3)
LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)
"""The primitive actions, numbered as in Minigrid."""

Kind = Literal["key", "ball", "box", "door"]
Status = Literal["continue", "success", "failure"]


@dataclass(frozen=True, slots=True)
class Thing:
    """A key, ball, box or door.

    Attributes:
        kind: what it is.
        color: color in words.
        content: number of the thing in a box; `EMPTY` for none.
    """

    kind: Kind
    color: str
    content: int = EMPTY


@dataclass(frozen=True)
class World:
    """A level as it begins.

    Attributes:
        mission: instruction in words.
        instruction: what has to be done.
        width, height: size in cells, outer walls included.
        things: keys, balls, boxes and doors.
        cells: what lies in each cell.
        doors: `OPEN`, `CLOSED` or `LOCKED`, for each thing; `OPEN` for what is not a door.
        known: cells at which the verifier looks for each thing.
        agent: cell of the agent.
        direction: 0 to 3 for right, down, left, up.
        carrying: number of the thing carried; `NOWHERE` for none.
        rooms: number of rooms.
    """

    mission: str
    instruction: Instruction
    width: int
    height: int
    things: tuple[Thing, ...]
    cells: tuple[int, ...]
    doors: tuple[int, ...]
    known: tuple[int, ...]
    agent: int
    direction: int
    carrying: int
    rooms: int

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The things to do."""
        return tuple(clauses(self.instruction))

    @cached_property
    def is_door(self) -> tuple[bool, ...]:
        """For each thing, whether it is a door."""
        return tuple(thing.kind == "door" for thing in self.things)

    @cached_property
    def steps(self) -> tuple[int, int, int, int]:
        """Distance between a cell and the next one, for each direction."""
        return 1, self.width, -1, -self.width

    @cached_property
    def to_open(self) -> frozenset[int]:
        """Doors that the instruction asks to open."""
        return frozenset(thing for clause in self.clauses if clause.kind == "open" for thing in clause.targets)

    @cached_property
    def looked_at(self) -> tuple[int, ...]:
        """Things whose known cells decide whether a clause is done."""
        goto = {t for clause in self.clauses if clause.kind == "goto" for t in clause.targets}
        return tuple(sorted(goto.union(*(clause.fixed for clause in self.clauses))))


class State:
    """A moment of an episode.

    Attributes:
        world: what never changes.
        cells, doors, known, agent, direction, carrying: as in `World`, now.
        places: cell of each thing; `NOWHERE` for those that lie in none.
        done: numbers of the clauses and sequences that have been done.
        watched: numbers of the clauses that the verifier has looked at; only then does it know what was carried.
        status: "success" and "failure" are final.
    """

    __slots__ = ("agent", "carrying", "cells", "direction", "done", "doors", "known", "places", "status", "watched", "world")  # fmt: skip  # noqa: E501

    def __init__(self, world: World) -> None:
        self.world = world
        self.cells = list(world.cells)
        self.doors = list(world.doors)
        self.known = world.known
        self.agent, self.direction, self.carrying = world.agent, world.direction, world.carrying
        self.places = [NOWHERE] * len(world.things)
        for cell, thing in enumerate(world.cells):
            if thing >= 0:
                self.places[thing] = cell
        self.done: frozenset[int] = frozenset()
        self.watched: frozenset[int] = frozenset()
        self.status: Status = "continue"

    def copy(self) -> State:
        """The same moment, which changes on its own."""
        other = object.__new__(State)
        other.world, other.known, other.done, other.watched = self.world, self.known, self.done, self.watched
        other.agent, other.direction, other.carrying = self.agent, self.direction, self.carrying
        other.status = self.status
        other.cells, other.doors, other.places = self.cells[:], self.doors[:], self.places[:]
        return other

    def key(self) -> tuple[object, ...]:
        """Numbers that decide all that can follow."""
        known = tuple([self.known[thing] for thing in self.world.looked_at])
        return (
            self.agent, self.direction, self.carrying, tuple(self.places), tuple(self.doors), known,
            tuple(sorted(self.done)), tuple(sorted(self.watched)), self.status,
        )  # fmt: skip

    @property
    def front(self) -> int:
        """Cell before the agent."""
        return self.agent + self.world.steps[self.direction]

    @property
    def reached(self) -> int:
        """Number of clauses that have been done."""
        return sum(clause.number in self.done for clause in self.world.clauses)

    def is_free(self, cell: int) -> bool:
        """Whether the agent can stand in a cell."""
        thing = self.cells[cell]
        return thing == EMPTY or (thing >= 0 and self.world.is_door[thing] and self.doors[thing] == OPEN)

    def step(self, action: int) -> None:
        """Do one of the primitive actions; one that cannot be done changes nothing that is seen."""
        carried = self.carrying
        if action == LEFT:
            self.direction = (self.direction - 1) % 4
        elif action == RIGHT:
            self.direction = (self.direction + 1) % 4
        elif action == FORWARD:
            if self.is_free(self.front):
                self.agent = self.front
        elif action == PICK_UP:
            self._pick_up()
        elif action == DROP:
            self._drop()
        else:
            self._toggle()
        self.status = self._verify(self.world.instruction, action, carried)

    def _pick_up(self) -> None:
        thing = self.cells[self.front]
        if thing >= 0 and not self.world.is_door[thing] and self.carrying == NOWHERE:
            self.carrying = thing
            self._put(EMPTY, self.front)
            self.places[thing] = NOWHERE

    def _drop(self) -> None:
        if self.cells[self.front] == EMPTY and self.carrying != NOWHERE:
            self._put(self.carrying, self.front)
            self.carrying = NOWHERE
        self.known = tuple(self.places)  # Minigrid looks where things are at this action alone, even in vain.

    def _toggle(self) -> None:
        thing = self.cells[self.front]
        if thing < 0:
            return
        what = self.world.things[thing]
        if what.kind == "box":
            self.places[thing] = NOWHERE
            self._put(what.content, self.front)
        elif what.kind == "door":
            if self.doors[thing] == LOCKED:
                held = self.world.things[self.carrying] if self.carrying != NOWHERE else None
                if held is None or held.kind != "key" or held.color != what.color:
                    return
            self.doors[thing] = CLOSED if self.doors[thing] == OPEN else OPEN

    def _put(self, thing: int, cell: int) -> None:
        self.cells[cell] = thing
        if thing >= 0:
            self.places[thing] = cell

    def _verify(self, what: Instruction, action: int, carried: int) -> Status:
        if isinstance(what, Clause):
            return self._verify_clause(what, action, carried)
        if what.order == "and":
            for each in (what.first, what.second):
                if each.number not in self.done and self._verify(each, action, carried) == "success":
                    self.done |= {each.number}
            return "success" if {what.first.number, what.second.number} <= self.done else "continue"
        if what.first.number in self.done:
            status = self._verify(what.second, action, carried)
            if status == "success":
                self.done |= {what.second.number}
            return status
        status = self._verify(what.first, action, carried)
        if status == "success":
            self.done |= {what.first.number}
            return self._verify(what, action, carried)
        if status == "continue" and what.strict and self._verify(what.second, action, carried) == "success":
            return "failure"
        return status

    def _verify_clause(self, clause: Clause, action: int, carried: int) -> Status:
        before = carried if clause.number in self.watched else NOWHERE
        if clause.kind in ("pickup", "putnext"):
            self.watched |= {clause.number}
        status = self._judge(clause, action, before)
        if status == "success" and clause.number == self.world.instruction.number:
            self.done |= {clause.number}
        return status

    def _judge(self, clause: Clause, action: int, before: int) -> Status:
        """Whether an action has done a clause, with what was carried before it as far as the verifier knows."""
        if clause.kind == "goto":
            return "success" if any(self.known[thing] == self.front for thing in clause.targets) else "continue"
        if clause.kind == "open":
            thing = self.cells[self.front]
            if action != TOGGLE or thing < 0 or not self.world.is_door[thing]:
                return "continue"
            if thing in clause.targets and self.doors[thing] == OPEN:
                return "success"
            return "failure" if clause.strict else "continue"
        if clause.kind == "pickup":
            if action != PICK_UP:
                return "continue"
            if before == NOWHERE and self.carrying in clause.targets:
                return "success"
            return "failure" if clause.strict and self.carrying != NOWHERE else "continue"
        if clause.strict and action == PICK_UP and self.carrying != NOWHERE:
            return "failure"
        if action == DROP and before in clause.targets and self.places[before] != NOWHERE:
            beside = {self.places[before] + step for step in self.world.steps}
            return "success" if any(self.known[thing] in beside for thing in clause.fixed) else "continue"
        return "continue"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen in one cell.

    Attributes:
        right: steps to the right of the agent; negative to the left.
        ahead: steps ahead of the agent, 0 or more.
        cell: number of the cell; `NOWHERE` outside the grid.
        thing: number of the thing there; `EMPTY` or `WALL`.
    """

    right: int
    ahead: int
    cell: int
    thing: int


def view(state: State, size: int) -> list[Seen]:
    """The cells that the agent sees, from the farthest row to its own and from left to right, its own cell left out.

    Args:
        state: moment of the episode.
        size: width and depth of the view in cells, odd.
    """
    world, cells, is_door, doors = state.world, state.cells, state.world.is_door, state.doors
    square = _square(world.width, world.height, size, state.agent, state.direction)
    contents = [WALL if cell == NOWHERE else cells[cell] for cell, _, _ in square]
    clear = [thing == EMPTY or (thing >= 0 and (not is_door[thing] or doors[thing] == OPEN)) for thing in contents]
    visible = [False] * len(square)
    agent_cell = size * (size - 1) + size // 2
    visible[agent_cell] = True
    start = size * (size - 1)
    while start >= 0:
        above = start - size
        for here in range(start, start + size - 1):
            if visible[here] and clear[here]:
                visible[here + 1] = True
                if above >= 0:
                    visible[here - size] = visible[here - size + 1] = True
        for here in range(start + size - 1, start, -1):
            if visible[here] and clear[here]:
                visible[here - 1] = True
                if above >= 0:
                    visible[here - size] = visible[here - size - 1] = True
        start = above
    visible[agent_cell] = False
    return [
        Seen(right, ahead, cell, thing)
        for (cell, right, ahead), thing, seen in zip(square, contents, visible, strict=True)
        if seen
    ]


@lru_cache(maxsize=1 << 16)
def _square(width: int, height: int, size: int, agent: int, direction: int) -> tuple[tuple[int, int, int], ...]:
    """Cell, steps to the right and steps ahead of each cell in view, the farthest row first."""
    y, x = divmod(agent, width)
    ahead_x, ahead_y = ((1, 0), (0, 1), (-1, 0), (0, -1))[direction]
    square = []
    for ahead in range(size - 1, -1, -1):
        for right in range(-(size // 2), size // 2 + 1):
            column = x + ahead * ahead_x - right * ahead_y
            row = y + ahead * ahead_y + right * ahead_x
            inside = 0 <= column < width and 0 <= row < height
            square.append((row * width + column if inside else NOWHERE, right, ahead))
    return tuple(square)
