"""The original ALFWorld behind the face of the native engine's `State`: what that one is checked against."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from textagent_gym.errors import MissingDependencyError


class ReferenceState:
    """A game as TextWorld and ALFWorld themselves play it. Slow, and not for threads.

    Args:
        data: the content of the `game.tw-pddl`.

    Raises:
        MissingDependencyError: TextWorld or ALFWorld is not installed.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        try:
            from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
            from textworld import EnvInfos
            from textworld.envs.pddl import PddlEnv
        except ImportError as error:
            raise MissingDependencyError("alfworld", "reference") from error
        self._env = AlfredDemangler(PddlEnv(EnvInfos(admissible_commands=True, won=True)))
        self._env.load(data)
        self._state = self._env.reset()
        self._introduction = str(self._state.feedback)

    def introduction(self) -> str:
        """What is said at the beginning."""
        return self._introduction

    def commands(self) -> tuple[str, ...]:
        """Everything that would be understood now, sorted."""
        return tuple(self._state["admissible_commands"])

    def step(self, command: str) -> str | None:
        """Do what a command says; returns what is said, or `None` if it is not admissible now."""
        admissible = command.strip() in self._state["admissible_commands"]
        self._state, _, _ = self._env.step(command)
        return str(self._state.feedback) if admissible else None

    @property
    def won(self) -> bool:
        """All goals hold now."""
        return bool(self._state["won"])


def upstream_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a `game.tw-pddl` for a generated game, with the domain and the grammar of the `alfworld` package.

    Args:
        content: content of the game: "pddl_problem", "task", "walkthrough", "solvable".

    Raises:
        MissingDependencyError: ALFWorld is not installed.
    """
    try:
        logic = files("alfworld") / "data"
    except ImportError as error:
        raise MissingDependencyError("alfworld", "reference") from error
    return {
        "pddl_domain": (logic / "alfred.pddl").read_text(encoding="utf-8"),
        "grammar": (logic / "alfred.twl2").read_text(encoding="utf-8").replace("UNKNOWN GOAL.", content["task"]),
        "pddl_problem": content["pddl_problem"],
        "solvable": content["solvable"],
        "walkthrough": content["walkthrough"],
    }
