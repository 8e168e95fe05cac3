"""An environment that tells what an expert would do. It loads no torch, which workers do without."""

from __future__ import annotations

from typing import Any

import gymnasium

from baselines.settings.config import LabelAgent
from textagent_gym import TextEnv
from textagent_gym.agents import make_agent
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.expert import Expert

LABEL = "label"
"""Key of `info` that holds the label of the state that the observation shows."""


class Labelled(gymnasium.Wrapper[str, str, str, str]):
    """Puts what an expert would do now into `info["label"]`; `None` where it has no answer, or after the end.

    Args:
        env: any environment whose base is a `TextEnv`; wrappers that rewrite actions must not stand between.
        agent: "oracle" (the optimal plan from the current state) or "expert" (one that has read what was said so far).

    Attributes:
        calls: number of states in which the expert has been asked so far.

    Raises:
        InvalidOptionError: the world has no such expert.
    """

    def __init__(self, env: gymnasium.Env[str, str], agent: LabelAgent) -> None:
        super().__init__(env)
        make_agent(agent, env)  # Which refuses a world that has no such agent.
        assert isinstance(env.unwrapped, TextEnv)
        self._base: TextEnv[Any] = env.unwrapped
        self._agent = agent
        self.calls = 0
        self._expert: Expert | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._expert = self._base.expert() if self._agent == "expert" else None
        return observation, {**info, LABEL: self._label(None)}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        label = None if terminated or truncated else self._label(action)
        return observation, float(reward), terminated, truncated, {**info, LABEL: label}

    def _label(self, action: str | None) -> str | None:
        """What the expert would do after an action, or at the beginning (`None`)."""
        self.calls += 1
        if self._expert is not None:
            self._expert.observe(action, self._base.observation)
            return self._expert.action()
        try:
            plan = self._base.oracle()
        except PlanningBudgetError:
            return None
        return plan[0] if plan else None
