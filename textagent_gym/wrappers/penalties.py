"""A penalty for invalid actions, of any environment that tells which ones they are."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.errors import InvalidOptionError
from textagent_gym.wrappers.text_wrapper import TextWrapper


class InvalidActionPenalty(TextWrapper, RecordConstructorArgs):
    """Takes a penalty from the reward of each turn whose action was not valid.

    Args:
        env: any environment that tells `info["valid_action"]`; where it does not, nothing is taken.
        penalty: amount taken from the reward, at least 0.0.

    Raises:
        InvalidOptionError: the penalty is negative or not finite.

    Example:
        >>> env = InvalidActionPenalty(gymnasium.make("lights/Lights-v0"), 0.5)
        >>> _ = env.reset(seed=0)
        >>> env.step("sing")[1]
        -0.5
    """

    def __init__(self, env: gymnasium.Env[Any, str], penalty: float = 0.1) -> None:
        RecordConstructorArgs.__init__(self, penalty=penalty)
        gymnasium.Wrapper.__init__(self, env)
        if not 0.0 <= penalty < float("inf"):
            raise InvalidOptionError(f"penalty must be a number from 0.0 up, got {penalty!r}")
        self._penalty = penalty

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not info.get("valid_action", True):
            reward = float(reward) - self._penalty
        return observation, float(reward), terminated, truncated, info
