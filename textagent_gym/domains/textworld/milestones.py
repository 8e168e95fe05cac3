"""Milestones of a game: each action of its shortest solution, reached when the goal is so many actions nearer."""

from __future__ import annotations

from math import inf

from textagent_gym.domains.textworld.planner import Planner
from textagent_gym.errors import PlanningBudgetError


class MilestoneSearch:
    """Finds out which milestones an episode has reached. What was reached before is for the caller to remember.

    `after` is right by whatever path, and asks the planner as seldom as possible: an action brings the goal nearer by
    one at most. With that, and with the planner's lower bound, most turns are known to have reached nothing new, and
    only the others cost a search. `along_solution` costs none.

    Args:
        planner: planner of the game.
        milestones: number of actions in the shortest solution.

    Attributes:
        at_least: number of actions that are certainly between the present state and the goal.
    """

    def __init__(self, planner: Planner, milestones: int) -> None:
        self._planner = planner
        self._milestones = milestones
        self.at_least = 0.0

    def after(self, state: int, *, actions: int, reached: int) -> int:
        """Number of milestones reached; 0 where none can be new, or where none is known to be.

        Args:
            state: facts that hold after a turn that has changed them.
            actions: number of the game's actions that the turn ran.
            reached: number of milestones reached before.
        """
        self.at_least -= max(1, actions)
        if self._milestones - self.at_least <= reached:
            return 0
        bound = self._planner.lower_bound(state)
        self.at_least = inf if bound is None else max(self.at_least, bound)
        if self._milestones - self.at_least <= reached:
            return 0
        try:
            distance, proven = self._planner.proven_distance(state)
        except PlanningBudgetError:
            return 0
        if proven:
            self.at_least = inf if distance is None else distance
        return 0 if distance is None else self._milestones - distance

    def along_solution(self, state: int) -> int:
        """Number of milestones reached if the state lies on the solution that is known from the start, otherwise 0."""
        left = self._planner.left_of_solution(state)
        return 0 if left is None else self._milestones - left
