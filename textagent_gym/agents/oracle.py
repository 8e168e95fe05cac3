"""The ceiling: an agent that knows the shortest solution."""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.agents.base import text_env


class OracleAgent:
    """Follows the optimal plan from wherever it stands."""

    name = "oracle"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = text_env(env, self.name, "oracle")

    def reset(self, seed: int) -> None:
        """A new episode begins; nothing is drawn at random."""

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """The first action of the optimal plan, or an empty one where the goal is out of reach."""
        plan = self._env.oracle()
        return str(plan[0]) if plan else ""
