"""A person at a terminal."""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.terminal import visible


class HumanAgent:
    """Prints the observation and reads the action from standard input. The end of the input ends the run."""

    name = "human"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = env

    def reset(self, seed: int) -> None:
        """A new episode begins."""
        print()

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """What the person types.

        Raises:
            KeyboardInterrupt: the input has ended.
        """
        print(f"\n{visible(observation)}\n")
        try:
            return input("> ")
        except EOFError as error:
            raise KeyboardInterrupt from error
