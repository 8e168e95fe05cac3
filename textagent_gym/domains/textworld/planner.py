"""Shortest solutions of a TextWorld game, by A* on a state reduced to what can matter.

Three reductions, each of which keeps the length of the shortest solution. All rest on one property of TextWorld's
rules: no condition asks that a fact be *false*, so facts that hold in addition never forbid anything.

1. *Undoing is pointless.* An action `a` (drop, put, insert, close, lock) may be left out of every plan if what it adds
   is wanted by nothing but the actions that take it back (`b` with `b.removes == a.adds` and `b.adds == a.removes`)
   and by no quest, and if keeping what it removes loses no quest. Take a plan with `a`: without `a`, and without the
   next `b` if there is one, each other action still has its conditions. Where hands are limited (cooking games with
   `drop`), putting down also frees a hand, which other actions want, so there it is kept.
2. *Only what is wanted.* Actions that add nothing that a quest, or a condition of a wanted action, asks for never help.
3. *Projection.* Facts that no wanted action and no quest mentions are forgotten, so states that differ only in them
   are one.

The heuristic counts landmarks: facts that must become true on every way to the goal, taken so that no action makes two
of them true at once. It never overestimates, so the first solution that A* takes from its queue is a shortest one.

A search expands at most `BUDGET` states: some ten seconds, and up to 200 MB. When they are spent, as in cooking games
with several ingredients and limited hands, a second search of the same size looks for a plan that need not be a
shortest one (`Solution.exact` is then false); when that finds none either, `PlanningBudgetError` says so.
Only a goal that is proven to be out of reach has the answer `None`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from textagent_gym.domains.textworld.logic import Action, GameLogic
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan

BUDGET = 30_000
"""States that a search expands before it gives up proving that a plan is a shortest one."""

_CLOSE_ENOUGH = 5  # Weight of the heuristic in that second search.


@dataclass(frozen=True, slots=True)
class Solution:
    """A way to win.

    Attributes:
        actions: actions in order.
        exact: whether it is proven that no shorter way exists.
    """

    actions: tuple[Action, ...]
    exact: bool

    @property
    def commands(self) -> tuple[str, ...]:
        """What a player types."""
        return tuple(action.command for action in self.actions)


def solve(logic: GameLogic, state: int | None = None, *, budget: int = BUDGET) -> Solution | None:
    """A shortest way to win from a state (the initial one by default), or `None` where the goal is out of reach.

    Args:
        logic: logic of the game.
        state: state to begin in.
        budget: number of states to expand before the proof of shortness is given up.

    Raises:
        PlanningBudgetError: no solution was found within twice the budget.
    """
    return Planner(logic, budget=budget).solve(logic.initial if state is None else state)


class Planner:
    """Answers how far the goal is from any state of one game, and remembers the answers.

    Every state on a shortest way has a known distance once the way is known, so following a plan costs a look-up per
    step; only a state off every known way is searched from again. Safe to share between threads; a pickled planner
    forgets.

    Args:
        logic: logic of the game.
        budget: number of states that a search expands; see the module.
        remembered: number of states whose distances are kept.
        solution: a way from the beginning that is known already.
    """

    def __init__(
        self,
        logic: GameLogic,
        *,
        budget: int = BUDGET,
        remembered: int = 100_000,
        solution: Solution | None = None,
    ) -> None:
        self.logic = logic
        self._budget = budget
        self._remembered = remembered
        self._solution = solution
        self._reduced = _Reduced(logic)
        self._next: dict[int, tuple[Action | None, int | None, bool]] = {}
        self._lock = Lock()
        state = logic.initial
        for done, action in enumerate(solution.actions if solution else ()):
            assert solution is not None
            left = len(solution.actions) - done
            self._next.setdefault(state & self._reduced.mask, (action, left, solution.exact))
            state = logic.apply(state, action)

    def __reduce__(self) -> tuple[Callable[..., Planner], tuple[Any, ...]]:
        return _planner, (self.logic, self._budget, self._remembered, self._solution)

    def lower_bound(self, state: int) -> int | None:
        """Number of actions that are certainly needed to win; `None` where that is certainly impossible. No search."""
        if self.logic.won(state):
            return 0
        if self.logic.lost(state):
            return None
        key = state & self._reduced.mask
        known = self._next.get(key)
        if known is not None and known[2]:
            return known[1]
        return _Landmarks(self._reduced, key).remaining(key)

    def distance(self, state: int) -> int | None:
        """Number of actions in the shortest way to win from here, 0 once won; `None` where winning is impossible.

        Raises:
            PlanningBudgetError: no way was found within the budget.
        """
        return self._lookup(state)[1]

    def proven_distance(self, state: int) -> tuple[int | None, bool]:
        """`distance`, and whether it is proven to be the shortest."""
        return self._lookup(state)[1:]

    def plan(self, state: int) -> Plan | None:
        """A shortest way to win from here, as a player types it; `None` where winning is impossible.

        Raises:
            PlanningBudgetError: no way was found within the budget.
        """
        solution = self.solve(state)
        return None if solution is None else Plan(solution.commands, solution.exact)

    def solve_initial(self) -> Solution | None:
        """A shortest way to win the game from its beginning; see `solve`."""
        return self.solve(self.logic.initial)

    def solve(self, state: int) -> Solution | None:
        """See `solve` above."""
        actions: list[Action] = []
        exact = True
        while True:
            action, distance, proven = self._lookup(state)
            if distance is None:
                return None
            exact = exact and proven
            if action is None:
                return Solution(tuple(actions), exact)
            actions.append(action)
            state = self.logic.apply(state, action)

    def _lookup(self, state: int) -> tuple[Action | None, int | None, bool]:
        """First action of a shortest way from here, its length, and whether that is proven."""
        logic = self.logic
        if logic.won(state):
            return None, 0, True
        if logic.lost(state):
            return None, None, True
        key = state & self._reduced.mask
        known = self._next.get(key)
        if known is None:
            path, proven = self._reduced.search(key, self._budget)
            with self._lock:
                if len(self._next) >= self._remembered:
                    self._next.clear()
                if path is None:
                    self._next[key] = None, None, proven
                else:
                    length = len(path)
                    for position, (at, action) in enumerate(path):
                        self._next.setdefault(at, (action, length - position, proven))
                known = self._next[key]
        if known[1] is None and not known[2]:
            raise PlanningBudgetError(
                f"no way to win was found in {2 * self._budget} states; the goal may still be within reach"
            )
        return known


def _planner(logic: GameLogic, budget: int, remembered: int, solution: Solution | None) -> Planner:
    return Planner(logic, budget=budget, remembered=remembered, solution=solution)


class _Reduced:
    """The game after the three reductions."""

    def __init__(self, logic: GameLogic) -> None:
        self.logic = logic
        wins = [win for quest in logic.quests if quest.required for win in quest.wins]
        fails = [fail for quest in logic.quests for fail in quest.fails]
        won_facts, fail_facts = _union(wins), _union(fails)
        changing = [action for action in logic.actions if action.adds or action.removes]
        useful = _without_undoing(changing, won_facts, fail_facts)
        wanted, self.actions = _wanted(useful, won_facts)
        quest_bits = ((1 << (len(logic.quests) + 1)) - 1) << len(logic.facts)
        self.mask = wanted | won_facts | fail_facts | quest_bits
        rooms = logic.rooms
        self._rooms = rooms
        self._by_room: dict[int, list[Action]] = {}
        for i in range(len(logic.facts)):
            if rooms >> i & 1:
                self._by_room[1 << i] = [a for a in self.actions if a.needs & rooms in (0, 1 << i)]
        self._anything = next((a for a in logic.actions if a.command == "look"), None) or logic.actions[0]

    def search(self, start: int, budget: int) -> tuple[list[tuple[int, Action]] | None, bool]:
        """A* from a projected state: the way as (state, action) pairs or `None`, and whether the answer is proven."""
        landmarks = _Landmarks(self, start)
        path, finished = self._astar(start, budget, 1, landmarks)
        if finished:
            return path, True
        path, finished = self._astar(start, budget, _CLOSE_ENOUGH, landmarks)
        return path, finished and path is None

    def successors(self, state: int) -> Iterable[tuple[Action, int]]:
        logic, mask = self.logic, self.mask
        ended = logic.end_turn(state)
        if ended != state:  # A quest whose condition holds from the start is completed by any turn.
            noop = next((a for a in logic.applicable(state) if not a.adds and not a.removes), self._anything)
            yield noop, ended
        for action in self._by_room.get(state & self._rooms, self.actions):
            if state & action.needs == action.needs:
                yield action, logic.end_turn((state & ~action.removes) | action.adds) & mask

    def _astar(
        self, start: int, budget: int, weight: int, landmarks: _Landmarks
    ) -> tuple[list[tuple[int, Action]] | None, bool]:
        logic = self.logic
        came: dict[int, tuple[int, Action] | None] = {start: None}
        cost = {start: 0}
        first = landmarks.remaining(start)
        if first is None:
            return None, True
        # Ties: the deeper state first, then the older one, so that equal searches give equal plans everywhere.
        queue = [(weight * first, 0, 0, start)]
        closed: set[int] = set()
        order = 0
        while queue:
            _, _, _, state = heapq.heappop(queue)
            if state in closed:
                continue
            closed.add(state)
            if logic.won(state):
                return _path(came, state), True
            if len(closed) > budget:
                return None, False
            steps = cost[state] + 1
            for action, after in self.successors(state):
                if logic.lost(after) or cost.get(after, steps + 1) <= steps:
                    continue
                ahead = landmarks.remaining(after)
                if ahead is None:
                    continue
                cost[after] = steps
                closed.discard(after)  # The heuristic is admissible but not consistent: a cheaper way may come late.
                came[after] = (state, action)
                order += 1
                heapq.heappush(queue, (steps + weight * ahead, -steps, order, after))
        return None, True


def _path(came: dict[int, tuple[int, Action] | None], state: int) -> list[tuple[int, Action]]:
    path = []
    step = came[state]
    while step is not None:
        path.append(step)
        step = came[step[0]]
    return path[::-1]


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _without_undoing(actions: list[Action], won_facts: int, fail_facts: int) -> list[Action]:
    """Leave out actions that only undo others, until none is left (see the module's docstring, 1)."""
    kept = list(actions)
    while True:
        wanted_by: dict[int, set[tuple[int, int]]] = {}
        for action in kept:
            for fact in _bits(action.needs):
                wanted_by.setdefault(fact, set()).add((action.removes, action.adds))
        changes = {(action.removes, action.adds) for action in kept}
        pointless = {
            (removes, adds)
            for removes, adds in changes
            if removes
            and (adds, removes) in changes
            and not adds & won_facts
            and not removes & fail_facts
            and all(wanted_by.get(fact, set()) <= {(adds, removes)} for fact in _bits(adds))
        }
        if not pointless:
            return kept
        kept = [action for action in kept if (action.removes, action.adds) not in pointless]


def _wanted(actions: list[Action], goal: int) -> tuple[int, list[Action]]:
    """The facts that lead to the goal and the actions that add one of them (2)."""
    wanted, chosen = goal, [False] * len(actions)
    growing = True
    while growing:
        growing = False
        for index, action in enumerate(actions):
            if not chosen[index] and action.adds & wanted:
                chosen[index] = growing = True
                wanted |= action.needs
    return wanted, [action for index, action in enumerate(actions) if chosen[index]]


class _Landmarks:
    """Facts that must become true on every way to the goal from a state reachable from `start`."""

    def __init__(self, reduced: _Reduced, start: int) -> None:
        self._logic = reduced.logic
        self._mask = reduced.mask
        reachable, actions = _relaxed(reduced.actions, start, reduced.mask)
        self._reachable = reachable
        adders: dict[int, list[Action]] = {}
        for action in actions:
            for fact in _bits(action.adds & reduced.mask):
                adders.setdefault(fact, []).append(action)
        self._common: dict[int, int] = {}
        for fact, some in adders.items():
            common = some[0].needs
            for action in some[1:]:
                common &= action.needs
            self._common[fact] = common & reduced.mask
        # Facts that one action can add together count once: each is represented by the lowest of its company.
        self._company: dict[int, int] = {
            fact: _union(action.adds & reduced.mask for action in some) for fact, some in adders.items()
        }
        self._counted: dict[int, int] = {}

    def remaining(self, state: int) -> int | None:
        """A number of actions that is certainly still needed; `None` where the goal is certainly out of reach."""
        logic = self._logic
        needed = 0
        for index, quest in enumerate(logic.quests):
            if not quest.required or state & logic.completed_bit(index):
                continue
            possible = [win & ~state for win in quest.wins if not (win & ~state) & ~self._reachable]
            if not possible:
                return None
            common = possible[0]
            for win in possible[1:]:
                common &= win
            needed |= common
        count = self._counted.get(needed_key := self._close(needed, state))
        if count is None:
            count = self._counted[needed_key] = self._count(needed_key)
        return count

    def _close(self, needed: int, state: int) -> int:
        """The needed facts and everything that all their adders need, as far as it does not hold yet."""
        landmarks = fresh = needed & ~state
        while fresh:
            low = fresh & -fresh
            fresh ^= low
            new = self._common.get(low, 0) & ~state & ~landmarks
            landmarks |= new
            fresh |= new
        return landmarks

    def _count(self, landmarks: int) -> int:
        count, covered = 0, 0
        for fact in _bits(landmarks):
            if not fact & covered:
                count += 1
                covered |= self._company.get(fact, fact)
        return count


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _relaxed(actions: list[Action], start: int, mask: int) -> tuple[int, list[Action]]:
    """What can ever become true from a state if nothing stopped being true, and the actions that can then be done."""
    reachable, waiting = start, actions
    done: list[Action] = []
    while True:
        possible = [a for a in waiting if a.needs & mask & ~reachable == 0]
        if not possible:
            return reachable, done
        done += possible
        waiting = [a for a in waiting if a.needs & mask & ~reachable]
        reachable |= _union(a.adds for a in possible)
