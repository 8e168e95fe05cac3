"""Two agents on the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

import numpy as np

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.records import EpisodeRecord
from textagent_gym.evaluation.statistics import (
    CONFIDENCE,
    Interval,
    alike,
    cluster_interval,
    share_interval,
    wilson_interval,
)

_RESAMPLES = 10_000  # Of the tasks: the bounds then vary by about a hundredth of the interval's length.
_AT_ONCE = 2**18  # Values drawn at once: 2 MiB.


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a second agent does on the tasks that a first one has played too.

    Attributes:
        tasks: number of tasks that count: those of which both have played an episode that did not break, in every part
            of a suite that plays them. A task that several parts play, such as with other turn limits, is one task.
        left_out: number of tasks that do not.
        first, second: mean share of successes per task, with its interval (`cluster_interval`).
        difference: second minus first, with its bootstrap interval.
        better, worse: number of tasks that the second agent solves more often, and less often.
        p_value: probability of a split of these tasks at least as uneven, if neither agent were better.
    """

    tasks: int
    left_out: int
    first: Interval
    second: Interval
    difference: Interval
    better: int
    worse: int
    p_value: float


def compare(
    first: Mapping[str, Sequence[EpisodeRecord]], second: Mapping[str, Sequence[EpisodeRecord]], seed: int = 0
) -> Comparison:
    """Compare the successes of two agents, task by task.

    The p-value is that of the exact test of McNemar (1947, "Note on the sampling error of the difference between
    correlated proportions"), and of the exact sign test where tasks were played several times, in one part or in
    several. The interval resamples tasks, for episodes of one task are not independent (Efron, 1979, "Bootstrap
    methods").

    Args:
        first, second: episodes of each agent, by whatever both played: an environment, or a part of a suite.
        seed: seed of the resampling.

    Raises:
        InvalidOptionError: they have played other tasks, or no task counts.
    """
    ours, theirs = _successes(first), _successes(second)
    if ours.keys() != theirs.keys():
        only = len(ours.keys() ^ theirs.keys())
        raise InvalidOptionError(f"the results are not of the same tasks: {only} are in one of them only")
    by_task: dict[str, list[tuple[list[bool], list[bool]]]] = {}
    for (task, part), successes in ours.items():
        by_task.setdefault(task, []).append((successes, theirs[task, part]))
    counted = [pairs for pairs in by_task.values() if all(one and other for one, other in pairs)]
    if not counted:
        raise InvalidOptionError("the results have no task in common that did not break")
    intervals, shares = [], []
    for each in ([[pair[side] for pair in pairs] for pairs in counted] for side in (0, 1)):
        shares.append([fmean(map(fmean, parts)) for parts in each])
        intervals.append(cluster_interval(shares[-1], sum(len(part) for parts in each for part in parts)))
    differences = [other - one for one, other in zip(*shares, strict=True)]
    better, worse = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    return Comparison(
        tasks=len(counted),
        left_out=len(by_task) - len(counted),
        first=intervals[0],
        second=intervals[1],
        difference=difference_interval(differences, seed),
        better=better,
        worse=worse,
        p_value=sign_test(better, worse),
    )


def _successes(episodes: Mapping[str, Sequence[EpisodeRecord]]) -> dict[tuple[str, str], list[bool]]:
    """Which episodes of each task succeeded, by task and part; empty where every episode broke."""
    by_task: dict[tuple[str, str], list[bool]] = {}
    for part, records in episodes.items():
        for episode in records:
            counted = by_task.setdefault((episode.task, part), [])
            if not episode.broken:
                counted.append(episode.success)
    return by_task


def sign_test(better: int, worse: int) -> float:
    """Two-sided p-value of the exact binomial test that wins and losses are equally likely.

    >>> sign_test(9, 1), sign_test(0, 0)
    (0.021484375, 1.0)
    """
    trials, fewer = better + worse, min(better, worse)
    tail = sum(comb(trials, count) for count in range(fewer + 1))
    return min(1.0, 2 * tail / (1 << trials))


def difference_interval(differences: Sequence[float], seed: int = 0) -> Interval:
    """95% interval of a mean of differences from -1 to 1: the percentiles of means of resampled tasks.

    Where all differences are equal, there is no spread to resample. If they are 0, the mean is no farther from 0 than
    the share of tasks that differ, for which Wilson's interval of as many trials gives the bound; else the interval is
    Wilson's, stretched from 0..1 to -1..1.

    >>> str(difference_interval([0.0] * 20)), str(difference_interval([1.0] * 20))
    ('0.000 [-0.161, 0.161]', '1.000 [0.678, 1.000]')
    """
    values = np.asarray(differences, dtype=float)
    mean = float(values.mean())
    if alike([*differences, 0.0]):
        most = wilson_interval(0, len(values)).high
        return Interval(0.0, -most, most)
    if alike(differences):
        share = share_interval([(mean + 1) / 2] * len(differences))
        return Interval(mean, 2 * share.low - 1, 2 * share.high - 1)
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // len(values))
    counts = [min(rows, _RESAMPLES - first) for first in range(0, _RESAMPLES, rows)]
    means = np.concatenate([rng.choice(values, (count, len(values))).mean(1) for count in counts])
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(mean, float(low), float(high))
