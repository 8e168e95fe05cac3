"""Intervals of clusters, repeated episodes, paired comparisons."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import combinations, product
from math import inf
from pathlib import Path

import pytest

from tests.cli.program import call
from tests.evaluation.results import LIGHTS
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import (
    EpisodeRecord,
    cluster_interval,
    compare,
    evaluate,
    interquartile_mean,
    load,
    pass_at_k,
    pass_hat_k,
    repeated,
    save,
    share_interval,
    success_by_axis,
    summarize,
    wilson_interval,
)
from textagent_gym.evaluation.comparison import difference_interval, sign_test


def record(task: str, success: bool, broken: str = "") -> EpisodeRecord:
    return EpisodeRecord(task, 0, ("a",), (float(success),), success, success, not success, broken=broken)


def records(*successes: bool) -> list[EpisodeRecord]:
    return [record(f"t{number}", success) for number, success in enumerate(successes)]


@pytest.mark.parametrize(("tasks", "repeats"), [(3, 2), (5, 4), (20, 4), (60, 2)])
def test_intervals_of_clusters_cover_the_truth_about_as_often_as_they_say(tasks: int, repeats: int) -> None:
    draw = random.Random(0)
    covered = 0
    for _ in range(400):
        chances = [draw.random() for _ in range(tasks)]
        shares = [sum(draw.random() < chance for _ in range(repeats)) / repeats for chance in chances]
        interval = cluster_interval(shares, tasks * repeats)
        covered += interval.low <= 0.5 <= interval.high
    assert covered / 400 >= 0.90


def test_the_interval_of_clusters_lies_between_that_of_clusters_and_that_of_episodes() -> None:
    assert cluster_interval([1.0] * 3, 12) == wilson_interval(3, 3)  # Nothing is known of the spread.
    assert cluster_interval([1.0, 0.0] * 5, 40) == wilson_interval(5, 10)  # Episodes of a task all go alike.
    spread = cluster_interval([0.5, 0.5, 0.5, 0.25, 0.75] * 4, 80)  # Episodes of a task hardly depend on it.
    assert spread == wilson_interval(40, 80)


@pytest.mark.parametrize(
    ("successes", "trials", "k"), [(c, n, k) for n in (1, 4, 5) for c in range(n + 1) for k in (1, n)]
)
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_draws(successes: int, trials: int, k: int) -> None:
    draws = list(combinations([True] * successes + [False] * (trials - successes), k))
    assert pass_at_k(successes, trials, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(successes, trials, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@pytest.mark.parametrize(("successes", "trials", "k"), [(1, 4, 5), (1, 4, 0), (5, 4, 1), (-1, 4, 1)])
def test_more_episodes_than_there_are_cannot_be_drawn(successes: int, trials: int, k: int) -> None:
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="cannot be drawn"):
            estimate(successes, trials, k)


def test_repeated_episodes_are_means_over_tasks() -> None:
    episodes = [record("a", True), record("a", False), record("b", True), record("b", True), record("b", False, "gone")]
    means = {name: {k: share.mean for k, share in shares.items()} for name, shares in repeated(episodes).items()}
    assert means == {"any": {"1": 0.75, "2": 1.0}, "all": {"1": 0.75, "2": 0.5}}
    assert repeated(records(True, False)) == {}
    assert repeated([]) == {}


def test_intervals_of_repeated_episodes_are_those_of_means_over_tasks() -> None:
    episodes = [record(f"t{task}", repeat < task) for task in range(5) for repeat in range(4)]
    shares = repeated(episodes)
    assert shares["any"]["2"] == share_interval([pass_at_k(task, 4, 2) for task in range(5)])
    assert shares["all"]["4"] == share_interval([pass_hat_k(task, 4, 4) for task in range(5)])
    won = repeated([record(f"t{task}", True) for task in range(6) for _ in range(2)])
    assert won["all"]["2"] == wilson_interval(6, 6)  # Nothing is known of the spread.


def test_the_sign_test_is_that_of_every_outcome_counted() -> None:
    for better, worse in product(range(7), range(7)):
        trials = better + worse
        outcomes = list(product((0, 1), repeat=trials))
        as_uneven = [each for each in outcomes if abs(2 * sum(each) - trials) >= abs(better - worse)]
        assert sign_test(better, worse) == pytest.approx(len(as_uneven) / len(outcomes))


def test_the_sign_test_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs: pip install scipy")
    for better, worse in ((0, 1), (3, 12), (40, 61), (500, 450)):
        expected = stats.binomtest(better, better + worse, 0.5).pvalue
        assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)


def test_the_interval_of_a_difference_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs: pip install scipy")
    import numpy as np

    values = [1.0] * 20 + [0.0] * 60 + [-1.0] * 8
    expected = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=1).confidence_interval
    interval = difference_interval(values)
    assert interval.mean == pytest.approx(12 / 88)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.015)


def test_the_interval_of_a_difference_covers_the_truth_about_as_often_as_it_says() -> None:
    draw, covered = random.Random(0), 0
    for _ in range(60):
        differences = [float((draw.random() < 0.6) - (draw.random() < 0.4)) for _ in range(40)]
        interval = difference_interval(differences)
        covered += interval.low <= 0.2 <= interval.high
    assert covered / 60 >= 0.85


def test_the_interval_of_equal_differences_does_not_collapse() -> None:
    none, all_better = difference_interval([0.0] * 10), difference_interval([1.0] * 10)
    assert none.low == -none.high
    assert none.high == wilson_interval(0, 10).high  # The share of tasks that differ, of which there was none in ten.
    assert all_better.low < 0.5
    assert all_better.high == 1.0
    assert math.isfinite(difference_interval([1.0]).low)


def test_values_that_differ_by_rounding_have_no_spread() -> None:
    rounded = [3 / 5 - 2 / 5, 1 / 5 - 0, 1.0 - 0.8]
    assert len(set(rounded)) > 1
    fifth = difference_interval([0.2] * 3)
    assert (difference_interval(rounded).low, difference_interval(rounded).high) == pytest.approx(
        (fifth.low, fifth.high)
    )
    assert difference_interval([1e-17, 0.0, -1e-17]) == difference_interval([0.0] * 3)
    shares = share_interval([0.1 + 0.2] * 5 + [0.3] * 5)
    assert (shares.low, shares.high) == pytest.approx((0.108, 0.603), abs=1e-3)


def test_every_proportion_lies_in_its_interval() -> None:
    for trials in range(1, 400):
        for successes in {0, 1, trials}:
            interval = wilson_interval(successes, trials)
            assert 0.0 <= interval.low <= interval.mean <= interval.high <= 1.0


def test_a_comparison_pairs_tasks_and_leaves_out_what_broke() -> None:
    first = {"p": records(True, False, False, True), "q": [record("u", False)]}
    second = {"p": [*records(True, True, True), record("t3", False, "gone")], "q": [record("u", True)]}
    result = compare(first, second)
    assert (result.tasks, result.left_out, result.better, result.worse) == (4, 1, 3, 0)
    assert (result.first, result.second) == (wilson_interval(1, 4), wilson_interval(4, 4))
    assert result.difference.mean == 0.75
    assert result.p_value == 0.25
    back = compare(second, first)
    assert (back.better, back.worse, back.p_value) == (0, 3, 0.25)


def test_a_task_that_several_parts_play_is_one_task() -> None:
    first, second = records(True, False, False, True), records(True, True, False, False)
    once, twice = compare({"p": first}, {"p": second}), compare({"p": first, "q": first}, {"p": second, "q": second})
    assert once == twice
    longer = compare({"p": first, "q": first}, {"p": second, "q": records(True, True, True, True)})
    assert (longer.tasks, longer.better, longer.worse, longer.difference.mean) == (4, 2, 1, 0.25)
    assert longer.second == cluster_interval([1.0, 1.0, 0.5, 0.5], 8)
    gone = compare({"p": first, "q": first}, {"p": second, "q": [*second[:3], record("t3", False, "gone")]})
    assert (gone.tasks, gone.left_out) == (3, 1)


def test_two_settings_of_a_task_are_no_two_episodes_of_it() -> None:
    short, long = records(True, False), records(True, True)
    assert repeated(short, long) == {}
    twice = [record("t0", True), record("t0", False), record("t1", False), record("t1", False)]
    shares = repeated(twice, [*long, *long])
    assert {name: [share.mean for share in each.values()] for name, each in shares.items()} == {
        "any": [0.625, 0.75],
        "all": [0.625, 0.5],
    }


def test_results_of_other_tasks_are_not_compared() -> None:
    with pytest.raises(InvalidOptionError, match="1 are in one of them only"):
        compare({"": records(True)}, {"": records(True, False)})
    with pytest.raises(InvalidOptionError, match="no task in common"):
        compare({"": records(True)}, {"": [record("t0", False, "gone")]})


def test_compare_prints_the_difference(tmp_path: Path) -> None:
    for agent in ("oracle", "random"):
        evaluate(LIGHTS, agent, tasks=12, path=tmp_path / agent)
    evaluate(LIGHTS, "oracle", tasks=12, path=tmp_path / "other", kwargs={"split": "test"})
    done = call("compare", str(tmp_path / "random"), str(tmp_path / "oracle"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    row = next(number for number, line in enumerate(lines) if line.split()[:1] == ["all"])
    assert lines[row].split() == ["all", "12", "0.00", "1.00", "1.000", "12", "0", "0.0005"]
    floor, ceiling = wilson_interval(0, 12), wilson_interval(12, 12)
    bounds = f"[0.00, {floor.high:.2f}] [{ceiling.low:.2f}, 1.00] [{2 * ceiling.low - 1:.3f}, 1.000]"
    assert lines[row + 1].split() == bounds.split()
    for which, agent in (("first", "random"), ("second", "oracle")):
        summary = summarize(load(tmp_path / agent).episodes)
        line = f"{which}: turns {summary.turns}, share of invalid actions {summary.invalid_share}"
        assert line in " ".join(done.stdout.split())
    refused = call("compare", str(tmp_path / "random"), str(tmp_path / "other"))
    assert refused.returncode == 2
    assert "nothing to compare" in " ".join(refused.stderr.split())


def test_compare_says_how_many_episodes_broke(tmp_path: Path) -> None:
    played = evaluate(LIGHTS, "oracle", tasks=3, episodes=2, path=tmp_path / "whole")
    lost = replace(played.episodes[1], broken="gone", success=False)
    save(replace(played, episodes=(played.episodes[0], lost, *played.episodes[2:])), tmp_path / "broken")
    done = call("compare", str(tmp_path / "whole"), str(tmp_path / "broken"))
    assert "Broken episodes of the second result, which do not count: 1." in done.stdout
    assert "episodes of the first" not in done.stdout


def measured(length: int, turns: int, success: bool, tokens: int | None = None, exact: bool = False) -> EpisodeRecord:
    return EpisodeRecord(
        f"t{length}-{turns}-{success}", 0, ("a",) * turns, (0.0,) * turns, success, success, not success,
        complexity={"solution_length": length, "exact": exact}, tokens=tokens, invalid_actions=turns // 2,
    )  # fmt: skip


def test_efficiency_is_of_solved_episodes_and_tokens_of_all() -> None:
    summary = summarize([measured(4, 4, True, 10), measured(4, 8, True, 20), measured(4, 40, False, 60)])
    assert summary.efficiency is not None
    assert summary.tokens_per_episode is not None
    assert summary.invalid_share is not None
    assert summary.efficiency.mean == 1.5
    assert summary.tokens_per_episode.mean == 30
    assert summary.invalid_share.mean == 0.5
    assert summarize([measured(4, 40, False)]).efficiency is None
    assert summarize([measured(4, 4, True, 10), measured(4, 8, True)]).tokens_per_episode is None


@pytest.mark.parametrize(("exact", "least"), [(True, 1.0), (False, 0.0)])
def test_no_bound_lies_where_no_mean_can(exact: bool, least: float) -> None:
    lengths = ((4, 4, 1), (4, 24, 900))  # Student's interval of two such numbers reaches below zero.
    summary = summarize([measured(length, turns, True, tokens, exact) for length, turns, tokens in lengths])
    assert summary.efficiency is not None
    assert summary.tokens_per_episode is not None
    assert (summary.efficiency.low, summary.turns.low, summary.tokens_per_episode.low) == (least, 0.0, 0.0)


def test_success_along_an_axis_is_that_of_bins_that_hold_equal_values_together() -> None:
    episodes = [measured(length, length, length < 5) for length in (2, 2, 3, 3, 3, 4, 5, 5, 8)]
    bins = success_by_axis(episodes, "solution_length", most=2)
    assert {bounds: rate.episodes for bounds, rate in bins.items()} == {(2, 3): 5, (4, 8): 4}
    assert [rate.success.mean for rate in bins.values()] == [1.0, pytest.approx(1 / 3)]
    assert bins[4, 8].success == summarize([episode for episode in episodes if episode.turns > 3]).success
    assert success_by_axis(episodes, "beauty") == {}
    assert sum(rate.episodes for rate in success_by_axis(episodes, "solution_length", most=50).values()) == 9
    assert len(success_by_axis(episodes, "solution_length", most=50)) == 5


def test_bins_of_an_axis_are_about_equal_where_one_value_is_common() -> None:
    values = {12: 1, 13: 2, 14: 1, 15: 7, 16: 3, 17: 1, 18: 2, 20: 2, 21: 1}
    measured = [value for value, count in values.items() for _ in range(count)]
    episodes = [
        replace(record(f"t{number}", True), complexity={"action_size": value}) for number, value in enumerate(measured)
    ]
    bins = success_by_axis(episodes, "action_size")
    assert {bounds: rate.episodes for bounds, rate in bins.items()} == {
        (12, 14): 4,
        (15, 15): 7,
        (16, 17): 4,
        (18, 21): 5,
    }


def test_the_interquartile_mean_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs: pip install scipy")
    import numpy as np

    scores = np.random.default_rng(0).random((12, 5))
    interval = interquartile_mean(scores.tolist())
    assert interval.mean == pytest.approx(stats.trim_mean(scores.ravel(), 0.25))
    # Runs of each task are drawn again, all tasks together, as multi-sample bootstrap does.
    means = stats.bootstrap(
        tuple(scores), lambda *tasks, axis: stats.trim_mean(np.concatenate(tasks, axis), 0.25, axis),
        n_resamples=2_000, method="percentile", rng=1, vectorized=True, axis=-1,
    ).confidence_interval  # fmt: skip
    assert (interval.low, interval.high) == pytest.approx((means.low, means.high), abs=0.01)


def test_the_interquartile_mean_of_runs_that_agree_says_nothing_of_others() -> None:
    interval = interquartile_mean([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
    assert (interval.mean, interval.low, interval.high) == (0.5, -inf, inf)
    assert interquartile_mean([[0.0, 0.0], [0.5, 0.25]]).high < inf


def test_the_interquartile_mean_of_one_run_says_nothing_of_others() -> None:
    interval = interquartile_mean([[0.0], [0.5], [0.5], [1.0]])
    assert interval.mean == 0.5
    assert str(interval).endswith("[n/a]")
    for wrong in ([], [[0.0], [0.1, 0.2]]):
        with pytest.raises(ValueError):
            interquartile_mean(wrong)
