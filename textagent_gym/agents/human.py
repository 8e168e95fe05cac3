"""A person at a terminal."""

from __future__ import annotations

from typing import Any

import gymnasium

from textagent_gym.terminal import visible


class HumanAgent:
    """Prints the instructions and the observation, and reads the action from standard input. The end of the input ends
    the run."""

    name = "human"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = env
        self._begins = True

    def reset(self, seed: int) -> None:
        """A new episode begins."""
        self._begins = True
        print()

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """What the person types.

        Raises:
            KeyboardInterrupt: the input has ended.
        """
        instructions = str(info.get("instructions", ""))
        if self._begins:
            if instructions not in observation:
                print(f"{visible(instructions)}\n")
            print("Each line that you type is an action, and takes a turn. Ctrl-C stops.")
        self._begins = False
        print(f"\n{visible(observation)}\n")
        try:
            return input("> ")
        except EOFError as error:
            raise KeyboardInterrupt from error
