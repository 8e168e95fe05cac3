"""The ceiling: an agent that knows the shortest solution."""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.agents.base import text_env
from textagent_gym.errors import PlanningBudgetError


class OracleAgent:
    """Follows the optimal plan from wherever it stands.

    Attributes:
        stop_reason: "plan", once no plan was found before the planner's budget was spent.
    """

    name = "oracle"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = text_env(env, self.name, "oracle")

    def reset(self, seed: int) -> None:
        """A new episode begins; nothing is drawn at random."""
        self.stop_reason = ""

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The first action of the optimal plan; an empty one where the goal is out of reach, `None` without a plan."""
        try:
            plan = self._env.oracle()
        except PlanningBudgetError:
            self.stop_reason = "plan"
            return None
        return str(plan[0]) if plan else ""
