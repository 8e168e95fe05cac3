"""A whole world in one file: turn on all the lights."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Unpack

import gymnasium

from textagent_gym import Complexity, Outcome, Task, TaskSource, TextEnv, TextEnvKwargs
from textagent_gym.errors import InvalidOptionError, UnknownTaskError

COLOURS = ("red", "green", "blue", "white", "yellow", "purple")
FUSE = "black"  # Its switch loses the game.


@dataclass(frozen=True, kw_only=True)
class LightsTask(Task):
    """Which lights are on at the beginning."""

    on: frozenset[str]


class LightsTasks(TaskSource[LightsTask]):
    """Endless tasks, each drawn from the number of lights, its split and its index: equal everywhere, for ever."""

    def __init__(self, switches: int) -> None:
        if not 1 <= switches <= len(COLOURS):
            raise InvalidOptionError(f"switches must be from 1 to {len(COLOURS)}, got {switches!r}")
        self.colours = COLOURS[:switches]

    def size(self, split: str) -> int | None:
        self.check_split(split)
        return None

    def task(self, split: str, index: int) -> LightsTask:
        if index < 0:
            raise UnknownTaskError(f"task_index={index} does not exist: it starts at 0")
        random = Random(f"{self.colours}/{split}/{index}")
        on = frozenset(random.sample(self.colours, random.randrange(len(self.colours))))
        off = len(self.colours) - len(on)
        return LightsTask(
            id=f"Lights/{len(self.colours)}/{split}/{index}",
            split=split,
            index=index,
            # Known without a search: every light that is off must be pressed once, and every switch always works.
            complexity=Complexity(
                state_size=len(self.colours), action_size=len(self.colours) + 1.0, solution_length=off, exact=True
            ),
            milestones=off,
            on=on,
        )

    def find(self, task_id: str) -> LightsTask:
        for split in self.splits:
            index = task_id.removeprefix(f"Lights/{len(self.colours)}/{split}/")
            if index.isdecimal() and self.task(split, int(index)).id == task_id:
                return self.task(split, int(index))
        raise UnknownTaskError(f"{task_id!r} is no task of Lights with {len(self.colours)} switches")


class LightsEnv(TextEnv[LightsTask]):
    """# Lights

    ## Description
    A room with coloured lights, some of them on. Turn on all of them; the black switch blows the fuse and loses.

    ## Actions
    | command | effect |
    | --- | --- |
    | `press COLOUR` | turns the light of this colour on, or off |
    | `press black` | blows the fuse: the episode is lost |

    ## Observations
    The goal at reset, and the state of every light.

        Turn on all 4 lights.
        red: off, green: off, blue: off, white: on

    ## Rewards
    The k-th milestone is reached when k more lights are on than at the start. `reward_density` says which of them pay.

    ## Difficulty
    | axis | knob | range |
    | --- | --- | --- |
    | `state_size`, `action_size` | `switches` | 1 to 6 |
    | `solution_length` | drawn with the task | 1 to `switches` |

    ## Registered ids
    `lights/Lights-v0`: 4 switches.
    """

    def __init__(self, switches: int = 4, **kwargs: Unpack[TextEnvKwargs]) -> None:
        tasks = LightsTasks(switches)
        super().__init__(tasks, **kwargs)
        self._colours = tasks.colours
        self._on: frozenset[str] = frozenset()

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        colours = ", ".join(self._colours)
        return f"Each turn, write `press` and a colour: {colours} switch a light, and `press {FUSE}` blows the fuse."

    def _begin(self, task: LightsTask) -> str:
        self._on = task.on
        return f"Turn on all {len(self._colours)} lights.\n{self._describe()}"

    def _act(self, action: str) -> Outcome:
        verb, _, colour = action.strip().partition(" ")
        lit = len(self._on) - len(self.task.on)
        if verb != "press" or colour not in (*self._colours, FUSE):
            return Outcome("Nothing happens.", lit, valid=False)
        if colour == FUSE:
            return Outcome("The fuse blows. It stays dark.", lit, failure=True)
        self._on = self._on ^ {colour}
        lit = len(self._on) - len(self.task.on)
        return Outcome(self._describe(), lit, success=len(self._on) == len(self._colours))

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted(f"press {colour}" for colour in (*self._colours, FUSE)))

    def _oracle(self) -> tuple[str, ...]:
        return tuple(f"press {colour}" for colour in self._colours if colour not in self._on)

    def _snapshot(self) -> frozenset[str]:
        return self._on

    def _restore(self, world: Any) -> None:
        self._on = world

    def _describe(self) -> str:
        return ", ".join(f"{colour}: {'on' if colour in self._on else 'off'}" for colour in self._colours)


def register() -> None:
    """Called through the entry point as soon as Gymnasium is imported."""
    gymnasium.register("lights/Lights-v0", entry_point="lights:LightsEnv")
