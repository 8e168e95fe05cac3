"""Means with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, inf, isfinite, sqrt
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from textagent_gym.evaluation.bootstrap import FEWEST, MOST, mean_bounds

if TYPE_CHECKING:
    from textagent_gym.evaluation.records import EpisodeRecord

CONFIDENCE = 0.95
"""Probability with which an interval covers the true value: the usual one."""

_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_ROUNDING = 1e-9  # Of what is 1: a million times that of one operation, and far below any number of episodes.
_STUDENT = {2: 12.706, 3: 4.303, 4: 3.182}
"""Quantile of Student's t by the number of values, where these are too few for a bootstrap."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds of its 95% confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.rounded(3)

    def rounded(self, digits: int) -> str:
        """Mean and bounds with a number of digits after the point; bounds that cannot be told are "n/a"."""
        bounds = f"{self.low:.{digits}f}, {self.high:.{digits}f}" if isfinite(self.high - self.low) else "n/a"
        return f"{self.mean:.{digits}f} [{bounds}]"

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals have a value in common."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class Summary:
    """What an evaluation says of an agent.

    Attributes:
        episodes: number of episodes that count.
        tasks: number of different tasks among them.
        success: share of the episodes that reached the goal.
        total_reward: mean return per episode.
        turns: mean number of actions per episode.
        invalid: share of the actions that were not valid.
        score: mean of the world's own measure per episode; `None` where it has none.
        broken: number of episodes whose world broke, which count neither as won nor as lost.
        stopped: number of episodes that the agent stopped, its context being full; they count as lost.
        invalid_share: mean share of the actions of a task that were not valid.
        efficiency: mean number of actions per action of the shortest solution known, in solved episodes, so at least
            1.0 where solutions are proven to be shortest; `None` where none was solved or no solution is known.
        tokens_per_episode: mean number of tokens that the agent's model wrote; `None` where they were not counted.
    """

    episodes: int
    tasks: int
    success: Interval
    total_reward: Interval
    turns: Interval
    invalid: float
    score: Interval | None = None
    broken: int = 0
    stopped: int = 0
    invalid_share: Interval | None = None
    efficiency: Interval | None = None
    tokens_per_episode: Interval | None = None


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """Success alone.

    Attributes:
        episodes: number of episodes that count.
        success: share of them that reached the goal.
    """

    episodes: int
    success: Interval


