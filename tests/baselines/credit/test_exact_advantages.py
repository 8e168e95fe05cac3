"""Every advantage against loops that are written from the papers, episode by episode, on random episodes.

The loops read the trajectories, not the arrays that are tested; `torchrl` is asked too where it is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy as np
import pytest
import torch

from baselines.credit.advantages import gae, gigpo, grpo, grpo_process, less_kl, reinforce_pp, rloo
from baselines.credit.rollouts import Array, rollouts_of
from baselines.settings.config import Level
from tests.baselines.credit.random_episodes import Episodes, random_episodes

CASES = range(100)
GAE_SETTINGS = ("discount", "gae_lambda", "token_discount", "token_gae_lambda")


@dataclass(frozen=True)
class Step:
    """One step of an episode, read from its trajectory."""

    reward: float
    kl: float
    value: float
    turn: int
    ends_turn: bool


def steps_of(episodes: Episodes, number: int, level: Level) -> list[Step]:
    steps, at = [], 0
    trajectory, kl, values = episodes.trajectories[number], episodes.kl[number], episodes.values[number]
    for index, turn in enumerate(trajectory.turns):
        at += len(turn.prompt)
        tokens = range(at, at + len(turn.action))
        at += len(turn.action)
        if level == "turn":
            steps.append(Step(turn.reward, sum(kl[t] for t in tokens), values[tokens[0]], index, True))
        else:
            last = tokens[-1]
            steps += [Step(turn.reward if t == last else 0.0, kl[t], values[t], index, t == last) for t in tokens]
    return steps


def assert_equal(array: Array, rows: list[list[float]]) -> None:
    """To 1e-6 in float32, and 0 after each episode's last step."""
    expected = np.zeros(array.shape, dtype=np.float32)
    for number, row in enumerate(rows):
        expected[number, : len(row)] = row
    np.testing.assert_allclose(array.astype(np.float32), expected, rtol=1e-6, atol=1e-6)


def to_go(episodes: Episodes, number: int, turn: int, discount: float, kl: float = 0.0) -> float:
    """Return-to-go of a turn; 0 for episodes that have ended."""
    steps = steps_of(episodes, number, "turn")
    return sum(discount ** (k - turn) * (steps[k].reward - kl * steps[k].kl) for k in range(turn, len(steps)))


def deviation_of(numbers: list[float], less: int) -> float:
    mean = fmean(numbers)
    return (sum((number - mean) ** 2 for number in numbers) / (len(numbers) - less)) ** 0.5


def group_of(episodes: Episodes, number: int) -> list[int]:
    groups = [trajectory.group for trajectory in episodes.trajectories]
    return [other for other, group in enumerate(groups) if group == groups[number]]


@pytest.mark.parametrize(("credit", "scale", "kl"), list(product(["episode", "turn"], [True, False], [0.0, 0.3])))
def test_grpo(credit: str, scale: bool, kl: float) -> None:
    for seed in CASES:
        episodes = random_episodes(seed)
        expected = []
        for number, trajectory in enumerate(episodes.trajectories):
            row = []
            for turn in range(len(trajectory.turns)):
                begin, discount = (turn, 0.9) if credit == "turn" else (0, 1.0)
                group = [to_go(episodes, other, begin, discount, kl) for other in group_of(episodes, number)]
                centred = to_go(episodes, number, begin, discount, kl) - fmean(group)
                row.append(centred / (deviation_of(group, 1) + 1e-4) if scale else centred)
            expected.append(row)
        rollouts = less_kl(episodes.rollouts("turn"), kl)
        assert_equal(grpo(rollouts, credit=credit, scale=scale, discount=0.9).advantages, expected)


@pytest.mark.parametrize("scale", [True, False])
def test_grpo_with_process_supervision(scale: bool) -> None:
    for seed in CASES:
        episodes = random_episodes(seed)
        expected = []
        for number, trajectory in enumerate(episodes.trajectories):
            pool = [turn.reward for other in group_of(episodes, number) for turn in episodes.trajectories[other].turns]
            rewards = [turn.reward - fmean(pool) for turn in trajectory.turns]
            if scale:
                rewards = [reward / (deviation_of(pool, 1) + 1e-4) for reward in rewards]
            turns = range(len(rewards))
            expected.append([sum(0.9 ** (k - t) * rewards[k] for k in turns if k >= t) for t in turns])
        assert_equal(grpo_process(episodes.rollouts("turn"), scale=scale, discount=0.9).advantages, expected)


