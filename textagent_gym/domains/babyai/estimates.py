"""How many primitive actions are still needed, at least or about.

The least number is that of an easier world: doors stand open, but for locked ones, which need that a key has been
touched; things are no obstacles, and one that has been moved from where it lay at the beginning is everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from textagent_gym.domains.babyai.grid import LOCKED, NOWHERE, WALL, State, World
from textagent_gym.domains.babyai.instruction import Clause, startable

FAR = 1 << 30
"""More actions than any plan has."""

Progress = tuple[frozenset[int], frozenset[int], frozenset[int]]
"""Numbers of clauses done, of clauses whose thing has been taken, and of locked doors whose key has been touched."""
Places = tuple[int, ...]
"""Cell of each thing; `NOWHERE` for those that lie in none."""


@lru_cache(maxsize=32)
def bound_of(world: World, *, guide: bool = False) -> Callable[[State], float]:
    """The bound of a level, shared by all searches in it."""
    return Bound(world, guide=guide)


class Bound:
    """Least number of primitive actions that can still be needed.

    Fields of distances are kept for each configuration (which of the things that matter have been moved, which locked
    doors have been opened) and progress, and made when they are first asked for.

    Args:
        world: level as it begins.
        guide: whether things to put others next to are taken to stay where they lay: no bound, but a better guide, to
            which moving them is no progress.
    """

    def __init__(self, world: World, *, guide: bool) -> None:
        self._world = world
        self._start = State(world)
        self._walls = [cell == WALL for cell in world.cells]
        self._locked = [t for t, door in enumerate(world.doors) if world.is_door[t] and door == LOCKED]
        self._keys = {
            door: [
                t
                for t, each in enumerate(world.things)
                if each.kind == "key" and each.color == world.things[door].color
            ]
            for door in self._locked
        }
        relevant = {t for clause in world.clauses for t in (*clause.targets, *(() if guide else clause.fixed))}
        self._relevant = sorted(t for t in relevant.union(*self._keys.values()) if not world.is_door[t])
        self._places = tuple(self._start.places)
        self._fields: dict[tuple[frozenset[int], Places, Progress], list[int]] = {}
        self._price = 0
        self._one_by_one = False

    def __call__(self, state: State) -> float:
        if state.status == "success":
            return 0.0
        moved = {t for t in self._relevant if state.places[t] != self._places[t]}
        moved |= {state.carrying} & {*self._relevant}  # One that lay in a box lies nowhere still.
        moved |= {state.world.carrying} - {NOWHERE}
        return float(self._distance(state, frozenset(moved), self._places))

    def _distance(self, state: State, moved: frozenset[int], places: Places) -> int:
        """Least number of actions from where the agent stands."""
        taken = frozenset(
            clause.number for clause in state.world.clauses if clause.kind == "putnext" and moved & {*clause.targets}
        )
        usable = frozenset(d for d in self._locked if state.doors[d] != LOCKED or moved & {*self._keys[d]})
        return self._field(moved, places, (state.done, taken, usable))[state.agent * 4 + state.direction]

    def _field(self, moved: frozenset[int], places: Places, progress: Progress) -> list[int]:
        """Least number of actions from each pose, `cell * 4 + direction`."""
        known = self._fields.get((moved, places, progress))
        if known is None:
            known = self._fields[moved, places, progress] = self._flood(moved, places, progress)
        return known

    def _later(self, moved: frozenset[int], places: Places) -> tuple[frozenset[int], Places]:
        """What is taken to have been moved, and where things lie, once the next thing has been done."""
        return moved, places

    def _flood(self, moved: frozenset[int], places: Places, progress: Progress) -> list[int]:
        usable = progress[2]
        field = [FAR] * (len(self._walls) * 4)
        ready: list[list[int]] = []

        def offer(pose: int, cost: int) -> None:
            if cost < field[pose]:
                field[pose] = cost
                while len(ready) <= cost:
                    ready.append([])
                ready[cost].append(pose)

        closed = {places[door] for door in self._locked if door not in usable}
        for poses, cost, after in self._events(moved, places, progress, closed):
            beyond = self._field(*self._later(moved, places), after) if after is not None else None
            for pose in poses:
                offer(pose, cost + (beyond[pose] if beyond is not None else 0))
        in_the_way = {p for t, p in enumerate(places) if not self._world.is_door[t]} if self._price else ()
        cost = 0
        while cost < len(ready):
            for pose in ready[cost]:
                if field[pose] == cost:
                    cell, direction = divmod(pose, 4)
                    offer(cell * 4 + (direction + 1) % 4, cost + 1)
                    offer(cell * 4 + (direction - 1) % 4, cost + 1)
                    behind = cell - self._world.steps[direction]
                    if not self._walls[behind] and behind not in closed:
                        offer(behind * 4 + direction, cost + 1 + (self._price if cell in in_the_way else 0))
            cost += 1
        return field

    def _events(
        self, moved: frozenset[int], places: Places, progress: Progress, closed: set[int]
    ) -> Iterator[tuple[list[int], int, Progress | None]]:
        """What brings progress: the poses where it can happen, its cost, and the progress after it (`None` at the end).

        A thing that has been moved can be anywhere.
        """
        done, taken, usable = progress
        for door in self._locked:
            if door not in usable and not moved & {*self._keys[door]}:
                yield self._facing(self._keys[door], places, closed), 1, (done, taken, usable | {door})
        for clause in startable(self._world.instruction, done):
            fetches = clause.kind == "putnext" and clause.number not in taken
            if self._one_by_one and (fetches or clause.kind == "pickup") and not taken <= done:
                continue
            if fetches:
                yield self._facing(clause.targets, places, closed), 1, (done, taken | {clause.number}, usable)
                continue
            decisive = {*(clause.fixed or clause.targets)}
            poses = self._anywhere(closed) if moved & decisive else self._ending(clause, places, closed)
            after = done | {clause.number}
            finished = all(each.number in after for each in self._world.clauses)
            cost = 0 if clause.kind == "goto" else 1
            yield poses, cost, None if finished else (after, taken, usable)

    def _ending(self, clause: Clause, places: Places, closed: set[int]) -> list[int]:
        """Poses in which the last action of a clause can happen, with nothing moved."""
        if clause.kind != "putnext":
            if clause.kind == "open":
                reachable = [t for t in clause.targets if places[t] not in closed]
                return self._facing(reachable, places, closed)
            return self._facing(clause.targets, places, closed)
        steps = self._world.steps
        return [
            pose
            for pose in self._anywhere(closed)
            for front in (pose // 4 + steps[pose % 4],)
            if any(places[t] - front in steps for t in clause.fixed)
        ]

    def _facing(self, things: list[int] | tuple[int, ...], places: Places, closed: set[int]) -> list[int]:
        """Poses in front of one of some things, as they lay; everywhere for things in boxes."""
        if any(places[t] == NOWHERE for t in things):
            return self._anywhere(closed)
        steps = self._world.steps
        cells = {places[t] for t in things}
        return [
            (cell - steps[direction]) * 4 + direction
            for cell in cells
            for direction in range(4)
            if 0 <= cell - steps[direction] < len(self._walls)
            and not self._walls[cell - steps[direction]]
            and cell - steps[direction] not in closed
        ]

    def _anywhere(self, closed: set[int]) -> list[int]:
        return [
            cell * 4 + direction
            for cell, wall in enumerate(self._walls)
            if not wall and cell not in closed
            for direction in range(4)
        ]


class Guide(Bound):
    """An estimate that may be too high: things are where they are now, and one that stands in the way has a price.

    What follows the next thing to do is estimated as things were at the start. A state in which a box that matters has
    been opened is a dead end: an opened box is gone.

    Args:
        start: state from which a plan is searched for.
        price: actions that it costs to pass a thing; 0 where things are no obstacles.
        weight: factor of the estimate.
    """

    def __init__(self, start: State, price: int, weight: float) -> None:
        super().__init__(start.world, guide=False)
        self._at_start = frozenset({start.carrying} - {NOWHERE}), tuple(start.places)
        in_boxes = {t for t in self._relevant if start.places[t] == NOWHERE and t != start.carrying}
        self._needed = [thing for thing in self._relevant if thing not in in_boxes]
        self._price = price
        self._weight = weight
        self._one_by_one = True  # What has been taken is put where it goes before anything else is taken.

    def __call__(self, state: State) -> float:
        if state.status == "success":
            return 0.0
        if any(state.places[thing] == NOWHERE and thing != state.carrying for thing in self._needed):
            return FAR
        return self._weight * self._distance(state, frozenset({state.carrying} - {NOWHERE}), tuple(state.places))

    def _later(self, moved: frozenset[int], places: Places) -> tuple[frozenset[int], Places]:
        return self._at_start
