"""The ceiling without clairvoyance: an agent that searches, and knows only what it has read.

ScienceWorld's is an exception: it follows a path that was recorded.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.agents.base import text_env
from textagent_gym.expert import Expert


class ExpertAgent:
    """Follows the expert that the world has."""

    name = "expert"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = text_env(env, self.name, "expert")
        self._expert: Expert | None = None
        self._last: str | None = None

    def reset(self, seed: int) -> None:
        """A new episode begins; nothing is drawn at random."""
        self._expert = self._env.expert()
        self._last = None

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """What the expert does; it reads the observation as no wrapper has changed it."""
        assert self._expert is not None, "call reset first"
        self._expert.observe(self._last, self._env.observation)
        self._last = self._expert.action()
        return self._last