def wilson_interval(successes: int, trials: int) -> Interval:
    """95% interval of a proportion of independent trials.

    Source: Wilson, 1927, "Probable inference, the law of succession, and statistical inference".

    >>> str(wilson_interval(8, 10))
    '0.800 [0.490, 0.943]'
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials are no proportion")
    return _wilson(successes / trials, trials)


def _wilson(share: float, trials: float) -> Interval:
    z2 = _Z * _Z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z * sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    # At 0 and 1, rounding would leave the share out.
    return Interval(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))


def mean_interval(values: Sequence[float], least: float = -inf) -> Interval:
    """95% interval of a mean of independent values, by bootstrap (see `bootstrap.mean_bounds`).

    It is Student's for fewer than five values, and the normal approximation for a thousand or more. It is unbounded for
    values without a spread to go by: a single one, or equal ones.

    Args:
        values: the values.
        least: what no such value can be less than, and so neither their mean.

    >>> str(mean_interval([1.0, 3.0])), str(mean_interval([1.0, 3.0], least=1.0))
    ('2.000 [-10.706, 14.706]', '2.000 [1.000, 14.706]')
    """
    mean = fmean(values)
    if alike(values):
        return Interval(mean, -inf, inf)
    if FEWEST <= len(values) <= MOST:
        low, high = mean_bounds(values, CONFIDENCE)
    else:
        half = _STUDENT.get(len(values), _Z) * stdev(values) / sqrt(len(values))
        low, high = mean - half, mean + half
    return Interval(mean, max(least, low), high)


def alike(values: Sequence[float]) -> bool:
    """Whether values are equal up to what rounding does to them: there is no spread to go by.

    >>> alike([0.1 + 0.2, 0.3]), alike([0.3, 0.301])
    (True, False)
    """
    return max(values) - min(values) <= _ROUNDING * max(1.0, abs(max(values)), abs(min(values)))


def share_interval(values: Sequence[float]) -> Interval:
    """95% interval of a mean of independent values that cannot leave 0 to 1, such as shares of successes.

    It is a `mean_interval`, and for fewer than five values, or where there is no spread to go by, Wilson's interval of
    a proportion: no values from 0 to 1 with the same mean have a larger variance than zeros and ones.

    >>> str(share_interval([1.0] * 10)), str(share_interval([0.0, 1.0, 1.0]))
    ('1.000 [0.722, 1.000]', '0.667 [0.208, 0.939]')
    """
    interval = mean_interval(values)
    if len(values) < FEWEST or not isfinite(interval.high):
        return _wilson(min(max(interval.mean, 0.0), 1.0), len(values))
    return Interval(interval.mean, max(0.0, interval.low), min(1.0, interval.high))


def cluster_interval(shares: Sequence[float], trials: int) -> Interval:
    """95% interval of a proportion whose trials are not independent within clusters, such as episodes of one task.

    It is Wilson's interval of as many independent trials as would give the variance that is seen between clusters
    (effective sample size: Kish, 1965, "Survey Sampling", section 8.2), at least one per cluster and at most all. Where
    all clusters agree, there is no spread to go by, and each counts as one trial. In simulations of 3 to 60 clusters it
    covered the truth in 0.86 to 1.00 of the cases, and the normal approximation over clusters in 0.80 to 1.00.

    Args:
        shares: share of successes in each cluster, all of about equal size.
        trials: number of trials in all.

    >>> str(cluster_interval([1.0, 1.0, 0.5], 6))
    '0.833 [0.403, 0.974]'
    """
    mean = fmean(shares)
    variance = stdev(shares) ** 2 / len(shares) if len(shares) > 1 else 0.0
    if not variance:
        return _wilson(mean, len(shares))
    return _wilson(mean, min(max(mean * (1 - mean) / variance, len(shares)), trials))


def pass_at_k(successes: int, trials: int, k: int) -> float:
    """Probability that at least one of k episodes of a task succeeds, estimated without bias.

    Source: Chen et al., 2021, "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374), equation 1.

    >>> pass_at_k(1, 4, 2)
    0.5
    """
    _check_draw(successes, trials, k)
    return 1.0 - comb(trials - successes, k) / comb(trials, k)


def pass_hat_k(successes: int, trials: int, k: int) -> float:
    """Probability that all of k episodes of a task succeed ("pass^k"), estimated without bias.

    Source: Yao et al., 2024, "tau-bench" (arXiv 2406.12045).

    >>> pass_hat_k(3, 4, 2)
    0.5
    """
    _check_draw(successes, trials, k)
    return comb(successes, k) / comb(trials, k)


def _check_draw(successes: int, trials: int, k: int) -> None:
    if not 0 <= successes <= trials or not 1 <= k <= trials:
        raise ValueError(f"{k} of {trials} episodes with {successes} successes cannot be drawn")


def repeated(*parts: Sequence[EpisodeRecord]) -> dict[str, dict[str, Interval]]:
    """pass@k ("any") and pass^k ("all"), means over tasks, for every k up to the fewest episodes of a task in a part.

    Intervals resample tasks (`share_interval`). Episodes whose world broke do not count. It is empty where a task has a
    single episode.

    Args:
        parts: episodes of each setting that is played. In two settings, a task is not repeated: where it is played in
            several, it counts with the mean over these.
    """
    by_task: dict[str, list[tuple[int, int]]] = {}
    for episodes in parts:
        for task, cluster in _by_task(episode for episode in episodes if not episode.broken).items():
            by_task.setdefault(task, []).append((sum(episode.success for episode in cluster), len(cluster)))
    most = min((trials for counts in by_task.values() for _, trials in counts), default=0)
    if most < 2:
        return {}
    return {
        name: {
            str(k): share_interval([fmean(chance(*count, k) for count in counts) for counts in by_task.values()])
            for k in range(1, most + 1)
        }
        for name, chance in (("any", pass_at_k), ("all", pass_hat_k))
    }


def _by_task(episodes: Iterable[EpisodeRecord]) -> dict[str, list[EpisodeRecord]]:
    by_task: dict[str, list[EpisodeRecord]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task, []).append(episode)
    return by_task


def summarize_by_type(episodes: Sequence[EpisodeRecord], *, unit_returns: bool = False) -> dict[str, Summary]:
    """Summaries by type of task, sorted by name; empty where all tasks are of one type. See `summarize`."""
    by_type: dict[str, list[EpisodeRecord]] = {}
    for episode in (episode for episode in episodes if not episode.broken):
        by_type.setdefault(episode.task_type, []).append(episode)
    if len(by_type) < 2:
        return {}
    return {name: summarize(by_type[name], unit_returns=unit_returns) for name in sorted(by_type)}


def summarize(episodes: Sequence[EpisodeRecord], *, unit_returns: bool = False) -> Summary:
    """Summary of some episodes.

    Args:
        episodes: records of the episodes.
        unit_returns: whether no return can leave 0 to 1 (see `Evaluation.unit_returns`), so that its interval cannot.

    Means of what is no success have bootstrap intervals over tasks (`mean_interval`, `share_interval`). Episodes of the
    same task are not independent, so where a task was played several times, the tasks' means are the independent values
    (clustered standard errors: Miller, 2024, "Adding Error Bars to Evals", arXiv 2411.00640, section 2.2, for clusters
    of equal size), and success has a `cluster_interval`. Where each was played once, it has a Wilson interval.

    Raises:
        ValueError: no episode counts.
    """
    broken = sum(bool(episode.broken) for episode in episodes)
    episodes = [episode for episode in episodes if not episode.broken]
    if not episodes:
        raise ValueError(f"no episodes to summarize ({broken} whose world broke)")
    clusters = list(_by_task(episodes).values())
    returns = [fmean(episode.total_reward for episode in cluster) for cluster in clusters]
    scores = [[episode.score for episode in cluster if episode.score is not None] for cluster in clusters]
    efficiencies = [[_efficiency(episode) for episode in cluster] for cluster in clusters]
    actions = sum(episode.turns for episode in episodes)
    return Summary(
        episodes=len(episodes),
        tasks=len(clusters),
        success=_success(clusters),
        total_reward=(share_interval if unit_returns else mean_interval)(returns),
        turns=mean_interval([fmean(episode.turns for episode in cluster) for cluster in clusters], least=0.0),
        invalid=sum(episode.invalid_actions for episode in episodes) / max(1, actions),
        score=share_interval([fmean(cluster) for cluster in scores]) if all(scores) else None,
        broken=broken,
        stopped=sum(bool(episode.stopped) for episode in episodes),
        invalid_share=share_interval(
            [fmean(episode.invalid_actions / max(1, episode.turns) for episode in cluster) for cluster in clusters]
        ),
        efficiency=_mean_of(efficiencies, least=1.0 if _proven_shortest(episodes) else 0.0),
        tokens_per_episode=_mean_of(
            [[episode.tokens for episode in cluster] for cluster in clusters], least=0.0, needs_all=True
        ),
    )


def success_rate(episodes: Sequence[EpisodeRecord]) -> SuccessRate:
    """Success of some episodes, with the interval that `summarize` gives it.

    Raises:
        ValueError: no episode counts.
    """
    clusters = list(_by_task(episode for episode in episodes if not episode.broken).values())
    if not clusters:
        raise ValueError(f"no episodes to summarize ({len(episodes)} whose world broke)")
    return SuccessRate(sum(map(len, clusters)), _success(clusters))


def _success(clusters: Sequence[Sequence[EpisodeRecord]]) -> Interval:
    trials = sum(map(len, clusters))
    if len(clusters) == trials:
        return wilson_interval(sum(episode.success for (episode,) in clusters), trials)
    return cluster_interval([fmean(episode.success for episode in cluster) for cluster in clusters], trials)


def _efficiency(episode: EpisodeRecord) -> float | None:
    """Actions per action of the shortest solution known; `None` unless there is one and the episode was solved."""
    length = (episode.complexity or {}).get("solution_length")
    return episode.turns / length if episode.success and length else None


def _proven_shortest(episodes: Sequence[EpisodeRecord]) -> bool:
    """Whether no solved episode can have had fewer actions than its shortest solution known."""
    return all((episode.complexity or {}).get("exact") for episode in episodes if _efficiency(episode) is not None)


def _mean_of(clusters: Sequence[Sequence[float | None]], *, least: float, needs_all: bool = False) -> Interval | None:
    """Interval of the mean over clusters of what is known in them; `None` where nothing is, or not all."""
    known = [[value for value in cluster if value is not None] for cluster in clusters]
    if needs_all and any(len(some) < len(cluster) for some, cluster in zip(known, clusters, strict=True)):
        return None
    means = [fmean(some) for some in known if some]
    return mean_interval(means, least) if means else None


def success_by_axis(
    episodes: Sequence[EpisodeRecord], axis: str, *, most: int = 4
) -> dict[tuple[float, float], SuccessRate]:
    """Success along a measured axis of difficulty, from easy to hard, by the smallest and largest value of each bin.

    Equal values are in one bin, and bins hold about equally many episodes. Broken ones are left out.

    Args:
        episodes: records of the episodes.
        axis: name of a measurement, such as "solution_length"; episodes without it are left out.
        most: largest number of bins.
    """
    measured: dict[float, list[EpisodeRecord]] = {}
    for episode in episodes:
        value = (episode.complexity or {}).get(axis)
        if value is not None and not episode.broken:
            measured.setdefault(value, []).append(episode)
    bins: list[list[float]] = [[]]
    rest, held = sum(map(len, measured.values())), 0  # Episodes from the last bin on, and in it.
    for value in sorted(measured):
        wanted, more = rest / (most - len(bins) + 1), len(measured[value])
        if bins[-1] and len(bins) < most and abs(held + more - wanted) > abs(held - wanted):
            bins.append([])
            rest, held = rest - held, 0
        bins[-1].append(value)
        held += more
    return {
        (values[0], values[-1]): success_rate([episode for value in values for episode in measured[value]])
        for values in bins
        if values
    }


def interquartile_mean(scores: Sequence[Sequence[float]], *, resamples: int = 2_000, seed: int = 0) -> Interval:
    """Interquartile mean over runs and tasks, with its 95% interval by stratified bootstrap.

    A quarter of the values is left out at each end. Runs are drawn again within each task, percentiles are taken.
    Source: Agarwal et al., 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv
    2108.13264), sections 4.1 and 4.3. A single run per task says nothing of
    others, and runs that agree in every task have no spread: the interval is then unbounded.

    Args:
        scores: score of each run (such as seeds of training) in each task, shape (tasks, runs); as many runs
            everywhere.
        resamples: number of times that runs are drawn again.
        seed: seed of the drawing.

    Raises:
        ValueError: there are no scores, or tasks have different numbers of runs.

    >>> interquartile_mean([[0.0, 0.5], [1.0, 0.5]]).mean
    0.5
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim != 2 or not values.size:
        raise ValueError("scores must be of shape (tasks, runs), with as many runs of each task")
    tasks, runs = values.shape
    mean = _trimmed(values.reshape(1, -1))[0]
    if (values == values[:, :1]).all():
        return Interval(float(mean), -inf, inf)
    drawn = np.random.default_rng(seed).integers(runs, size=(resamples, tasks, runs))
    again = values[np.arange(tasks)[None, :, None], drawn]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(_trimmed(again.reshape(resamples, -1)), [tail, 100 - tail])
    return Interval(float(mean), float(low), float(high))


def _trimmed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each row without its lowest and highest quarter, shape (rows,)."""
    cut = values.shape[1] // 4
    middle = np.sort(values, axis=1)[:, cut : values.shape[1] - cut]
    return np.asarray(middle.mean(axis=1))
