"""Advantages as pure functions over arrays. Each says which equation of which paper it is.

Every function takes `Rollouts` and returns `Credit`: an advantage per step, which the sampled tokens of the step share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from baselines.rollouts import Array, Counts, Rollouts

_EPSILON = 1e-4  # Added to a deviation before dividing by it, as in TRL: a group of equal returns has none.


class GroupTooSmallError(ValueError):
    """A method that compares episodes of a group was given a group of one."""


@dataclass(frozen=True, slots=True)
class Credit:
    """What each step is to be credited with.

    Attributes:
        advantages: shape (episodes, steps), 0 after an episode's last step.
        returns: shape (episodes, steps), target of the critic; `None` without a critic.
    """

    advantages: Array
    returns: Array | None = None


AdvantageFunction = Callable[[Rollouts], Credit]


def grpo(rollouts: Rollouts) -> Credit:
    """A_i = (R_i - mean(R)) / (std(R) + 1e-4) within each group, with R_i the return; the same for every step.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.2 (outcome supervision). The standard
    deviation is the sample's (divided by n - 1), as in TRL.

    Raises:
        GroupTooSmallError: a group has one episode only.

    Example:
        >>> rewards, one, same = np.array([[1.0], [0.0]]), np.array([1, 1]), np.array([0, 0])
        >>> grpo(Rollouts(rewards, lengths=one, groups=same, terminated=one > 0)).advantages.round(2).tolist()
        [[0.71], [-0.71]]
    """

    def advantages(returns: Array) -> Array:
        normal: Array = (returns - returns.mean()) / (returns.std(ddof=1) + _EPSILON)
        return normal

    return _per_episode(rollouts, advantages, "GRPO")


def dr_grpo(rollouts: Rollouts) -> Credit:
    """A_i = R_i - mean(R) within each group, not divided by the deviation; the same for every step.

    Source: Liu et al., 2025, "Understanding R1-Zero-Like Training" (arXiv 2503.20783), section 3.2. Errors as for
    `grpo`.
    """
    return _per_episode(rollouts, lambda returns: returns - returns.mean(), "Dr. GRPO")


def rloo(rollouts: Rollouts) -> Credit:
    """A_i = R_i - mean of the other returns of the group; the same for every step.

    Source: Ahmadian et al., 2024, "Back to Basics" (arXiv 2402.14740), equation 9 (leave-one-out baseline). Errors as
    for `grpo`.
    """

    def advantages(returns: Array) -> Array:
        centred: Array = returns - (returns.sum() - returns) / (len(returns) - 1)
        return centred

    return _per_episode(rollouts, advantages, "RLOO")


def grpo_process(rollouts: Rollouts, discount: float = 1.0) -> Credit:
    """A_it = sum over k >= t of discount^(k - t) r~_ik, with r~ the step rewards normalised over the group's steps.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.3 (process supervision), where
    `discount` is 1. Errors as for `grpo`.
    """
    result = np.zeros(rollouts.rewards.shape, dtype=np.float64)
    for members in _members(rollouts.groups, "GRPO"):
        played = rollouts.played[members]
        rewards = rollouts.rewards[members].astype(np.float64)
        deviation = rewards[played].std(ddof=1) + _EPSILON
        normal = np.where(played, (rewards - rewards[played].mean()) / deviation, 0.0)
        ahead = np.zeros(len(normal))
        for step in reversed(range(normal.shape[1])):
            ahead = normal[:, step] + discount * ahead
            result[members, step] = np.where(played[:, step], ahead, 0.0)
    return Credit(result)


def _per_episode(rollouts: Rollouts, function: Callable[[Array], Array], method: str) -> Credit:
    """Each episode's advantage, from the returns of its group, on all of its steps."""
    returns = rollouts.returns
    advantages = np.zeros(len(returns))
    for members in _members(rollouts.groups, method):
        advantages[members] = function(returns[members])
    return Credit(np.where(rollouts.played, advantages[:, None], 0.0))


def _members(groups: Counts, method: str) -> Iterator[Counts]:
    """The episodes of each group."""
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) < 2:
            raise GroupTooSmallError(
                f"{method} compares the episodes of a group, and group {group} has one: use a group_size of 2 or more"
            )
        yield members


ADVANTAGES: dict[str, AdvantageFunction] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "grpo_process": grpo_process,
}
"""By name, for configurations."""
