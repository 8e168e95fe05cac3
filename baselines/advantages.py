"""Advantages as pure functions over arrays. Each says which equation of which paper it is.

Every method takes the rewards of the turns and gives an advantage a turn, which the sampled tokens of the turn share:

    rewards      (episodes, turns)   0 after an episode's last turn
    lengths      (episodes,)         number of its turns
    groups       (episodes,)         the same number for episodes that began in the same state
    advantages   (episodes, turns)   0 after an episode's last turn
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_EPSILON = 1e-4


class GroupTooSmallError(ValueError):
    """A method that compares episodes of a group was given a group of one."""


def grpo(rewards: Array, lengths: Counts, groups: Counts) -> Array:
    """A_i = (R_i - mean(R)) / (std(R) + 1e-4) within each group, with R_i the return; the same for every turn.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.2 (outcome supervision). The standard
    deviation is the sample's (divided by n - 1), as in TRL.

    Raises:
        GroupTooSmallError: a group has one episode only.
    """

    def advantages(returns: Array) -> Array:
        return (returns - returns.mean()) / (returns.std(ddof=1) + _EPSILON)

    return _of_episodes(rewards, lengths, groups, advantages, "GRPO")


def dr_grpo(rewards: Array, lengths: Counts, groups: Counts) -> Array:
    """A_i = R_i - mean(R) within each group, not divided by the deviation; the same for every turn.

    Source: Liu et al., 2025, "Understanding R1-Zero-Like Training" (arXiv 2503.20783), section 3.2. Errors as for
    `grpo`.
    """
    return _of_episodes(rewards, lengths, groups, lambda returns: returns - returns.mean(), "Dr. GRPO")


def rloo(rewards: Array, lengths: Counts, groups: Counts) -> Array:
    """A_i = R_i - mean of the other returns of the group; the same for every turn.

    Source: Ahmadian et al., 2024, "Back to Basics" (arXiv 2402.14740), equation 9 (leave-one-out baseline). Errors as
    for `grpo`.
    """

    def advantages(returns: Array) -> Array:
        return returns - (returns.sum() - returns) / (len(returns) - 1)

    return _of_episodes(rewards, lengths, groups, advantages, "RLOO")


def grpo_process(rewards: Array, lengths: Counts, groups: Counts, discount: float = 1.0) -> Array:
    """A_it = sum over k >= t of discount^(k - t) r~_ik, with r~ the turn rewards normalised over the group's turns.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.3 (process supervision), where
    `discount` is 1. Errors as for `grpo`.
    """
    result = np.zeros(rewards.shape, dtype=np.float64)
    played = np.arange(rewards.shape[1]) < lengths[:, None]
    for members in _members(groups, "GRPO"):
        of = played[members]
        values = rewards[members].astype(np.float64)
        normal = np.where(of, (values - values[of].mean()) / (values[of].std(ddof=1) + _EPSILON), 0.0)
        ahead = np.zeros(len(normal))
        for turn in reversed(range(normal.shape[1])):
            ahead = normal[:, turn] + discount * ahead
            result[members, turn] = np.where(of[:, turn], ahead, 0.0)
    return result


def _of_episodes(
    rewards: Array, lengths: Counts, groups: Counts, function: Callable[[Array], Array], method: str
) -> Array:
    """Each episode's advantage, from the returns of its group, on all of its turns."""
    returns = rewards.astype(np.float64).sum(1)
    advantages = np.zeros(len(returns))
    for members in _members(groups, method):
        advantages[members] = function(returns[members])
    return np.where(np.arange(rewards.shape[1]) < lengths[:, None], advantages[:, None], 0.0)


def _members(groups: Counts, method: str) -> Iterator[Counts]:
    """The episodes of each group."""
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) < 2:
            raise GroupTooSmallError(
                f"{method} compares the episodes of a group, and group {group} has one: use a group_size of 2 or more"
            )
        yield members


AdvantageFunction = Callable[[Array, Counts, Counts], Array]
ADVANTAGES: dict[str, AdvantageFunction] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "grpo_process": grpo_process,
}
"""By name, for configurations."""
