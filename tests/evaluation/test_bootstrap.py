"""Intervals of means."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest

from textagent_gym.evaluation import EpisodeRecord, mean_interval, share_interval, summarize, wilson_interval
from textagent_gym.evaluation.bootstrap import FEWEST, MOST, RESAMPLES, mean_bounds, student_quantile

DISTRIBUTIONS: dict[str, tuple[Callable[[random.Random], float], float]] = {
    "uniform": (lambda draw: draw.random(), 0.5),
    "a tenth of milestones, or success": (
        lambda draw: 1.0 if draw.random() < 0.5 else draw.randrange(10) / 10,
        0.5 + 0.5 * 0.45,
    ),
    "shares of four episodes": (lambda draw: sum(draw.random() < 0.3 for _ in range(4)) / 4, 0.3),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("tasks", [3, 5, 10, 50])
def test_bootstrap_intervals_cover_the_truth_about_as_often_as_they_say(name: str, tasks: int) -> None:
    one, truth = DISTRIBUTIONS[name]
    draw = random.Random(0)
    covered = 0
    for _ in range(300):
        interval = share_interval([one(draw) for _ in range(tasks)])
        covered += interval.low <= truth <= interval.high
    assert covered / 300 >= (0.92 if tasks >= 10 else 0.85)  # Few shares of few episodes are often alike.


def test_bootstrap_intervals_of_few_values_cover_more_than_the_normal_approximation() -> None:
    draw = random.Random(0)
    covered = approximated = 0
    for _ in range(300):
        values = [draw.random() for _ in range(5)]
        interval = share_interval(values)
        half = NormalDist().inv_cdf(0.975) * stdev(values) / math.sqrt(5)
        covered += interval.low <= 0.5 <= interval.high
        approximated += abs(interval.mean - 0.5) <= half
    assert covered / 300 >= approximated / 300 + 0.03


def test_with_many_values_the_bootstrap_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs: pip install scipy")
    draw = random.Random(0)
    values = [draw.random() ** 3 for _ in range(500)]
    expected = stats.bootstrap((values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=1)
    bounds = expected.confidence_interval
    assert mean_bounds(values) == pytest.approx((bounds.low, bounds.high), abs=0.05 * (bounds.high - bounds.low))


def test_with_few_values_percentiles_are_further_out_by_what_student_and_the_spread_ask() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs: pip install scipy")
    values = [0.1, 0.2, 0.4, 0.5, 0.55, 0.7, 0.8, 0.95]
    tail = stats.norm.cdf(-math.sqrt(8 / 7) * stats.t.ppf(0.975, 7))
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", confidence_level=1 - 2 * tail, rng=1
    ).confidence_interval
    assert mean_bounds(values) == pytest.approx((expected.low, expected.high), abs=0.025)
    for freedom in (4, 9, 99):
        assert student_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=2e-3)


def test_bounds_depend_on_the_values_alone() -> None:
    values = [random.Random(7).random() for _ in range(40)] + [0.1, 0.2, 0.3]
    bounds = mean_bounds(values)
    np.random.seed(1)  # Others may seed numpy as they like.
    assert mean_bounds(values[::-1]) == bounds
    assert mean_bounds(sorted(values, key=lambda value: value % 0.1)) == bounds
    low, high = mean_bounds([2.0 * value for value in values])
    assert (low / 2, high / 2) == bounds


def test_bounds_are_the_same_on_every_machine() -> None:
    """Numbers of another machine with another numpy; summaries that others made are compared with such numbers."""
    assert mean_bounds([0.0, 0.25, 0.5, 1.0, 1.0]) == (0.05, 1.0)
    assert mean_bounds([number / 7 for number in range(20)]) == (0.9642857142857143, 1.75)


@pytest.mark.parametrize("values", [[1e-300, 3e-300, 2e-300] * 3, [-1e300, 1e300, 5e299] * 4, [0.0, -1.0, -2.0] * 3])
def test_values_of_any_size_have_bounds_around_their_mean(values: list[float]) -> None:
    low, high = mean_bounds(values)
    assert min(values) <= low < fmean(values) < high <= max(values)


def test_too_few_and_too_many_values_are_not_drawn_again() -> None:
    for count in (FEWEST - 1, MOST + 1):
        with pytest.raises(ValueError, match="5 to 999 values"):
            mean_bounds([float(number) for number in range(count)])


def test_the_interval_of_very_few_values_is_that_of_student_or_wilson() -> None:
    interval = mean_interval([1.0, 2.0, 4.0])
    assert interval.high - interval.mean == pytest.approx(4.303 * stdev([1.0, 2.0, 4.0]) / math.sqrt(3))
    assert share_interval([0.0, 1.0, 1.0]) == wilson_interval(2, 3)


def test_the_interval_of_very_many_values_hardly_changes_where_it_is_the_normal_approximation() -> None:
    draw = random.Random(0)
    values = [draw.random() for _ in range(MOST + 1)]
    many, fewer = mean_interval(values), mean_interval(values[:-1])
    half = NormalDist().inv_cdf(0.975) * stdev(values) / math.sqrt(len(values))
    assert (many.low, many.high) == (many.mean - half, many.mean + half)
    assert (fewer.low, fewer.high) == pytest.approx((many.low, many.high), abs=0.08 * half)


def test_returns_and_scores_have_bootstrap_intervals_over_tasks() -> None:
    def record(task: int, value: float) -> EpisodeRecord:
        return EpisodeRecord(f"t{task}", 0, ("a",), (value,), False, False, True, score=value)

    episodes = [record(task, (task + repeat) / 10) for task in range(8) for repeat in range(2)]
    bounds = mean_bounds([(2 * task + 1) / 20 for task in range(8)])
    summary = summarize(episodes)
    assert summary.score is not None
    for interval in (summary.total_reward, summary.score):
        assert (interval.low, interval.high) == pytest.approx(bounds)
