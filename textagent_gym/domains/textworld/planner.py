"""Shortest solutions of a TextWorld game; `search` finds them.

A search expands at most `BUDGET` states: some ten seconds, and up to 200 MB. When they are spent, as in cooking games
with several ingredients and limited hands, a second search of the same size looks for a plan that need not be a
shortest one (`Solution.exact` is then false); when that finds none either, `PlanningBudgetError` says so.
Only a goal that is proven to be out of reach has the answer `None`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from textagent_gym.domains.textworld.logic import Action, GameLogic
from textagent_gym.domains.textworld.search import Distances, ReducedGame
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan

_PLANS = 1_000  # Of a game, that are kept: a list of commands each.

BUDGET = 30_000
"""States that a search expands before it gives up proving that a plan is a shortest one."""


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
        self._next: Distances = {}
        self._reduced = ReducedGame(logic, self._next)
        self._plans: dict[int, Plan | None] = {}
        self._on_solution: dict[int, int] = {}
        self._lock = Lock()
        state = logic.initial
        for done, action in enumerate(solution.actions if solution else ()):
            assert solution is not None
            left = len(solution.actions) - done
            key = self._reduced.project(state)
            self._next.setdefault(key, (action, left, solution.exact))
            self._on_solution.setdefault(key, left)
            state = logic.apply(state, action)

    def __reduce__(self) -> tuple[Callable[..., Planner], tuple[Any, ...]]:
        return _planner, (self.logic, self._budget, self._remembered, self._solution)

    def left_of_solution(self, state: int) -> int | None:
        """Number of actions left of the solution that is known from the beginning; `None` off its way. No search."""
        return self._on_solution.get(self._reduced.project(state))

    def lower_bound(self, state: int) -> int | None:
        """Number of actions that are certainly needed to win; `None` where that is certainly impossible. No search."""
        if self.logic.won(state):
            return 0
        if self.logic.lost(state):
            return None
        key = self._reduced.project(state)
        known = self._next.get(key)
        if known is not None and known[2]:
            return known[1]
        return self._reduced.lower_bound(key)

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
        key = self._reduced.project(state)
        if key in self._plans:
            return self._plans[key]
        solution = self.solve(state)
        plan = None if solution is None else Plan(solution.commands, solution.exact)
        if len(self._plans) < _PLANS:
            self._plans[key] = plan
        return plan

    def next_command(self, state: int) -> str | None:
        """First command of `plan`; `None` where the game is won or winning is impossible.

        Raises:
            PlanningBudgetError: no way was found within the budget.
        """
        action = self._lookup(state)[0]
        return None if action is None else action.command

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
            actions.append(self._reduced.original(action, state))
            state = self.logic.apply(state, actions[-1])

    def _lookup(self, state: int) -> tuple[Action | None, int | None, bool]:
        """First action of a shortest way from here, its length, and whether that is proven."""
        logic = self.logic
        if logic.won(state):
            return None, 0, True
        if logic.lost(state):
            return None, None, True
        key = self._reduced.project(state)
        known = self._next.get(key)
        if known is None:
            path, left, proven = self._reduced.search(key, self._budget)
            with self._lock:
                if len(self._next) >= self._remembered:
                    self._next.clear()
                if path is None:
                    self._next[key] = None, None, proven
                else:
                    length = len(path) + left
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