@pytest.mark.parametrize(
    ("state", "scale", "weight"), list(product(["world", "observation"], [True, False], [1.0, 0.3]))
)
def test_gigpo(state: str, scale: bool, weight: float) -> None:
    def against(number: float, numbers: list[float]) -> float:
        centred = number - fmean(numbers)
        return centred / (deviation_of(numbers, 1) + 1e-4) if scale and len(numbers) > 1 else centred

    compared = 0
    for seed in range(250):  # 1,000 batches for each kind of state.
        episodes = random_episodes(seed, states=4)
        expected = []
        for number, trajectory in enumerate(episodes.trajectories):
            group = group_of(episodes, number)
            episode = against(trajectory.total_reward, [episodes.trajectories[i].total_reward for i in group])
            row = []
            for t, turn in enumerate(trajectory.turns):
                same = []
                for other in group:
                    for k, step in enumerate(episodes.trajectories[other].turns):
                        if (step.state if state == "world" else step.observation) == (
                            turn.state if state == "world" else turn.observation
                        ):
                            same.append(to_go(episodes, other, k, 0.9))
                compared += len(same) > 1
                row.append(episode + weight * against(to_go(episodes, number, t, 0.9), same))
            expected.append(row)
        rollouts = rollouts_of(episodes.trajectories, states=state)
        assert_equal(gigpo(rollouts, step_weight=weight, scale=scale, discount=0.9).advantages, expected)
    assert compared > 1_000


def test_gigpo_where_nobody_shares_a_state_is_grpo() -> None:
    for seed in CASES:
        rollouts = rollouts_of(random_episodes(seed, states=10**9).trajectories, states="world")
        assert_equal(gigpo(rollouts).advantages, [list(row) for row in grpo(rollouts).advantages])


@pytest.mark.parametrize(("credit", "kl"), list(product(["episode", "turn"], [0.0, 0.3])))
def test_rloo(credit: str, kl: float) -> None:
    for seed in CASES:
        episodes = random_episodes(seed)
        expected = []
        for number, trajectory in enumerate(episodes.trajectories):
            others = [other for other in group_of(episodes, number) if other != number]
            row = []
            for turn in range(len(trajectory.turns)):
                begin, discount = (turn, 0.9) if credit == "turn" else (0, 1.0)
                baseline = fmean(to_go(episodes, other, begin, discount, kl) for other in others)
                row.append(to_go(episodes, number, begin, discount, kl) - baseline)
            expected.append(row)
        rollouts = less_kl(episodes.rollouts("turn"), kl)
        assert_equal(rloo(rollouts, credit=credit, discount=0.9).advantages, expected)


@pytest.mark.parametrize(
    ("level", "credit", "baseline", "kl"),
    list(product(["turn", "token"], ["episode", "turn"], [True, False], [0.0, 0.3])),
)
def test_reinforce_pp(level: Level, credit: str, baseline: bool, kl: float) -> None:
    for seed in CASES:
        episodes = random_episodes(seed, group_size=4 if baseline else 1)
        expected = []
        for number, trajectory in enumerate(episodes.trajectories):
            steps, group = steps_of(episodes, number, level), group_of(episodes, number)
            outcome = trajectory.total_reward
            if baseline:
                outcome -= fmean(episodes.trajectories[other].total_reward for other in group)
            row = []
            for t in range(len(steps)):
                total = 0.0
                for k in range(t, len(steps)):
                    at_end = outcome if k == len(steps) - 1 else 0.0
                    reward = steps[k].reward if credit == "turn" else at_end
                    total += 0.9 ** (steps[k].turn - steps[t].turn) * (reward - kl * steps[k].kl)
                if baseline and credit == "turn":
                    total -= fmean(to_go(episodes, other, steps[t].turn, 0.9) for other in group)
                row.append(total)
            expected.append(row)
        everything = [number for row in expected for number in row]
        mean, deviation = fmean(everything), (deviation_of(everything, 0) ** 2 + 1e-8) ** 0.5
        expected = [[(number - mean) / deviation for number in row] for row in expected]
        rollouts = episodes.rollouts(level)
        credited = reinforce_pp(rollouts, credit=credit, baseline=baseline, discount=0.9, kl=kl)
        assert_equal(credited.advantages, expected)


