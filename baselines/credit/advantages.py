"""Advantages as pure functions over arrays. Each says which equation of which paper it is.

Every function takes `Rollouts` and returns `Credit`: an advantage per step, which the sampled tokens of the step share.
With `credit="episode"` all steps of an episode have one advantage; with `credit="turn"` a step has that of its
return-to-go, so that what was earned before a turn is not credited to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from baselines.credit.rollouts import Array, Counts, Rollouts

_EPSILON = 1e-4  # Added to a deviation before dividing by it, as in TRL: a group of equal returns has none.
_LEAST_VARIANCE = 1e-8  # Added to the variance of a batch before dividing by its root, as in OpenRLHF and verl.

EpisodeOrTurn = Literal["episode", "turn"]
"""What a group method compares: the returns of episodes, or the returns-to-go of turns."""


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


def grpo(rollouts: Rollouts, *, credit: EpisodeOrTurn = "episode", scale: bool = True, discount: float = 1.0) -> Credit:
    """A = (x - mean(x)) / (std(x) + 1e-4) within each group; x is the return, or the return-to-go of the turn.

        credit="episode"   x_i  = R_i = r_i1 + ... + r_iT              the same advantage for every step
        credit="turn"      x_it = sum over k >= t of discount^(k - t) r_ik

    A turn is compared with the same turn of the group's other episodes; those that have ended earn nothing more, so
    their return-to-go is 0.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.2 (outcome supervision). The standard
    deviation is the sample's (divided by n - 1), as in TRL. Without `scale` it is not divided by: Liu et al., 2025,
    "Understanding R1-Zero-Like Training" (arXiv 2503.20783), section 3.2 (Dr. GRPO).

    Args:
        rollouts: the episodes; their steps are turns.
        credit: what is compared.
        scale: whether the deviation is divided by.
        discount: discount of later rewards per turn, with `credit="turn"`.

    Raises:
        GroupTooSmallError: a group has one episode only.

    Example:
        >>> rewards, one, same = np.array([[1.0], [0.0]]), np.array([1, 1]), np.array([0, 0])
        >>> grpo(Rollouts(rewards, lengths=one, groups=same, terminated=one > 0)).advantages.round(2).tolist()
        [[0.71], [-0.71]]
    """

    against_group = partial(_against_mean, scale=scale)
    return _within_groups(rollouts, _compared(rollouts, credit, discount), against_group, "GRPO")


def grpo_process(rollouts: Rollouts, *, scale: bool = True, discount: float = 1.0) -> Credit:
    """A_it = sum over k >= t of discount^(k - t) r~_ik, with r~ the step rewards normalised over the group's steps.

    Source: Shao et al., 2024, "DeepSeekMath" (arXiv 2402.03300), section 4.1.3 (process supervision), where
    `discount` is 1. Arguments and errors as for `grpo`.
    """
    normal = np.zeros(rollouts.rewards.shape)
    for members in _members(rollouts.groups, "GRPO"):
        played, rewards = rollouts.played[members], rollouts.rewards[members].astype(np.float64)
        deviation = rewards[played].std(ddof=1) + _EPSILON if scale else 1.0
        normal[members] = np.where(played, (rewards - rewards[played].mean()) / deviation, 0.0)
    return Credit(_sum_ahead(normal, np.where(rollouts.played, discount, 0.0)))


def gigpo(rollouts: Rollouts, *, step_weight: float = 1.0, scale: bool = True, discount: float = 0.95) -> Credit:
    """A_it = E_i + w S_it: the advantage of the episode in its group, and that of the step among those of its state.

        E_i  = (R_i - mean(R)) / F(R)         R: returns of the group's episodes
        S_it = (G_it - mean(G)) / F(G)        G: returns-to-go of the group's steps taken in the same state
        G_it = sum over k >= t of discount^(k - t) r_ik

    F is the standard deviation + 1e-4 as in `grpo`, or 1 without `scale`. Where nobody else acted, S is 0. An episode
    that comes back to a state is compared with itself too.

    Source: Feng et al., 2025, "Group-in-Group Policy Optimization for LLM Agent Training" (arXiv 2505.10978),
    sections 4.1 to 4.3.

    Args:
        rollouts: the episodes, with `states`; their steps are turns.
        step_weight: w.
        scale: whether the deviations are divided by.
        discount: discount of later rewards per turn.

    Raises:
        GroupTooSmallError: a group has one episode only.
    """
    assert rollouts.states is not None
    ahead = _compared(rollouts, "turn", discount)
    step_advantages = np.zeros(ahead.shape)
    for members in _members(rollouts.groups, "GiGPO"):
        rows, steps = np.nonzero(rollouts.played[members])
        rows = members[rows]
        numbers, places = np.unique(rollouts.states[rows, steps], return_inverse=True)
        for number in range(len(numbers)):
            here = rows[places == number], steps[places == number]
            step_advantages[here] = _against_mean(ahead[here], scale)
    return Credit(grpo(rollouts, scale=scale).advantages + step_weight * step_advantages)


def rloo(rollouts: Rollouts, *, credit: EpisodeOrTurn = "episode", discount: float = 1.0) -> Credit:
    """A = x - mean of x over the group's other episodes; x is the return, or the return-to-go of the turn.

    Source: Ahmadian et al., 2024, "Back to Basics" (arXiv 2402.14740), equation 9 (leave-one-out baseline). Arguments
    and errors as for `grpo`.
    """

    def against_others(x: Array) -> Array:
        others: Array = (x.sum(0) - x) / (len(x) - 1)
        return x - others

    return _within_groups(rollouts, _compared(rollouts, credit, discount), against_others, "RLOO")


def reinforce_pp(
    rollouts: Rollouts,
    *,
    credit: EpisodeOrTurn = "turn",
    baseline: bool = False,
    discount: float = 1.0,
    kl: float = 0.0,
) -> Credit:
    """A = (G - mean(G)) / sqrt(var(G) + 1e-8) over all steps of the batch, with G the return-to-go of a step.

        G_it = sum over k >= t of discount^(turns between) (r_ik - kl d_ik)        d = log p - log p_first

    With `credit="episode"` the whole return of an episode stands at its last step, as where an answer has one reward.
    With `baseline` the mean of the group is subtracted first: of its returns, or with `credit="turn"` of its
    returns-to-go at the same turn (both without d; an episode that has ended earns nothing more).

    Source: Hu, 2025, "REINFORCE++" (arXiv 2501.03262): divergence per token in the reward, normalisation over the
    batch, groups of one; and its variant REINFORCE++-baseline. The variance is the population's, as in OpenRLHF.

    Args:
        rollouts: the episodes, with `kl` if it is to count; each step is a token, or a turn.
        credit: whether rewards stand where they were earned, or at the end.
        baseline: whether the group's mean is subtracted.
        discount: discount of later rewards per turn.
        kl: weight of the divergence from the first policy.

    Raises:
        GroupTooSmallError: a group has one episode only, and `baseline` compares them.
    """
    played = rollouts.played
    discounts = np.where(rollouts.ends_turn, discount, 1.0) * played
    rewards = rollouts.rewards.astype(np.float64)
    if credit == "episode":
        returns = rollouts.returns - _group_mean(rollouts, rollouts.returns) if baseline else rollouts.returns
        rewards = np.zeros(rewards.shape)
        rewards[np.arange(len(rewards)), rollouts.lengths - 1] = returns
    ahead = _sum_ahead(rewards, discounts)
    if baseline and credit == "turn":
        ahead -= _mean_of_turn(rollouts, ahead)
    if kl:
        assert rollouts.kl is not None
        ahead -= kl * _sum_ahead(rollouts.kl, discounts)
    return Credit(whiten(ahead, played, ddof=0))


def gae(
    rollouts: Rollouts,
    *,
    discount: float = 1.0,
    gae_lambda: float = 0.95,
    token_discount: float = 1.0,
    token_gae_lambda: float = 1.0,
    whitened: bool = False,
) -> Credit:
    """A_t = d_t + g_t l_t A_(t+1) with d_t = r_t + g_t V_(t+1) - V_t; the critic's target is A_t + V_t.

    From a turn to the next one, g and l are `discount` and `gae_lambda`; between two tokens of a turn they are
    `token_discount` and `token_gae_lambda`, so that a turn's length does not decide how far its reward reaches. What
    follows the last step is worth `Rollouts.bootstrap`: 0 where the world ended, the critic's estimate where a budget
    cut the episode.

    Source: Schulman et al., 2016, "High-Dimensional Continuous Control Using Generalized Advantage Estimation"
    (arXiv 1506.02438), equations 11 and 16.

    Args:
        rollouts: the episodes, with a critic's estimates.
        discount, gae_lambda: discount and decay per turn.
        token_discount, token_gae_lambda: discount and decay per token within a turn.
        whitened: whether the advantages (not the targets) are normalised over all steps of the batch.
    """
    assert rollouts.values is not None
    assert rollouts.bootstrap is not None
    played, ends, values = rollouts.played, rollouts.ends_turn, rollouts.values
    discounts = np.where(ends, discount, token_discount) * played
    decays = np.where(ends, gae_lambda, token_gae_lambda)
    following = np.pad(values[:, 1:], ((0, 0), (0, 1)))
    following[np.arange(len(values)), rollouts.lengths - 1] = rollouts.bootstrap
    errors = np.where(played, rollouts.rewards + discounts * following - values, 0.0)
    advantages = _sum_ahead(errors, discounts * decays)
    returns = advantages + values
    return Credit(whiten(advantages, played, ddof=1) if whitened else advantages, returns)


def less_kl(rollouts: Rollouts, weight: float) -> Rollouts:
    """The same episodes with r_t - weight (log p - log p_first) as rewards; without a weight, as they are.

    Source: Ouyang et al., 2022, "Training language models to follow instructions" (arXiv 2203.02155), equation 2. The
    estimator is k1: of those in use it is the only one whose sum over an episode is unbiased as a reward.
    """
    if not weight:
        return rollouts
    assert rollouts.kl is not None
    return replace(rollouts, rewards=rollouts.rewards - weight * rollouts.kl)


def whiten(values: Array, mask: NDArray[np.bool_], *, ddof: int) -> Array:
    """Shifted and scaled to mean 0 and deviation 1 over the mask, and 0 outside; a single value becomes 0."""
    chosen = values[mask]
    variance = chosen.var(ddof=ddof) if len(chosen) > ddof else 0.0
    normal: Array = np.where(mask, (values - chosen.mean()) / np.sqrt(variance + _LEAST_VARIANCE), 0.0)
    return normal


def _sum_ahead(values: Array, discounts: Array) -> Array:
    """S_t = v_t + g_t S_(t+1), for every row; where discounts are 0 nothing that follows counts."""
    result = np.zeros(values.shape)
    ahead = np.zeros(len(values))
    for step in reversed(range(values.shape[1])):
        ahead = result[:, step] = values[:, step] + discounts[:, step] * ahead
    return result


def _compared(rollouts: Rollouts, credit: EpisodeOrTurn, discount: float) -> Array:
    """What a group method compares, shape (episodes, steps): the return at every step, or the return-to-go."""
    if credit == "turn":
        return _sum_ahead(rollouts.rewards.astype(np.float64), np.where(rollouts.played, discount, 0.0))
    return np.broadcast_to(rollouts.returns[:, None], rollouts.rewards.shape)


def _within_groups(rollouts: Rollouts, x: Array, compare: Callable[[Array], Array], method: str) -> Credit:
    """The comparison of each group's rows, on the steps that were taken."""
    advantages = np.zeros(x.shape)
    for members in _members(rollouts.groups, method):
        advantages[members] = compare(x[members])
    return Credit(np.where(rollouts.played, advantages, 0.0))


