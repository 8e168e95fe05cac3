"""Success over the axes of difficulty, and returns over reward density, as tables and curves that a page draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from textagent_gym.evaluation import EpisodeRecord, Interval, Result, SuccessRate, success_rate, summarize

AXES = {"state_size": "state size", "action_size": "action size", "solution_length": "solution length"}
"""What is measured in a task (see `Complexity`), and how a page names it."""
MAPS = (("solution_length", "state_size"), ("solution_length", "action_size"))
"""Axes of the heat maps: columns and rows."""
_MOST_BINS = 6  # Points of a curve: with a hundred episodes, more have intervals too long to tell anything.
_MOST_CELLS = 4  # Rows and columns of a heat map, for the same reason.


@dataclass(frozen=True, slots=True)
class Bin:
    """Values of an axis that are taken together.

    Attributes:
        low, high: smallest and largest value, both included.
    """

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        return shown(self.low) if self.low == self.high else f"{shown(self.low)} to {shown(self.high)}"


@dataclass(frozen=True, slots=True)
class Point:
    """Success within a bin, or at a density.

    Attributes:
        label: values of the axis.
        x: mean of the values, as it is shown.
        success: share of successes, with its interval.
        episodes: number of episodes.
        total_reward: mean return, with its interval; `None` where densities may differ.
    """

    label: str
    x: str
    success: Interval
    episodes: int
    total_reward: Interval | None = None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Success over two axes.

    Attributes:
        across, down: names of the axes.
        columns: labels of the columns.
        rows: label and cells of each row; a cell is `None` where nothing was played.
    """

    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[SuccessRate | None, ...]], ...]


def shown(value: float) -> str:
    """A value of an axis, short enough to stand below a point of a curve.

    >>> [shown(value) for value in (4, 17.6667, 117_226.0, 2.5e9)]
    ['4', '17.7', '117,226', '2.5e+09']
    """
    return f"{value:,.0f}" if 1_000 <= value < 1_000_000 else f"{value:.3g}"


def bins(values: Sequence[float], most: int) -> list[Bin]:
    """Bins that hold about equally many of some values; a bin per value where there are few different ones.

    >>> [str(each) for each in bins([1, 2, 2, 3, 4, 9], 3)]
    ['1 to 2', '3 to 4', '9']
    """
    ordered, distinct = sorted(values), sorted(set(values))
    if len(distinct) <= most:
        return [Bin(value, value) for value in distinct]
    result: list[Bin] = []
    waiting = distinct
    for left in range(most, 0, -1):
        if not waiting:
            break
        remaining = [value for value in ordered if value >= waiting[0]]
        edge = remaining[-1] if left == 1 else remaining[(len(remaining) - 1) // left]
        result.append(Bin(waiting[0], edge))
        waiting = [value for value in waiting if value > edge]
    return result


def axis_value(episode: EpisodeRecord, axis: str) -> float | None:
    """What was measured in the task of an episode on an axis; `None` if it is unknown."""
    value = (episode.complexity or {}).get(axis)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def curve(episodes: Sequence[EpisodeRecord], axis: str) -> list[Point]:
    """Success over an axis; empty where nothing is known or nothing differs."""
    pairs = _measured(episodes, axis)
    kept = bins([value for value, _ in pairs], _MOST_BINS)
    points = []
    for each in kept if len(kept) > 1 else ():
        inside = [(value, episode) for value, episode in pairs if value in each]
        rate = success_rate([episode for _, episode in inside])
        points.append(Point(str(each), shown(fmean(value for value, _ in inside)), rate.success, rate.episodes))
    return points


def density_curve(result: Result, densities: Mapping[str, float]) -> list[Point]:
    """Success and return over the density of rewards, of parts that differ in nothing else; empty without such parts.

    Args:
        result: result of a suite.
        densities: density of each part, by its name.
    """
    alike: dict[str, dict[float, str]] = {}
    for part in result.suite.parts:
        settings = {name: value for name, value in part.kwargs.items() if name != "reward_density"}
        alike.setdefault(repr(replace(part, name="", kwargs=settings)), {})[densities[part.name]] = part.name
    whole = [names for names in alike.values() if set(names) == set(densities.values())]
    points = []
    for density in sorted(set(densities.values())) if len(set(densities.values())) > 1 else ():
        evaluations = [result.evaluations[names[density]] for names in whole]
        episodes = [episode for each in evaluations for episode in each.episodes if not episode.broken]
        if episodes:
            unit_returns = all(each.unit_returns for each in evaluations)
            total = summarize(episodes, unit_returns=unit_returns)
            points.append(Point(shown(density), shown(density), total.success, total.episodes, total.total_reward))
    return points if len(points) > 1 else []


def heat_map(episodes: Sequence[EpisodeRecord], across: str, down: str) -> HeatMap | None:
    """Success over two axes; `None` where one of them is unknown or does not differ."""
    known = [episode for episode in episodes if not episode.broken]
    known = [episode for episode in known if None not in (axis_value(episode, across), axis_value(episode, down))]
    columns = bins([axis_value(episode, across) or 0.0 for episode in known], _MOST_CELLS)
    rows = bins([axis_value(episode, down) or 0.0 for episode in known], _MOST_CELLS)
    if len(columns) < 2 or len(rows) < 2:
        return None

    def cell(row: Bin, column: Bin) -> SuccessRate | None:
        inside = [e for e in known if axis_value(e, across) in column and axis_value(e, down) in row]
        return success_rate(inside) if inside else None

    cells = tuple((str(row), tuple(cell(row, column) for column in columns)) for row in rows)
    return HeatMap(AXES[across], AXES[down], tuple(str(column) for column in columns), cells)


def _measured(episodes: Sequence[EpisodeRecord], axis: str) -> list[tuple[float, EpisodeRecord]]:
    pairs = [(axis_value(episode, axis), episode) for episode in episodes if not episode.broken]
    return [(value, episode) for value, episode in pairs if value is not None]
