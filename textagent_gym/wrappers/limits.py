"""Penalties and limits that work on any text environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.errors import InvalidOptionError


class InvalidActionPenalty(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Takes a penalty from the reward of each turn whose action was not valid.

    Args:
        env: an environment that tells `info["valid_action"]`.
        penalty: at least 0.0.

    Example:
        >>> env = InvalidActionPenalty(gymnasium.make("lights/Lights-v0"), 0.5)
        >>> _ = env.reset(seed=0)
        >>> env.step("sing")[1]
        -0.5
    """

    def __init__(self, env: gymnasium.Env[str, str], penalty: float = 0.1) -> None:
        RecordConstructorArgs.__init__(self, penalty=penalty)
        gymnasium.Wrapper.__init__(self, env)
        if not 0.0 <= penalty < float("inf"):
            raise InvalidOptionError(f"penalty must be a number from 0.0 up, got {penalty!r}")
        self._penalty = penalty

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not info.get("valid_action", True):
            reward = float(reward) - self._penalty
        return observation, float(reward), terminated, truncated, info


class ObservationLimit(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Cuts the middle out of observations that are too long, and says how much is missing.

    Args:
        env: a text environment.
        characters: of an observation at most, the notice not counted; `None` for no limit.
        tokens: of an observation at most, the notice not counted; `None` for no limit.
        tokenize: for `tokens`: splits a text into pieces that join to it again; words by default.

    Example:
        >>> env = ObservationLimit(gymnasium.make("lights/Lights-v0"), characters=20)
        >>> env.reset(options={"task_index": 0})[0]
        'Turn on al\\n[... 45 characters left out ...]\\nwhite: off'
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        characters: int | None = None,
        tokens: int | None = None,
        tokenize: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, characters=characters, tokens=tokens, tokenize=tokenize)
        gymnasium.Wrapper.__init__(self, env)
        for name, limit in (("characters", characters), ("tokens", tokens)):
            if limit is not None and limit < 2:
                raise InvalidOptionError(f"{name} must be at least 2, or None, got {limit!r}")
        self._characters = characters
        self._tokens = tokens
        self._tokenize = tokenize or _words

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._cut(observation), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._cut(observation), float(reward), terminated, truncated, info

    def _cut(self, observation: str) -> str:
        if self._tokens is not None:
            pieces = self._tokenize(observation)
            if len(pieces) > self._tokens:
                return _without_middle(pieces, self._tokens, "tokens")
        if self._characters is not None and len(observation) > self._characters:
            return _without_middle(observation, self._characters, "characters")
        return observation


def _words(text: str) -> list[str]:
    """Words with the spaces after them."""
    import re

    return re.findall(r"\S+\s*|\s+", text)


def _without_middle(pieces: Sequence[str], keep: int, unit: str) -> str:
    head, tail = (keep + 1) // 2, keep // 2
    notice = f"\n[... {len(pieces) - keep} {unit} left out ...]\n"
    return "".join(pieces[:head]) + notice + "".join(pieces[len(pieces) - tail :])