def _against_mean(x: Array, scale: bool) -> Array:
    """x less its mean over the first axis, and divided by its deviation; 0 where there is nothing to compare with."""
    if len(x) == 1:
        return np.zeros(x.shape)
    centred: Array = x - x.mean(0)
    return centred / (x.std(0, ddof=1) + _EPSILON) if scale else centred


def _group_mean(rollouts: Rollouts, x: Array) -> Array:
    """The mean over the group, in every row."""
    result = np.zeros(x.shape)
    for members in _members(rollouts.groups, "REINFORCE++ with a baseline"):
        result[members] = x[members].mean(0)
    return result


def _mean_of_turn(rollouts: Rollouts, ahead: Array) -> Array:
    """The mean over the group of the return-to-go at the turn of each step; all steps of a turn have the same."""
    rows, steps = np.nonzero(rollouts.played)
    turns = steps if rollouts.turns is None else rollouts.turns[rows, steps]
    per_turn = np.zeros((len(ahead), int(turns.max(initial=0)) + 1))
    per_turn[rows, turns] = ahead[rows, steps]
    result = np.zeros(ahead.shape)
    result[rows, steps] = _group_mean(rollouts, per_turn)[rows, turns]
    return result


def _members(groups: Counts, method: str) -> Iterator[Counts]:
    """The episodes of each group."""
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) < 2:
            raise GroupTooSmallError(
                f"{method} compares the episodes of a group, and group {group} has one: use a group_size of 2 or more"
            )
        yield members
