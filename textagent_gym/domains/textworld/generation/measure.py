"""What is known of a game before anybody plays it: its logic, a shortest solution, and how difficult it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textagent_gym.complexity import Complexity
from textagent_gym.domains.textworld.commands import admissible_commands
from textagent_gym.domains.textworld.generation.grounding import ground
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.planner import BUDGET, Planner, Solution
from textagent_gym.errors import PlanningBudgetError


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured in a game.

    Attributes:
        logic: facts that hold, and actions that can be done.
        solution: a shortest way to win; `None` where none was found within the planner's budget, or none exists.
        complexity: measured difficulty.
    """

    logic: GameLogic
    solution: Solution | None
    complexity: Complexity


def measure(game: Any, *, budget: int = BUDGET) -> Measured:
    """Measure a game.

    Args:
        game: a game of TextWorld, as `draw` returns it.
        budget: number of states that a search for its solution expands; see `planner`.
    """
    logic = ground(game)
    try:
        solution = Planner(logic, budget=budget).solve_initial()
    except PlanningBudgetError:
        solution = None
    state, admissible = logic.initial, []
    for action in solution.actions if solution else ():
        admissible.append(len(admissible_commands(logic, state)))
        state = logic.apply(state, action)
    complexity = Complexity(
        state_size=logic.entities,
        action_size=sum(admissible) / len(admissible) if admissible else None,
        solution_length=len(solution.actions) if solution else None,
        exact=solution is not None and solution.exact,
    )
    return Measured(logic, solution, complexity)
