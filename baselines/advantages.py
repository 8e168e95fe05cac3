"""Advantages as pure functions over arrays. Each says which equation of which paper it is.

Episode-level methods take one return an episode and the group that it belongs to (episodes of a group began in the same
state), and give one advantage an episode, which every sampled token of the episode shares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Groups = NDArray[np.int64]

_EPSILON = 1e-4


class GroupTooSmallError(ValueError):
    """A method that compares episodes of a group was given a group of one."""


def grpo(returns: Array, groups: Groups) -> Array:
    """A_i = (R_i - mean(R)) / (std(R) + 1e-4) within each group.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.2. The standard deviation is the sample's
    (divided by n - 1), as in TRL.

    Args:
        returns: shape (episodes,).
        groups: shape (episodes,), the same number for episodes of the same group.

    Raises:
        GroupTooSmallError: a group has one episode only.
    """

    def advantages(of: Array) -> Array:
        return (of - of.mean()) / (of.std(ddof=1) + _EPSILON)

    return _within_groups(returns, groups, advantages, "GRPO")


def dr_grpo(returns: Array, groups: Groups) -> Array:
    """A_i = R_i - mean(R) within each group, not divided by the deviation.

    Source: Liu et al., 2025, "Understanding R1-Zero-Like Training" (arXiv 2503.20783), section 3.2. Arguments and errors
    as for `grpo`.
    """
    return _within_groups(returns, groups, lambda of: of - of.mean(), "Dr. GRPO")


def rloo(returns: Array, groups: Groups) -> Array:
    """A_i = R_i - mean of the other returns of the group.

    Source: Ahmadian et al., 2024, "Back to Basics" (arXiv 2402.14740), equation 9 (leave-one-out baseline). Arguments
    and errors as for `grpo`.
    """

    def advantages(of: Array) -> Array:
        return of - (of.sum() - of) / (len(of) - 1)

    return _within_groups(returns, groups, advantages, "RLOO")


def _within_groups(returns: Array, groups: Groups, function: Callable[[Array], Array], method: str) -> Array:
    result = np.zeros_like(returns, dtype=np.float64)
    for group in np.unique(groups):
        members = groups == group
        if members.sum() < 2:
            raise GroupTooSmallError(
                f"{method} compares the episodes of a group, and group {group} has one: ask for a group_size of 2 or more"
            )
        result[members] = function(returns[members].astype(np.float64))
    return result


ADVANTAGES: dict[str, Callable[[Array, Groups], Array]] = {"grpo": grpo, "dr_grpo": dr_grpo, "rloo": rloo}
"""By name, for configurations."""
