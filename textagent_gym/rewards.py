"""Reward density and shaping, as pure functions of milestones or a score, and of the distance to the goal.

A domain counts milestones, or has a score; what of them pays is decided here, so that every world means the same by a
density.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from textagent_gym.errors import InvalidOptionError

NAMED_DENSITIES = {"sparse": 0.0, "dense": 1.0}


def parse_density(density: float | str) -> float:
    """A density as a number between 0 (only success pays) and 1 (every milestone pays).

    >>> parse_density("sparse"), parse_density("dense"), parse_density(0.5)
    (0.0, 1.0, 0.5)
    """
    value = NAMED_DENSITIES.get(density) if isinstance(density, str) else density
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidOptionError(f'reward_density must be "sparse", "dense" or a number from 0 to 1, got {density!r}')
    return float(value)


@lru_cache(maxsize=1024)
def paying_milestones(milestones: int, density: float) -> tuple[int, ...]:
    """Which milestones pay, as numbers from 1 to `milestones`; the last one, success, always does.

    `round(density * (milestones - 1))` of the intermediate ones pay, evenly spaced. Nothing is drawn at random.

    >>> paying_milestones(5, 0.0), paying_milestones(5, 0.5), paying_milestones(5, 1.0)
    ((5,), (2, 4, 5), (1, 2, 3, 4, 5))
    """
    intermediate = milestones - 1
    paying = min(intermediate, int(density * intermediate + 0.5))
    return (*(((2 * i + 1) * intermediate) // (2 * paying) + 1 for i in range(paying)), milestones)


@dataclass(frozen=True, slots=True)
class MilestoneSchedule:
    """Share of the return earned by the first `reached` milestones of a task, from 0.0 to 1.0."""

    paying: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, milestones: int, density: float) -> MilestoneSchedule:
        """The schedule of a task with that many milestones, at a density from 0 to 1."""
        return cls(paying_milestones(milestones, density))

    def earned(self, reached: float, *, success: bool) -> float:
        """What an episode has earned. Without success it stays below 1.0, whatever else was reached.

        >>> MilestoneSchedule.of(4, 1.0).earned(3, success=False)
        0.75
        """
        if success:
            return 1.0
        # The last milestone is success itself: counting it without success would pay for an unsolved task.
        paying = self.paying
        return bisect_right(paying, reached, hi=len(paying) - 1) / len(paying)


_MOST_WITHOUT_SUCCESS = 0.999  # What a score can earn of 1.0; a solved episode returns more, whatever the score was.


@dataclass(frozen=True, slots=True)
class ScoreSchedule:
    """Share of the return earned by a score from 0.0 to 1.0: the density times the score, and 1.0 for success."""

    density: float

    def earned(self, score: float, *, success: bool) -> float:
        """What an episode has earned. Without success it stays below 1.0, whatever the score says.

        >>> ScoreSchedule(0.5).earned(0.8, success=False)
        0.4
        """
        return 1.0 if success else self.density * min(score, _MOST_WITHOUT_SUCCESS)


RewardSchedule = MilestoneSchedule | ScoreSchedule
"""What an episode has earned by the milestones it has reached, or by its score: `schedule.earned(...)`."""


def potential(distance: int | None, initial_distance: int) -> float:
    """Potential of a state from its optimal distance to the goal: 0.0 at the start, nearing 1.0 at the goal.

    `distance=None` says that the goal cannot be reached any more; such states share the potential -1.0.
    Source: Ng, Harada and Russell, 1999, "Policy invariance under reward transformations", section 4
    (a potential built from the distance to the goal).
    """
    return -1.0 if distance is None else 1.0 - distance / initial_distance


def shaping_reward(before: float, after: float, *, discount: float, terminated: bool) -> float:
    """F(s, a, s') = discount * potential(s') - potential(s), with potential 0 once the world has ended.

    Source: Ng, Harada and Russell, 1999, equation 2. With `discount=1` the shaping of an episode that ends adds up to
    minus the potential of its first state, which is 0: a solved episode still returns 1.0.
    """
    return (0.0 if terminated else discount * after) - before
