"""The pure functions, against TRL's formulas and small independent computations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from baselines.credit.advantages import (
    AdvantageFunction,
    GroupTooSmallError,
    gae,
    grpo,
    grpo_process,
    reinforce_pp,
    rloo,
)
from baselines.credit.losses import aggregate, clipped, kl_estimate, ppo_clip, token_log_probs, token_ratio
from baselines.credit.rollouts import Rollouts, join, rollouts_of
from baselines.rollout.trajectory import Trajectory, Turn

RETURNS = st.lists(st.floats(-2, 2), min_size=12, max_size=12)
ONE_TURN = np.ones(12, dtype=np.int64)
GROUPS = np.repeat([7, 3, 5], 4)
COMPARING: dict[str, AdvantageFunction] = {
    "grpo": grpo,
    "dr_grpo": partial(grpo, scale=False),
    "grpo per turn": partial(grpo, credit="turn"),
    "grpo_process": grpo_process,
    "rloo": rloo,
    "rloo per turn": partial(rloo, credit="turn"),
    "reinforce_pp with a baseline": partial(reinforce_pp, baseline=True),
    "reinforce_pp with a baseline, per episode": partial(reinforce_pp, baseline=True, credit="episode"),
}
ALONE: dict[str, AdvantageFunction] = {
    "reinforce_pp": reinforce_pp,
    "reinforce_pp per episode": partial(reinforce_pp, credit="episode"),
    "gae": gae,
    "gae, whitened": partial(gae, whitened=True),
}


def rollouts(rewards: np.ndarray, lengths: np.ndarray, groups: np.ndarray) -> Rollouts:
    return Rollouts(rewards, lengths, groups, np.ones(len(lengths), dtype=bool))


def one_turn_each(returns: list[float]) -> Rollouts:
    return rollouts(np.array(returns)[:, None], ONE_TURN, GROUPS)


@given(RETURNS)
def test_grpo_is_trls(returns: list[float]) -> None:
    # As in TRL's GRPOTrainer: rewards of a group side by side, mean and (n - 1) deviation over the group, 1e-4.
    rewards = torch.tensor(returns, dtype=torch.float64)
    mean = rewards.view(-1, 4).mean(dim=1).repeat_interleave(4)
    deviation = rewards.view(-1, 4).std(dim=1).repeat_interleave(4)
    expected = (rewards - mean) / (deviation + 1e-4)
    assert np.allclose(grpo(one_turn_each(returns)).advantages[:, 0], expected.numpy())


@given(RETURNS)
def test_rloo_is_trls(returns: list[float]) -> None:
    # As in TRL's RLOOTrainer: (mean of the group * k - own) / (k - 1) is the baseline.
    rewards = torch.tensor(returns, dtype=torch.float64)
    mean = rewards.view(-1, 4).mean(dim=1).repeat_interleave(4)
    expected = rewards - (mean * 4 - rewards) / 3
    assert np.allclose(rloo(one_turn_each(returns)).advantages[:, 0], expected.numpy())


@given(RETURNS)
def test_dr_grpo_is_a_share_of_rloo(returns: list[float]) -> None:
    # Leave-one-out is the mean-centred advantage times n / (n - 1).
    assert np.allclose(
        grpo(one_turn_each(returns), scale=False).advantages * 4 / 3,
        rloo(one_turn_each(returns)).advantages,
        atol=1e-12,
    )


@pytest.mark.parametrize("method", COMPARING)
def test_a_group_of_one_is_an_error(method: str) -> None:
    with pytest.raises(GroupTooSmallError, match="group_size"):
        COMPARING[method](rollouts(np.ones((3, 2)), np.array([2, 2, 2]), np.array([0, 0, 1])))


@pytest.mark.parametrize("method", {**COMPARING, **ALONE})
def test_nothing_follows_an_episodes_last_turn(method: str) -> None:
    random = np.random.default_rng(0)
    lengths = np.array([1, 4, 2, 3])
    rewards = np.where(np.arange(4) < lengths[:, None], random.normal(size=(4, 4)), 0.0)
    values = np.where(rewards != 0, random.normal(size=(4, 4)), 0.0)
    four = replace(rollouts(rewards, lengths, np.array([0, 0, 1, 1])), values=values, bootstrap=random.normal(size=4))
    advantages = {**COMPARING, **ALONE}[method](four).advantages
    assert advantages.shape == (4, 4)
    assert not advantages[np.arange(4) >= lengths[:, None]].any()


def test_process_supervision_sums_the_normalised_rewards_ahead() -> None:
    rewards = np.array([[1.0, 0.0, 2.0], [3.0, 5.0, 0.0]])
    lengths, groups = np.array([3, 2]), np.array([0, 0])
    played = np.array([1.0, 0.0, 2.0, 3.0, 5.0])
    normal = (played - played.mean()) / (played.std(ddof=1) + 1e-4)
    expected = [[normal[:3].sum(), normal[1:3].sum(), normal[2]], [normal[3:].sum(), normal[4], 0.0]]
    assert np.allclose(grpo_process(rollouts(rewards, lengths, groups)).advantages, expected)
    halved = grpo_process(rollouts(rewards, lengths, groups), discount=0.5).advantages
    assert halved[0, 0] == pytest.approx(normal[0] + 0.5 * normal[1] + 0.25 * normal[2])


def test_log_probs_are_torchs_cross_entropy() -> None:
    logits, ids = torch.randn(2, 5, 11), torch.randint(0, 11, (2, 5))
    found = token_log_probs(logits[:, :-1], ids[:, 1:], temperature=0.7)
    expected = -torch.nn.functional.cross_entropy(
        (logits[:, :-1] / 0.7).reshape(-1, 11), ids[:, 1:].reshape(-1), reduction="none"
    ).view(2, 4)
    assert torch.allclose(found, expected, atol=1e-5)


def test_log_probs_are_those_of_sampling_at_temperature_1_unless_another_is_given() -> None:
    logits, ids = torch.randn(2, 5, 11), torch.randint(0, 11, (2, 5))
    expected = logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    assert torch.allclose(token_log_probs(logits[:, :-1], ids[:, 1:]), expected, atol=1e-5)


def test_the_clip_stops_the_gradient_outside_its_bounds_only() -> None:
    old = torch.zeros(1, 4)
    new = torch.tensor([[1.0, -1.0, 1.0, -1.0]], requires_grad=True)
    ppo_clip(new, old, torch.tensor([[1.0, 1.0, -1.0, -1.0]])).sum().backward()
    # Outside and already improved: no gradient. Outside and worse: full gradient.
    assert new.grad[0, 0] == 0.0
    assert new.grad[0, 3] == 0.0
    assert new.grad[0, 1] == pytest.approx(-float(torch.tensor(-1.0).exp()))
    assert new.grad[0, 2] == pytest.approx(float(torch.tensor(1.0).exp()))


def test_k3_is_never_negative_and_zero_for_equal_policies() -> None:
    a, b = torch.randn(100), torch.randn(100)
    assert (kl_estimate(a, b, "k3") >= 0).all()
    assert not kl_estimate(a, a, "k3").any()


def test_aggregations_differ_as_their_papers_say() -> None:
    values = torch.tensor([[1.0, 2.0, 9.0], [4.0, 9.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert aggregate(values, mask, "token") == pytest.approx(7 / 3)
    assert aggregate(values, mask, "sequence") == pytest.approx((1.5 + 4) / 2)
    assert aggregate(values, mask, "constant", constant=2.0) == pytest.approx((3 / 2 + 4 / 2) / 2)


def test_a_token_counts_as_clipped_where_the_clip_acts_on_it() -> None:
    new = torch.tensor([[0.0, 0.1, 0.3, -0.3]])
    assert clipped(token_ratio(new, torch.zeros(1, 4)), clip_low=0.2, clip_high=0.2).tolist() == [[0.0, 0.0, 1.0, 1.0]]
    bounds = torch.tensor([[0.5, 1.5]]).log()
    assert bounds.exp().tolist() == [[0.5, 1.5]]
    assert not clipped(token_ratio(bounds, torch.zeros(1, 2)), clip_low=0.5, clip_high=0.5).any()


@given(RETURNS)
def test_the_rollouts_of_several_processes_are_credited_like_those_of_one(returns: list[float]) -> None:
    whole = one_turn_each(returns)
    parts = [whole.select(np.arange(0, 5)), whole.select(np.arange(5, 12))]
    assert np.array_equal(grpo(join(parts)).advantages, grpo(whole).advantages)


def test_joined_rollouts_are_as_wide_as_the_widest() -> None:
    short = rollouts(np.ones((1, 1)), np.array([1]), np.array([0]))
    long = rollouts(np.ones((1, 3)), np.array([3]), np.array([1]))
    both = join([short, long])
    assert both.rewards.tolist() == [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    assert both.played.tolist() == [[True, False, False], [True, True, True]]


def test_rewards_stand_on_their_turns_or_on_the_last_tokens_of_their_actions() -> None:
    def turn(tokens: int, reward: float) -> Turn:
        return Turn((1, 2), tuple(range(tokens)), (0.0,) * tokens, reward, "", "")

    short = Trajectory((turn(2, 5.0),), 4, terminated=True)
    long = Trajectory((turn(1, 1.0), turn(3, 2.0)), 7)
    turns = rollouts_of([short, long], "turn")
    assert turns.rewards.tolist() == [[5.0, 0.0], [1.0, 2.0]]
    assert turns.lengths.tolist() == [1, 2]
    tokens = rollouts_of([short, long], "token")
    assert tokens.rewards.tolist() == [[0.0, 5.0, 0.0, 0.0], [1.0, 0.0, 0.0, 2.0]]
    assert tokens.lengths.tolist() == [2, 4]
    for both in (turns, tokens):
        assert both.returns.tolist() == [5.0, 3.0]
        assert both.groups.tolist() == [4, 7]
        assert both.terminated.tolist() == [True, False]
        assert both.values is None
