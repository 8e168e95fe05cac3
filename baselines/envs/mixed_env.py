"""Several environments in one place of a pool. It loads no torch, which workers do without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from textagent_gym import UnicodeText


class MixedEnv(gymnasium.Env[str, str]):
    """Several text environments as one: `reset(options={"component": n})` says which of them plays the episode.

    Each is made when it is first asked for and kept, so that a pool stays warm whatever is played.

    Args:
        makers: functions that make one environment each.

    >>> from textagent_gym.vector import env_maker
    >>> env = MixedEnv([env_maker("lights/Lights-v0", switches=1), env_maker("lights/Lights-v0", switches=2)])
    >>> [env.reset(options={"component": n, "task_index": 0})[0].splitlines()[0] for n in (0, 1)]
    ['Turn on all 1 lights.', 'Turn on all 2 lights.']
    """

    def __init__(self, makers: Sequence[Callable[[], gymnasium.Env[str, str]]]) -> None:
        self._makers = tuple(makers)
        self._envs: dict[int, gymnasium.Env[str, str]] = {}
        self._played = -1
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode of the environment that `options["component"]` names; it gets the other options."""
        remaining = dict(options or {})
        self._played = remaining.pop("component")
        if self._played not in self._envs:
            self._envs[self._played] = self._makers[self._played]()
        return self._envs[self._played].reset(seed=seed, options=remaining or None)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act in the environment of the episode."""
        observation, reward, terminated, truncated, info = self._envs[self._played].step(action)
        return observation, float(reward), terminated, truncated, info

    def close(self) -> None:
        """Close every environment that has been made."""
        for env in self._envs.values():
            env.close()
        self._envs = {}
