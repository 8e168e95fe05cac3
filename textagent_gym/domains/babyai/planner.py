"""Shortest plans, by A* over the full state.

The bound is the shortest plan of an easier world: doors stand open, but for locked ones, which need that a key has been
touched; things are no obstacles, and one that has been moved from where it lay at the beginning is everywhere. It never
overestimates, so that the first plan found is a shortest one. A world that is too large for that is searched again with
the bound weighted, which finds a plan soon that need not be the shortest. Where that ends without one, the plan is made
in stages: one clause after the other, and of a clause that puts a thing somewhere, taking it first.

With walks as actions, an action stands for many primitive ones, and no good bound is known: the search is breadth
first. Where that takes too long, the shortest plan of steps is taken, and walks replace as many of its steps as they
can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import heappop, heappush
from itertools import count

from textagent_gym.domains.babyai.commands import PRIMITIVE, admissible
from textagent_gym.domains.babyai.grid import (
    DROP,
    EMPTY,
    FORWARD,
    LEFT,
    LOCKED,
    NOWHERE,
    OPEN,
    PICK_UP,
    RIGHT,
    TOGGLE,
    WALL,
    State,
    World,
)
from textagent_gym.domains.babyai.instruction import Clause, startable
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan

PRIMITIVE_STATES = 10_000
"""States that the exact search of primitive actions may expand: about half a second."""
MACRO_STATES = 2_000
"""States that the exact search of walks may expand: about a second; each has a view and a search of its own."""
WEIGHTED_STATES = 10_000
"""States that the weighted search may expand."""
STAGE_STATES = 3_000
"""States that each try at one stage of a plan may expand."""
_WEIGHT = 3.0  # Of the guide, where the plan need not be the shortest.
_Try = tuple[bool, int, float]
"""How a stage is searched for: whether nothing else is moved, price of a thing in the way, weight of the estimate."""
_TRIES: tuple[_Try, ...] = ((True, 3, 1.5), (False, 3, 1.5), (False, 6, 2.0), (False, 0, 1.2))
_NAMES = {action: text for text, action in PRIMITIVE.items()}
_FAR = 1 << 30

Progress = tuple[frozenset[int], frozenset[int], frozenset[int]]
"""Numbers of clauses done, of clauses whose thing has been taken, and of locked doors whose key has been touched."""


def solve(state: State, size: int | None) -> Plan | None:
    """The shortest plan from a moment on; `None` where the goal is out of reach.

    Args:
        state: moment of the episode.
        size: width and depth of the view; `None` for the primitive set of actions.

    Raises:
        PlanningBudgetError: no plan was found within the bounds of this module.
    """
    if state.status == "success":
        return Plan(())
    if state.status == "failure":
        return None
    return _solve(_Moment(state), size)


class _Moment:
    """A copy of a state, equal to others from which the same can follow."""

    def __init__(self, state: State) -> None:
        self.state = state.copy()
        self._key = state.world, state.key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Moment) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=1024)
def _solve(moment: _Moment, size: int | None) -> Plan | None:
    state = moment.state
    bound = _bound_of(state.world)
    if size is not None:
        walks = _search(state, partial(_successors, size=size), _at_least_one, MACRO_STATES)
        if walks.ended:
            return None if walks.commands is None else Plan(walks.commands)
    steps = _search(state, _steps, bound, PRIMITIVE_STATES)
    exact = size is None and steps.ended
    if not steps.ended:
        guide = _bound_of(state.world, guide=True)
        steps = _search(state, _steps, lambda each: _WEIGHT * guide(each), WEIGHTED_STATES)
        if not steps.ended:
            steps = _in_stages(state, _TRIES)
        if not steps.ended:
            steps = _in_stages(state, _TRIES[1:])
    if steps.commands is not None:
        return Plan(steps.commands if size is None else _shortened(state, size, steps.commands), exact)
    if steps.ended:
        return None
    raise PlanningBudgetError(
        f"no plan was found for {state.world.mission!r} within {PRIMITIVE_STATES + WEIGHTED_STATES:,} states, nor in "
        "stages; an easier level has fewer rooms, objects or clauses"
    )


def solve_within(state: State, size: int | None, length: int) -> Plan | None:
    """The shortest plan, where it has no more than `length` actions and is found within the bounds of this module."""
    bound, most = (_bound_of(state.world), PRIMITIVE_STATES) if size is None else (_at_least_one, MACRO_STATES)
    search = _search(state, partial(_successors, size=size), bound, most, longest=length)
    return None if search.commands is None else Plan(search.commands)


def _shortened(state: State, size: int, commands: tuple[str, ...]) -> tuple[str, ...]:
    """A plan of steps with walks in it: at each moment the one that ends farthest along the plan."""
    moment = state.copy()
    indices = {moment.key(): 0}
    for index, command in enumerate(commands, start=1):
        moment.step(PRIMITIVE[command])
        indices[moment.key()] = index
    shortened = []
    moment, at = state, 0
    while at < len(commands):
        _, text, after = max(((indices.get(after.key(), -1), text, after) for text, after in _successors(moment, size)),
                             key=lambda each: each[0])  # fmt: skip
        moment, at = after, indices[after.key()]
        shortened.append(text)
    return tuple(shortened)


def _at_least_one(state: State) -> float:
    return float(state.status != "success")


@dataclass(frozen=True, slots=True)
class _Result:
    """How a search ended: with a plan, with every state expanded, or out of states."""

    commands: tuple[str, ...] | None
    ended: bool


def _in_stages(start: State, tries: tuple[_Try, ...]) -> _Result:
    """A plan that need not be short, out of shorter ones."""
    moment = start.copy()
    commands: tuple[str, ...] = ()
    while moment.status != "success":
        takes = frozenset() if moment.carrying in _wanted(moment) else _wanted(moment)
        stage = (takes and _stage(moment, takes, tries)) or _stage(moment, frozenset(), tries)
        if stage is None:
            return _Result(None, ended=False)
        for command in stage:
            moment.step(PRIMITIVE[command])
        commands += stage
    return _Result(commands, ended=True)


def _stage(start: State, takes: frozenset[int], tries: tuple[_Try, ...]) -> tuple[str, ...] | None:
    """Commands until a clause more has been done, or one of some things is carried."""
    done = len(start.done)
    for direct, price, weight in tries:
        result = _search(
            start,
            _direct_steps if direct else _steps,
            _Guide(start, price, weight),
            STAGE_STATES,
            reached=lambda state: len(state.done) > done or state.carrying in takes or _is_won(state),
        )
        if result.commands is not None:
            return result.commands
    return None


def _wanted(state: State) -> frozenset[int]:
    """Things that the clauses that can be done next take."""
    clauses = startable(state.world.instruction, state.done)
    return frozenset(t for clause in clauses if clause.kind in ("putnext", "pickup") for t in clause.targets)


def _is_won(state: State) -> bool:
    return state.status == "success"


def _search(
    start: State,
    successors: Callable[[State], Iterator[tuple[str, State]]],
    bound: Callable[[State], float],
    most: int,
    *,
    longest: int = _FAR,
    reached: Callable[[State], bool] = _is_won,
) -> _Result:
    """A*, until a state is `reached`; with a bound that overestimates, a state may be expanded again."""
    numbers = count()
    key = start.key()
    parents: dict[tuple[object, ...], tuple[tuple[object, ...], str] | None] = {key: None}
    costs = {key: 0}
    queue: list[tuple[float, int, int, tuple[object, ...], State]] = []
    heappush(queue, (bound(start), 0, next(numbers), key, start))
    expanded: set[tuple[object, ...]] = set()
    while queue:
        _, _, _, key, state = heappop(queue)
        if key in expanded:
            continue
        if reached(state):
            return _Result(_path(parents, key), ended=True)
        if len(expanded) == most:
            return _Result(None, ended=False)
        expanded.add(key)
        cost = costs[key] + 1
        for text, after in successors(state):
            following = after.key()
            if after.status == "failure" or costs.get(following, _FAR) <= cost:
                continue
            least = bound(after)
            if least >= _FAR or cost + least > longest:
                continue
            costs[following] = cost
            parents[following] = (key, text)
            expanded.discard(following)  # A weighted bound can find a shorter way later.
            heappush(queue, (cost + least, -cost, next(numbers), following, after))
    return _Result(None, ended=True)


def _steps(state: State) -> Iterator[tuple[str, State]]:
    return _successors(state, size=None)


def _direct_steps(state: State) -> Iterator[tuple[str, State]]:
    """Steps that take nothing but what is wanted, and put that down only where it was to go."""
    wanted = _wanted(state)
    for text, after in _steps(state):
        took_other = after.carrying not in (state.carrying, NOWHERE) and after.carrying not in wanted
        dropped = after.carrying == NOWHERE and state.carrying in wanted
        if not took_other and (not dropped or len(after.done) > len(state.done) or _is_won(after)):
            yield text, after


def _path(
    parents: dict[tuple[object, ...], tuple[tuple[object, ...], str] | None], key: tuple[object, ...]
) -> tuple[str, ...]:
    commands = []
    while (parent := parents[key]) is not None:
        key, text = parent
        commands.append(text)
    return tuple(reversed(commands))


def _successors(state: State, size: int | None) -> Iterator[tuple[str, State]]:
    """What the actions lead to; doors are shut only where opening them is asked for."""
    commands = _primitives(state) if size is None else admissible(state, size)
    for text, actions in commands.items():
        after = state.copy()
        for action in actions:
            after.step(action)
            if after.status != "continue":
                break
        yield text, after


def _primitives(state: State) -> dict[str, tuple[int, ...]]:
    """Primitive actions that can be of use."""
    thing = state.cells[state.front]
    actions = [LEFT, RIGHT]
    if state.is_free(state.front):
        actions.append(FORWARD)
    if thing == EMPTY and state.carrying != NOWHERE:
        actions.append(DROP)
    if thing >= 0:
        if not state.world.is_door[thing]:
            actions += [PICK_UP] if state.carrying == NOWHERE else []
            actions += [TOGGLE] if state.world.things[thing].kind == "box" else []
        elif state.doors[thing] != OPEN or thing in state.world.to_open:
            actions.append(TOGGLE)
    return {_NAMES[action]: (action,) for action in actions}


@lru_cache(maxsize=256)
def _bound_of(world: World, *, guide: bool = False) -> Callable[[State], float]:
    return _Bound(world, guide=guide)


class _Bound:
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
        self._fields: dict[object, list[int]] = {}
        self._places = self._start.places
        self._price = 0

    def __call__(self, state: State) -> float:
        if state.status == "success":
            return 0.0
        moved = frozenset(t for t in self._relevant if state.places[t] != self._start.places[t])
        if state.world.carrying != NOWHERE:
            moved |= {state.world.carrying}
        taken = frozenset(
            clause.number for clause in state.world.clauses if clause.kind == "putnext" and moved & {*clause.targets}
        )
        usable = frozenset(d for d in self._locked if state.doors[d] != LOCKED or moved & {*self._keys[d]})
        field = self._field(moved, (state.done, taken, usable))
        return float(field[state.agent * 4 + state.direction])

    def _field(self, moved: frozenset[int], progress: Progress) -> list[int]:
        """Least number of actions from each pose, `cell * 4 + direction`."""
        known = self._fields.get((moved, progress))
        if known is None:
            known = self._fields[moved, progress] = self._flood(moved, progress)
        return known

    def _later(self, moved: frozenset[int], progress: Progress) -> list[int]:
        return self._field(moved, progress)

    def _flood(self, moved: frozenset[int], progress: Progress) -> list[int]:
        usable = progress[2]
        field = [_FAR] * (len(self._walls) * 4)
        ready: list[list[int]] = []

        def offer(pose: int, cost: int) -> None:
            if cost < field[pose]:
                field[pose] = cost
                while len(ready) <= cost:
                    ready.append([])
                ready[cost].append(pose)

        closed = {self._start.places[door] for door in self._locked if door not in usable}
        for poses, cost, after in self._events(moved, progress, closed):
            beyond = self._later(moved, after) if after is not None else None
            for pose in poses:
                offer(pose, cost + (beyond[pose] if beyond is not None else 0))
        in_the_way = {p for t, p in enumerate(self._places) if not self._world.is_door[t]} if self._price else ()
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
        self, moved: frozenset[int], progress: Progress, closed: set[int]
    ) -> Iterator[tuple[list[int], int, Progress | None]]:
        """What brings progress: the poses where it can happen, its cost, and the progress after it (`None` at the end).

        A thing that has been moved can be anywhere.
        """
        done, taken, usable = progress
        for door in self._locked:
            if door not in usable and not moved & {*self._keys[door]}:
                yield self._facing(self._keys[door], closed), 1, (done, taken, usable | {door})
        for clause in startable(self._world.instruction, done):
            if clause.kind == "putnext" and clause.number not in taken:
                yield self._facing(clause.targets, closed), 1, (done, taken | {clause.number}, usable)
                continue
            decisive = {*(clause.fixed or clause.targets)}
            poses = self._anywhere(closed) if moved & decisive else self._ending(clause, closed)
            after = done | {clause.number}
            finished = all(each.number in after for each in self._world.clauses)
            cost = 0 if clause.kind == "goto" else 1
            yield poses, cost, None if finished else (after, taken, usable)

    def _ending(self, clause: Clause, closed: set[int]) -> list[int]:
        """Poses in which the last action of a clause can happen, with nothing moved."""
        if clause.kind != "putnext":
            if clause.kind == "open":
                reachable = [t for t in clause.targets if self._places[t] not in closed]
                return self._facing(reachable, closed)
            return self._facing(clause.targets, closed)
        steps = self._world.steps
        return [
            pose
            for pose in self._anywhere(closed)
            for front in (pose // 4 + steps[pose % 4],)
            if any(self._places[t] - front in steps for t in clause.fixed)
        ]

    def _facing(self, things: list[int] | tuple[int, ...], closed: set[int]) -> list[int]:
        """Poses in front of one of some things, as they lay; everywhere for things in boxes."""
        if any(self._places[t] == NOWHERE for t in things):
            return self._anywhere(closed)
        steps = self._world.steps
        cells = {self._places[t] for t in things}
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


class _Guide(_Bound):
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
        self._at_start = start.places.copy()
        self._held_at_start = frozenset({start.carrying} - {NOWHERE})
        in_boxes = {t for t in self._relevant if start.places[t] == NOWHERE} - self._held_at_start
        self._needed = [thing for thing in self._relevant if thing not in in_boxes]
        self._price = price
        self._weight = weight

    def __call__(self, state: State) -> float:
        if state.status == "success":
            return 0.0
        for thing in self._needed:
            if state.places[thing] == NOWHERE and thing != state.carrying:
                return _FAR
        self._places = state.places
        held = frozenset({state.carrying} - {NOWHERE})
        taken = frozenset(c.number for c in state.world.clauses if c.kind == "putnext" and held & {*c.targets})
        usable = frozenset(d for d in self._locked if state.doors[d] != LOCKED or held & {*self._keys[d]})
        field = self._field(held, (state.done, taken, usable))
        return self._weight * field[state.agent * 4 + state.direction]

    def _field(self, moved: frozenset[int], progress: Progress) -> list[int]:
        key = (moved, progress, tuple(self._places))
        known = self._fields.get(key)
        if known is None:
            known = self._fields[key] = self._flood(moved, progress)
        return known

    def _later(self, moved: frozenset[int], progress: Progress) -> list[int]:
        now, self._places = self._places, self._at_start
        field = self._field(self._held_at_start, progress)
        self._places = now
        return field
