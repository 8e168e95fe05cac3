"""Reward density."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from textagent_gym.rewards import MilestoneSchedule, paying_milestones, potential, shaping_reward


@given(milestones=st.integers(1, 60), density=st.floats(0, 1))
def test_the_paying_milestones_are_spread_and_end_with_success(milestones: int, density: float) -> None:
    paying = paying_milestones(milestones, density)
    assert paying[-1] == milestones
    assert list(paying) == sorted(set(paying))
    assert paying[0] >= 1
    gaps = [b - a for a, b in pairwise(paying[:-1])]
    assert not gaps or max(gaps) - min(gaps) <= 1


@given(milestones=st.integers(1, 60), density=st.floats(0, 1), reached=st.integers(0, 60))
def test_without_success_less_than_one_is_earned(milestones: int, density: float, reached: int) -> None:
    schedule = MilestoneSchedule.of(milestones, density)
    assert schedule.earned(reached, success=False) < 1.0 == schedule.earned(reached, success=True)


@given(milestones=st.integers(1, 60))
def test_sparse_pays_success_alone_and_dense_pays_everything(milestones: int) -> None:
    assert paying_milestones(milestones, 0.0) == (milestones,)
    assert paying_milestones(milestones, 1.0) == tuple(range(1, milestones + 1))


@given(distances=st.lists(st.integers(1, 20), min_size=1, max_size=30), discount=st.floats(0.1, 1.0))
def test_shaping_adds_up_to_minus_the_first_potential(distances: list[int], discount: float) -> None:
    # Ng, Harada and Russell (1999): the discounted sum telescopes, whatever happened in between.
    start = distances[0]
    potentials = [potential(distance, start) for distance in distances]
    total = 0.0
    for step in range(len(potentials)):
        last = step + 1 == len(potentials)
        after = 0.0 if last else potentials[step + 1]
        total += discount**step * shaping_reward(potentials[step], after, discount=discount, terminated=last)
    assert abs(total + potentials[0]) < 1e-9
