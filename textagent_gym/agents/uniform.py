"""Agents that draw their actions at random."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from textagent_gym.agents.base import text_env


class RandomAgent:
    """Draws each action from the action space: random text, the floor of every environment."""

    name = "random"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._space = env.action_space

    def reset(self, seed: int) -> None:
        """A new episode begins."""
        self._space.seed(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """A random string."""
        return self._space.sample()


class AdmissibleRandomAgent:
    """Draws each action uniformly from those that would do something now."""

    name = "admissible-random"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = text_env(env, self.name, "admissible_actions")
        self._random = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """A new episode begins."""
        self._random = np.random.default_rng(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """An admissible action, or an empty one where there is none."""
        actions = self._env.admissible_actions()
        return str(actions[self._random.integers(len(actions))]) if actions else ""
