"""Success over the axes of difficulty, and returns over reward density."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.results import LIGHTS
from textagent_gym.evaluation import (
    EpisodeRecord,
    Part,
    Result,
    Suite,
    evaluate_suite,
    summarize,
    wilson_interval,
)
from textagent_gym.leaderboard.charts import Point, bins, curve, density_curve, heat_map

WON = EpisodeRecord("t", 0, ("a", "b"), (0.0, 1.0), True, True, False)


def played(number: int, length: int, size: int, success: bool) -> EpisodeRecord:
    measured = {"solution_length": length, "state_size": size, "action_size": None}
    return replace(WON, task=f"task {number}", success=success, complexity=measured, tokens=10)


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(1, 6))
def test_every_value_is_in_exactly_one_bin(values: list[int], most: int) -> None:
    result = bins(values, most)
    assert len(result) <= most
    assert all(sum(value in each for each in result) == 1 for value in values)


def test_a_curve_has_the_successes_of_each_value_with_their_intervals() -> None:
    episodes = [played(n, length=2 + n % 2, size=5, success=n % 2 == 0) for n in range(10)]
    points = curve(episodes, "solution_length")
    assert [(point.label, point.success, point.episodes) for point in points] == [
        ("2", wilson_interval(5, 5), 5),
        ("3", wilson_interval(0, 5), 5),
    ]


def test_what_does_not_differ_or_is_unknown_has_no_curve() -> None:
    episodes = [played(n, length=n, size=5, success=True) for n in range(10)]
    assert curve(episodes, "state_size") == []
    assert curve(episodes, "action_size") == []
    assert heat_map(episodes, "solution_length", "state_size") is None


def test_a_heat_map_counts_every_episode_once() -> None:
    episodes = [played(n, length=n % 3 + 1, size=n % 2, success=n % 3 == 0) for n in range(12)]
    chart = heat_map(episodes, "solution_length", "state_size")
    assert chart is not None
    cells = [cell for _, row in chart.rows for cell in row if cell is not None]
    assert sum(cell.episodes for cell in cells) == 12
    assert [cell.success.mean for cell in cells] == [1.0, 0.0, 0.0] * 2


def played_at_densities(parts: tuple[Part, ...], folder: Path) -> tuple[Result, list[Point]]:
    result = evaluate_suite(Suite(name="lights-density-v1", summary="", parts=parts), "admissible-random", folder / "r")
    return result, density_curve(result, {part.name: float("reward_density" in part.kwargs) for part in parts})


def test_returns_over_density_are_those_of_parts_that_differ_in_nothing_else(tmp_path: Path) -> None:
    sparse = Part(name="sparse", env=LIGHTS, max_turns=4, tasks=8)
    dense = replace(sparse, name="dense", kwargs={"reward_density": "dense"})
    other = replace(dense, name="other", max_turns=30)
    result, points = played_at_densities((sparse, dense, other), tmp_path)
    for point, label, part in zip(points, ("0", "1"), (sparse, dense), strict=True):
        expected = summarize(result.evaluations[part.name].episodes, unit_returns=True)
        assert (point.label, point.success, point.total_reward) == (label, expected.success, expected.total_reward)
        assert point.episodes == 8
    assert points[0].success == points[1].success
    assert points[0].total_reward != points[1].total_reward


def test_densities_of_other_tasks_are_not_compared(tmp_path: Path) -> None:
    sparse = Part(name="sparse", env=LIGHTS, max_turns=4, tasks=3)
    dense = replace(sparse, name="dense", first=3, kwargs={"reward_density": "dense"})
    assert played_at_densities((sparse, dense), tmp_path)[1] == []


def test_broken_episodes_count_nowhere() -> None:
    broken = replace(played(0, 2, 2, False), broken="gone")
    assert curve([broken, broken], "solution_length") == []