@pytest.mark.parametrize(("level", "whitened", "kl"), list(product(["turn", "token"], [True, False], [0.0, 0.3])))
def test_gae(level: Level, whitened: bool, kl: float) -> None:
    """As the sum of equation 16, each term by itself, with the discount and the decay of every step between."""
    for seed in CASES:
        random = np.random.default_rng(seed)
        settings = {name: float(random.random()) for name in GAE_SETTINGS}
        episodes = random_episodes(seed, groups=4, group_size=2)
        advantages, targets = [], []
        for number in range(len(episodes.trajectories)):
            steps = steps_of(episodes, number, level)
            values = [*(step.value for step in steps), episodes.bootstrap[number]]
            g = [settings["discount" if step.ends_turn else "token_discount"] for step in steps]
            decay = [settings["gae_lambda" if step.ends_turn else "token_gae_lambda"] for step in steps]
            row = []
            for t in range(len(steps)):
                total = 0.0
                for k in range(t, len(steps)):
                    error = steps[k].reward - kl * steps[k].kl + g[k] * values[k + 1] - values[k]
                    for between in range(t, k):
                        error *= g[between] * decay[between]
                    total += error
                row.append(total)
            advantages.append(row)
            targets.append([advantage + value for advantage, value in zip(row, values, strict=False)])
        if whitened:
            everything = [number for row in advantages for number in row]
            deviation = (deviation_of(everything, 1) ** 2 + 1e-8) ** 0.5
            mean = fmean(everything)
            advantages = [[(number - mean) / deviation for number in row] for row in advantages]
        credited = gae(less_kl(episodes.rollouts(level), kl), whitened=whitened, **settings)
        assert_equal(credited.advantages, advantages)
        assert credited.returns is not None
        assert_equal(credited.returns, targets)


@pytest.mark.parametrize("level", ["turn", "token"])
def test_gae_is_torchrls(level: Level) -> None:
    functional = pytest.importorskip("torchrl.objectives.value.functional", reason="needs: pip install torchrl")
    for seed in CASES:
        random = np.random.default_rng(seed)
        settings = {name: float(random.random()) for name in GAE_SETTINGS}
        episodes = random_episodes(seed, groups=4, group_size=2)
        advantages, targets = [], []
        for number, trajectory in enumerate(episodes.trajectories):
            steps = steps_of(episodes, number, level)
            ends = torch.tensor([step.ends_turn for step in steps])[:, None]
            values = torch.tensor([*(step.value for step in steps), episodes.bootstrap[number]])[:, None]
            done = torch.arange(len(steps))[:, None] == len(steps) - 1
            advantage, target = functional.generalized_advantage_estimate(
                torch.where(ends, settings["discount"], settings["token_discount"]),
                torch.where(ends, settings["gae_lambda"], settings["token_gae_lambda"]),
                values[:-1],
                values[1:],
                torch.tensor([step.reward for step in steps])[:, None],
                done,
                done & trajectory.terminated,
            )
            advantages.append(advantage[:, 0].tolist())
            targets.append(target[:, 0].tolist())
        credited = gae(episodes.rollouts(level), **settings)
        assert_equal(credited.advantages, advantages)
        assert credited.returns is not None
        assert_equal(credited.returns, targets)


def test_a_lambda_of_1_is_the_return_and_one_of_0_is_the_next_error() -> None:
    episodes = random_episodes(1)
    rollouts = episodes.rollouts("turn")
    assert rollouts.values is not None
    assert rollouts.bootstrap is not None
    whole = gae(rollouts, gae_lambda=1.0)
    monte_carlo = whole.returns
    one_step = gae(rollouts, gae_lambda=0.0).returns
    assert monte_carlo is not None
    assert one_step is not None
    assert whole.advantages == pytest.approx(monte_carlo - rollouts.values)  # Not whitened unless that is asked for.
    assert monte_carlo[:, 0] == pytest.approx(rollouts.returns + rollouts.bootstrap)
    for number, length in enumerate(rollouts.lengths):
        following = [*rollouts.values[number, 1:length], rollouts.bootstrap[number]]
        assert one_step[number, :length] == pytest.approx(rollouts.rewards[number, :length] + following)


def test_what_the_first_policy_says_stays_on_its_tokens_where_the_return_stands_at_the_end() -> None:
    episodes = random_episodes(2, groups=8, group_size=1)
    with_kl = reinforce_pp(episodes.rollouts("token"), credit="episode", kl=1e3).advantages
    lengths = episodes.rollouts("token").lengths
    # The divergence outweighs everything; a token's own one is the only difference from the next token.
    for number, kl in enumerate(episodes.kl):
        action = len(episodes.trajectories[number].turns[-1].action)
        if action > 1:
            last = int(lengths[number])
            fall = with_kl[number, last - 2] - with_kl[number, last - 1]
            assert np.sign(fall) == -np.sign(kl[len(episodes.trajectories[number].ids) - 2])


def test_rollouts_say_where_turns_end() -> None:
    for seed in CASES:
        episodes = random_episodes(seed)
        for level in ("turn", "token"):
            ends = episodes.rollouts(level).ends_turn
            for number in range(len(ends)):
                steps = steps_of(episodes, number, level)
                assert ends[number].tolist() == [s.ends_turn for s in steps] + [False] * (ends.shape[1] - len(steps))
