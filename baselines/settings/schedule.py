"""When a curriculum moves on: the level of an iteration, from the success rates of the iterations before it.

Levels are numbered from 0. What a level is (a turn budget, a set of tasks) is for `envs/curriculum.py` to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import AXES, split_settings

if TYPE_CHECKING:
    from baselines.settings.config import TrainerConfig


class Schedule(Protocol):
    """A rule that says when the level rises."""

    def level(self, successes: Sequence[float]) -> int:
        """The level of the iteration that follows those with these success rates (0 to 1, `nan` where not known)."""
        ...


@dataclass(frozen=True, slots=True)
class Stepwise:
    """The level rises every so many iterations (ScalingInter-RL: Xi et al., 2025, arXiv 2509.08755).

    With n levels and d iterations per level, iteration t = 0, 1, ... has the level min(floor(t / d), n - 1).

    Attributes:
        levels: number of levels, n.
        every: number of iterations per level, d.

    >>> [Stepwise(levels=3, every=2).level([0.0] * iteration) for iteration in range(8)]
    [0, 0, 1, 1, 2, 2, 2, 2]
    """

    levels: int
    every: int

    def level(self, successes: Sequence[float]) -> int:
        """See `Schedule`; only the number of the iterations counts."""
        return min(len(successes) // self.every, self.levels - 1)


@dataclass(frozen=True, slots=True)
class BySuccess:
    """The level rises when the mean success of the last iterations reaches a bound.

    A level that began at iteration b ends before iteration t if the mean of the last w success rates that are known,
    among s_b to s_(t-1), is at least p: the mean is over iterations of this level alone.

    Attributes:
        levels: number of levels.
        bound: success rate that is asked for, p.
        window: number of iterations in the mean, w.

    >>> rates = [0.9, 0.5, 0.7, 0.9, 0.9, 1.0]
    >>> [BySuccess(levels=3, bound=0.8, window=2).level(rates[:iteration]) for iteration in range(7)]
    [0, 0, 0, 0, 1, 1, 2]
    """

    levels: int
    bound: float
    window: int

    def level(self, successes: Sequence[float]) -> int:
        """See `Schedule`."""
        level, begin = 0, 0
        for iteration in range(1, len(successes) + 1):
            known = [rate for rate in successes[begin:iteration] if not math.isnan(rate)][-self.window :]
            is_enough = len(known) == self.window and math.fsum(known) / self.window >= self.bound
            if is_enough and level < self.levels - 1:
                level, begin = level + 1, iteration
        return level


def split_difficulty(words: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """The axes that tasks are ranked on, or the texts of the settings of each level: one of them is empty, or both are.

    Raises:
        InvalidOptionError: the words are neither axes nor settings.

    >>> split_difficulty(["solution_length", "state_size"])
    (('solution_length', 'state_size'), [])
    >>> split_difficulty(["rooms=2", "rooms=4,objects=6"])
    ((), [{'rooms': '2'}, {'rooms': '4', 'objects': '6'}])
    """
    if not isinstance(words, str):
        if all(word in AXES for word in words) and len(set(words)) == len(words):
            return tuple(words), []
        if all(isinstance(word, str) and "=" in word for word in words):
            # A comma before "name=" begins another setting; others belong to a value, such as [1,2].
            return (), [split_settings(re.split(r",(?=[A-Za-z_]\w*=)", word)) for word in words]
    raise InvalidOptionError(
        f"difficulty must be different axes ({', '.join(AXES)}) or settings per level, such as rooms=2 rooms=4; "
        f"got {words!r}"
    )


def horizon_schedule(config: TrainerConfig) -> Schedule:
    """The schedule of the turn budget.

    Raises:
        InvalidOptionError: a setting has a value that it cannot have.
    """
    for turns in config.horizon:
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
            raise InvalidOptionError(f"horizon must be whole numbers from 1, got {turns!r}")
    every, success = config.horizon_every, config.horizon_success
    return _schedule("horizon", len(config.horizon), every, success, config.success_window)


def difficulty_schedule(config: TrainerConfig) -> Schedule:
    """The schedule of the level of difficulty.

    Raises:
        InvalidOptionError: a setting has a value that it cannot have.
    """
    axes, rungs = split_difficulty(config.difficulty)
    levels = len(rungs) or (config.difficulty_levels if axes else 0)
    if levels == 1:
        raise InvalidOptionError(f"difficulty needs at least two levels, got {', '.join(config.difficulty)}")
    every, success = config.difficulty_every, config.difficulty_success
    return _schedule("difficulty", levels, every, success, config.success_window)


def _schedule(name: str, levels: int, every: int | None, success: float | None, window: int) -> Schedule:
    """The schedule that some settings ask for; a single level never changes.

    Args:
        name: name of the setting that lists the levels, for messages.
        levels: number of levels; 0 where there is no curriculum.
        every: number of iterations per level.
        success: success rate at which the level rises.
        window: number of iterations whose mean success is looked at.

    Raises:
        InvalidOptionError: not exactly one of `every` and `success` is set where there are several levels, one of them
            is set where there are not, or a value is out of range.
    """
    given = {f"{name}_every": every, f"{name}_success": success}
    named = [f"{key}={value}" for key, value in given.items() if value is not None]
    if levels < 2 and named:
        raise InvalidOptionError(f"{', '.join(named)} needs a {name} of at least two levels")
    if levels >= 2 and len(named) != 1:
        got = " and ".join(named) or "neither"
        raise InvalidOptionError(f"a {name} of {levels} levels needs {' or '.join(given)}, got {got}")
    if every is not None and not every >= 1:
        raise InvalidOptionError(f"{name}_every must be at least 1, got {every}")
    if success is None:
        return Stepwise(max(levels, 1), every or 1)
    if not 0 < success <= 1:
        raise InvalidOptionError(f"{name}_success must be above 0 and at most 1, got {success}")
    return BySuccess(levels, success, window)
