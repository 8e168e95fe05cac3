"""A whole world in one file: turn on all lights."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Unpack

import gymnasium

from textagent_gym import Complexity, Outcome, Task, TaskSource, TextEnv, TextEnvKwargs
from textagent_gym.errors import UnknownTaskError

COLOURS = ("red", "green", "blue", "white", "yellow", "purple")


@dataclass(frozen=True, kw_only=True)
class LightsTask(Task):
    """Which lights are on at the beginning, and which switch would blow the fuse."""

    on: frozenset[str]
    fuse: str


class LightsTasks(TaskSource[LightsTask]):
    """Endless tasks, each drawn from its split and index."""

    def __init__(self, switches: int) -> None:
        self.colours = COLOURS[:switches]

    def size(self, split: str) -> int | None:
        self.check_split(split)
        return None

    def task(self, split: str, index: int) -> LightsTask:
        if index < 0:
            raise UnknownTaskError(f"task_index={index} does not exist: it goes from 0")
        random = Random(f"{self.colours}/{split}/{index}")
        on = frozenset(random.sample(self.colours, random.randrange(len(self.colours))))
        off = len(self.colours) - len(on)
        return LightsTask(
            id=f"Lights/{len(self.colours)}/{split}/{index}",
            split=split,
            index=index,
            complexity=Complexity(
                state_size=len(self.colours), action_size=len(self.colours) + 1.0, solution_length=off, exact=True
            ),
            milestones=off,
            on=on,
            fuse="black",
        )

    def find(self, task_id: str) -> LightsTask:
        for split in self.splits:
            prefix = f"Lights/{len(self.colours)}/{split}/"
            if task_id.startswith(prefix) and task_id.removeprefix(prefix).isdigit():
                return self.task(split, int(task_id.removeprefix(prefix)))
        raise UnknownTaskError(f"no such task: {task_id}")


class LightsEnv(TextEnv[LightsTask]):
    """# Lights

    ## Description
    A room with coloured lights. Turn all of them on; pressing the black switch blows the fuse and loses.

    ## Actions
    `press COLOUR` toggles a light.

    ## Observations
    The goal and the state of the lights.

    ## Rewards
    Each light that is on for the first time in number is a milestone.

    ## Difficulty
    `switches`, 1 to 6: number of lights.
    """

    def __init__(self, switches: int = 4, **kwargs: Unpack[TextEnvKwargs]) -> None:
        super().__init__(LightsTasks(switches), **kwargs)
        self._on: frozenset[str] = frozenset()

    def _begin(self, task: LightsTask) -> str:
        self._on = task.on
        return f"Turn on all {len(self.tasks.colours)} lights.\n{self._describe()}"

    def _act(self, action: str) -> Outcome:
        verb, _, colour = action.strip().partition(" ")
        lit = len(self._on) - len(self.task.on)
        if verb != "press" or colour not in (*self.tasks.colours, self.task.fuse):
            return Outcome("Nothing happens.", lit, valid=False)
        if colour == self.task.fuse:
            return Outcome("The fuse blows. It stays dark.", lit, failure=True)
        self._on = self._on ^ {colour}
        done = len(self._on) == len(self.tasks.colours)
        return Outcome(self._describe(), len(self._on) - len(self.task.on), success=done)

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted(f"press {colour}" for colour in (*self.tasks.colours, self.task.fuse)))

    def _oracle(self) -> tuple[str, ...]:
        return tuple(f"press {colour}" for colour in self.tasks.colours if colour not in self._on)

    def _snapshot(self) -> frozenset[str]:
        return self._on

    def _restore(self, world: Any) -> None:
        self._on = world

    def _describe(self) -> str:
        return ", ".join(f"{colour}: {'on' if colour in self._on else 'off'}" for colour in self.tasks.colours)


def register() -> None:
    """Called through the entry point when the ids of the suite are registered."""
    gymnasium.register("lights/Lights-v0", entry_point="lights:LightsEnv")
