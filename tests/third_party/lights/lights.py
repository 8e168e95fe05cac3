"""A whole world in one file: turn on all the lights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Unpack

import gymnasium

from textagent_gym import Complexity, Outcome, Task, TextEnv, TextEnvKwargs
from textagent_gym.knobs import Options, OptionsClass, check_names, knob
from textagent_gym.sources import GeneratedTasks

COLOURS = ("red", "green", "blue", "white", "yellow", "purple")
FUSE = "black"  # Its switch loses the game.

Lit = frozenset[str]
"""Lights that are on: all that there is to know about this world."""


@dataclass(frozen=True, kw_only=True)
class LightsOptions(Options):
    """What can be asked of this world."""

    switches: int = knob(4, "number of lights", low=1, high=len(COLOURS), short="s", always=True)


class LightsTasks(GeneratedTasks[LightsOptions, Lit]):
    """Endless tasks, each drawn from the number of lights, its split and its index: equal everywhere, for ever."""

    prefix = "Lights"
    version = 1

    def _make(self, split: str, index: int) -> Lit:
        random = Random(f"{self.colours}/{split}/{index}")
        return frozenset(random.sample(self.colours, random.randrange(len(self.colours))))

    def _measure(self, world: Lit) -> tuple[Complexity, int, str]:
        off = len(self.colours) - len(world)
        # Known without a search: every light that is off must be pressed once, and every switch always works.
        measured = Complexity(
            state_size=len(self.colours), action_size=len(self.colours) + 1.0, solution_length=off, exact=True
        )
        return measured, off, ""

    @property
    def colours(self) -> tuple[str, ...]:
        return COLOURS[: self.spec.switches]


class LightsEnv(TextEnv[Task]):
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
    | knob | values | axis |
    | --- | --- | --- |
    | `switches` | 1 to 6 | more lights; `state_size` is their number |

    The length of the solution is drawn with the task.

    ## Registered ids
    `lights/Lights-v0`: 4 switches.
    """

    def __init__(self, switches: int = 4, **kwargs: Unpack[TextEnvKwargs]) -> None:
        check_names("Lights", kwargs, LightsOptions)
        self._source = LightsTasks(LightsOptions(switches=switches))
        super().__init__(self._source, **kwargs)
        self._colours = self._source.colours
        self._start: Lit = frozenset()
        self._on: Lit = frozenset()

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        return (LightsOptions,)

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        colours = ", ".join(self._colours)
        return f"Each turn, write `press` and a colour: {colours} switch a light, and `press {FUSE}` blows the fuse."

    def _begin(self, task: Task) -> str:
        self._on = self._start = self._source.world(task)
        return f"Turn on all {len(self._colours)} lights.\n{self._describe()}"

    def _act(self, action: str) -> Outcome:
        verb, _, colour = action.strip().partition(" ")
        lit = len(self._on) - len(self._start)
        if verb != "press" or colour not in (*self._colours, FUSE):
            return Outcome("Nothing happens.", lit, valid=False)
        if colour == FUSE:
            return Outcome("The fuse blows. It stays dark.", lit, failure=True)
        self._on = self._on ^ {colour}
        lit = len(self._on) - len(self._start)
        return Outcome(self._describe(), lit, success=len(self._on) == len(self._colours))

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted(f"press {colour}" for colour in (*self._colours, FUSE)))

    def _oracle(self) -> tuple[str, ...]:
        return tuple(f"press {colour}" for colour in self._colours if colour not in self._on)

    def _snapshot(self) -> Lit:
        return self._on

    def _restore(self, world: Any) -> None:
        self._on = world

    def _state_key(self) -> tuple[str, ...]:
        return tuple(sorted(self._on))

    def _describe(self) -> str:
        return ", ".join(f"{colour}: {'on' if colour in self._on else 'off'}" for colour in self._colours)


def register() -> None:
    """Called through the entry point as soon as Gymnasium is imported."""
    gymnasium.register("lights/Lights-v0", entry_point="lights:LightsEnv")
