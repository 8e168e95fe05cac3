"""Shortest plans, by A* over the full state.

The bound is the shortest plan of an easier world (see `estimates`). It never overestimates, so that the first plan
found is a shortest one. A world too large for that is searched again with the bound weighted, which finds a plan
soon that need not be the shortest. Where that ends without one, the plan is made in stages: one clause after the other,
and of a clause that puts a thing somewhere, taking it first.

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
from textagent_gym.domains.babyai.estimates import FAR, Guide, bound_of
from textagent_gym.domains.babyai.grid import (
    DROP,
    EMPTY,
    FORWARD,
    LEFT,
    NOWHERE,
    OPEN,
    PICK_UP,
    RIGHT,
    TOGGLE,
    State,
)
from textagent_gym.domains.babyai.instruction import startable
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
    plan = _solve(_Moment(state), size)
    if isinstance(plan, str):
        raise PlanningBudgetError(plan)
    return plan


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
def _solve(moment: _Moment, size: int | None) -> Plan | str | None:
    """See `solve`; where no plan was found, a text says so."""
    state = moment.state
    bound = bound_of(state.world)
    if size is not None:
        walks = _search(state, partial(_successors, size=size), _at_least_one, MACRO_STATES)
        if walks.ended:
            return None if walks.commands is None else Plan(walks.commands)
    steps = _search(state, _steps, bound, PRIMITIVE_STATES)
    exact = size is None and steps.ended
    if not steps.ended:
        guide = bound_of(state.world, guide=True)
        steps = _search(state, _steps, lambda each: _WEIGHT * guide(each), WEIGHTED_STATES)
        for tries in (_TRIES, _TRIES[1:]):
            if not steps.ended:
                steps = _in_stages(state, tries)
    if steps.commands is not None:
        return Plan(steps.commands if size is None else _shortened(state, size, steps.commands), exact)
    if steps.ended:
        return None
    return (
        f"no plan was found for {state.world.mission!r} within {PRIMITIVE_STATES + WEIGHTED_STATES:,} states, nor in "
        "stages; an easier level has fewer rooms, objects or clauses"
    )


def solve_within(state: State, size: int | None, length: int) -> Plan | None:
    """The shortest plan, where it has no more than `length` actions and is found within the bounds of this module."""
    bound, most = (bound_of(state.world), PRIMITIVE_STATES) if size is None else (_at_least_one, MACRO_STATES)
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
        wanted = _wanted(moment)
        takes = frozenset() if moment.carrying in wanted else wanted
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
            Guide(start, price, weight),
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
    longest: int = FAR,
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
            if after.status == "failure" or costs.get(following, FAR) <= cost:
                continue
            least = bound(after)
            if least >= FAR or cost + least > longest:
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
