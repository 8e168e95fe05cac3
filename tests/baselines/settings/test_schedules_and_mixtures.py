"""Schedules against loops written from the papers, shares of a mixture against their exact bounds, and spellings."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tyro
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines import grpo
from baselines.command_line import read_config
from baselines.envs.curriculum import Curriculum, rank
from baselines.settings.mixture import Component, components_of, deal, parse_mixture, spell_mixture
from baselines.settings.schedule import BySuccess, Stepwise
from textagent_gym.errors import InvalidOptionError

RATES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan]), max_size=40)
WEIGHTS = st.lists(st.floats(0.01, 100), min_size=1, max_size=6)
BASIS: dict[str, Any] = {"model": "m", "env": "lights/Lights-v0", "out": Path("o")}


@given(first=st.integers(1, 10), delta=st.integers(1, 10), levels=st.integers(1, 6), every=st.integers(1, 7))
def test_the_stepwise_horizon_is_that_of_scaling_inter_rl(first: int, delta: int, levels: int, every: int) -> None:
    """h_0 is the first budget; every d iterations h grows by delta, until the largest is reached."""
    horizons = [first + delta * level for level in range(levels)]
    schedule = Stepwise(levels, every)
    horizon = first
    for iteration in range(every * levels + 10):
        if iteration and iteration % every == 0:
            horizon = min(horizon + delta, first + delta * (levels - 1))
        assert horizons[schedule.level([0.0] * iteration)] == horizon


@given(rates=RATES, levels=st.integers(2, 4), bound=st.sampled_from([0.25, 0.5, 0.7, 1.0]), window=st.integers(1, 4))
def test_a_level_rises_when_the_iterations_of_that_level_succeed(
    rates: list[float], levels: int, bound: float, window: int
) -> None:
    schedule = BySuccess(levels, bound, window)
    level, since = 0, list[float]()
    for iteration, rate in enumerate(rates):
        assert schedule.level(rates[:iteration]) == level
        if math.isnan(rate):  # Nothing was played that counts.
            continue
        since.append(rate)
        last = since[-window:]
        if len(last) == window and sum(last) >= bound * window and level + 1 < levels:
            level, since = level + 1, []
    assert schedule.level(rates) == level


def test_a_level_by_success_by_hand() -> None:
    rates = [0.2, 0.9, 0.8, 0.9, 0.1, 0.9, 0.9, 1.0]
    levels = [BySuccess(levels=3, bound=0.8, window=2).level(rates[:n]) for n in range(9)]
    # After (0.9 + 0.8) / 2 the mean begins anew, so (0.8 + 0.9) / 2 does not count; (0.9 + 0.9) / 2 does.
    assert levels == [0, 0, 0, 1, 1, 1, 1, 2, 2]


@given(weights=WEIGHTS, count=st.integers(1, 50), seed=st.integers(0, 1000))
def test_a_component_gets_its_share_of_the_groups_up_to_rounding(weights: list[float], count: int, seed: int) -> None:
    dealt = Counter(deal(weights, count, seed).tolist())
    assert dealt.total() == count
    for number, weight in enumerate(weights):
        share = count * weight / math.fsum(weights)
        assert math.floor(share - 1e-9) <= dealt[number] <= math.ceil(share + 1e-9)


def test_shares_are_exact_on_average_and_in_no_order() -> None:
    weights, count, iterations = [1.0, 0.0, 2.0, 0.3], 5, 4000
    dealt = np.array([deal(weights, count, seed) for seed in range(iterations)])
    expected = count * np.array(weights) / sum(weights)
    observed = np.array([(dealt == number).sum() for number in range(4)]) / iterations
    # A count is one of two neighbours, so its deviation is at most 1/2: five standard errors.
    assert np.abs(observed - expected).max() < 5 * 0.5 / math.sqrt(iterations)
    assert observed[1] == 0
    # The first group is as often of each component as any other.
    assert (dealt[:, 0] == 0).mean() == pytest.approx(1 / 3.3, abs=0.04)
    assert (deal(weights, count, 7) == deal(weights, count, 7)).all()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20),
    st.sampled_from([["state_size"], ["solution_length"], ["state_size", "solution_length"]]),
)
@settings(max_examples=50)
def test_tasks_are_ranked_by_the_number_of_easier_tasks(sizes: list[tuple[int, int]], axes: list[str]) -> None:
    measured: list[dict[str, float | None]] = [{"state_size": a, "solution_length": b} for a, b in sizes]

    def easier(task: dict[str, float | None]) -> int:
        return sum(other[axis] < task[axis] for axis in axes for other in measured)  # type: ignore[operator]

    expected = sorted(range(len(sizes)), key=lambda index: (easier(measured[index]), index))
    assert rank(measured, axes).tolist() == expected


def curriculum(**fields: Any) -> Curriculum:
    lights = Component("lights/Lights-v0")
    basis: dict[str, Any] = {
        "components": (lights,),
        "horizon": (),
        "horizon_schedule": Stepwise(1, 1),
        "levels": 0,
        "difficulty_schedule": Stepwise(1, 1),
        "ladder": 0,
        "tasks": (),
    }
    return Curriculum(**{**basis, **fields})


def test_the_last_level_plays_all_tasks_and_each_level_those_of_the_one_before() -> None:
    tasks = np.array([4, 2, 0, 1, 3, 6, 5])
    leveled = curriculum(levels=3, difficulty_schedule=Stepwise(3, 1), tasks=(tasks,))
    assert [leveled.tasks_of(0, level).tolist() for level in range(3)] == [
        [4, 2, 0],
        [4, 2, 0, 1, 3],
        [4, 2, 0, 1, 3, 6, 5],
    ]
    drawn = [options["task_index"] for seed in range(50) for options in leveled.options(leveled.stage([]), 4, seed)]
    assert set(drawn) == {4, 2, 0}


def test_the_rungs_of_a_ladder_share_the_weight_of_their_environment() -> None:
    rungs = [Component("lights/Lights-v0", {"switches": n}) for n in (1, 2, 3)]
    other = Component("other/Other-v0", weight=0.5)
    leveled = curriculum(components=(*rungs, other), levels=3, difficulty_schedule=Stepwise(3, 1), ladder=3)
    assert [leveled.weights(level) for level in range(3)] == [
        [1.0, 0.0, 0.0, 0.5],
        [0.5, 0.5, 0.0, 0.5],
        [pytest.approx(1 / 3)] * 3 + [0.5],
    ]


def test_without_a_curriculum_episodes_have_no_options() -> None:
    plain = curriculum()
    assert plain.options(plain.stage([0.5] * 9), 3, seed=0) == [None, None, None]
    assert plain.metrics(plain.stage([])) == {}


def test_the_stage_is_in_the_metrics() -> None:
    both = curriculum(
        horizon=(5, 10, 20),
        horizon_schedule=Stepwise(3, 2),
        levels=4,
        difficulty_schedule=BySuccess(4, 0.5, 1),
        tasks=(np.arange(8),),
    )
    rates = [0.0, 0.5, 1.0, 0.2, 0.2]
    stages = [both.metrics(both.stage(rates[:n])) for n in range(6)]
    assert [stage["max_turns"] for stage in stages] == [5, 5, 10, 10, 20, 20]
    assert [stage["level"] for stage in stages] == [1, 1, 2, 3, 3, 3]


def test_a_mixture_is_spelled_in_words_and_in_a_recipe() -> None:
    words = ["textagent/ALFWorld-v0=0.5", "receptacles=5", "reward_density=dense", "lights/Lights-v0"]
    entries = parse_mixture(words)
    assert components_of(entries) == (
        Component("textagent/ALFWorld-v0", {"receptacles": 5, "reward_density": "dense"}, 0.5),
        Component("lights/Lights-v0", {}, 1.0),
    )
    assert parse_mixture(spell_mixture(entries)) == entries
    assert components_of([{"env": "lights/Lights-v0"}]) == (Component("lights/Lights-v0"),)


def test_curricula_come_from_the_command_line() -> None:
    line = (
        "--model m --out o --env lights/Lights-v0 --mixture lights/Lights-v0=2 switches=2 --horizon 5 10 "
        "--horizon-every 3 --difficulty switches=1 switches=3,turn_penalty=0.1 --difficulty-success 0.5"
    )
    config = tyro.cli(grpo.Config, args=line.split())
    assert config.mixture == [{"env": "lights/Lights-v0", "set": {"switches": 2}, "weight": 2.0}]
    assert config.horizon == (5, 10)
    assert config.difficulty == ("switches=1", "switches=3,turn_penalty=0.1")
    plain = tyro.cli(grpo.Config, args=line.split()[:6])
    assert (plain.mixture, plain.horizon, plain.difficulty) == ([], (), ())


def test_curricula_come_from_a_recipe_that_the_command_line_overrides(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "model: m\nout: o\nenv: lights/Lights-v0\nhorizon: [5, 10]\nhorizon_every: 3\ndifficulty: [state_size]\n"
        "difficulty_success: 0.5\nmixture:\n  - {env: lights/Lights-v0, set: {switches: 2}, weight: 2}\n"
    )
    config = read_config(grpo.Config, ["--config", str(recipe)])
    assert config.mixture == [{"env": "lights/Lights-v0", "set": {"switches": 2}, "weight": 2}]
    assert (config.horizon, config.difficulty) == ((5, 10), ("state_size",))
    other = read_config(grpo.Config, ["--config", str(recipe), "--horizon", "7", "8", "--mixture", "lights/Lights-v0"])
    assert other.horizon == (7, 8)
    assert other.mixture == [{"env": "lights/Lights-v0", "set": {}, "weight": 1.0}]


def test_the_environments_of_a_mixture_are_spelled_as_env_is(tmp_path: Path) -> None:
    whole = [
        {"env": "textagent/ALFWorld-v0", "set": {"receptacles": 5}, "weight": 0.5},
        {"env": "textagent_gym:lights/Lights-v0", "set": {"switches": 2}, "weight": 1.0},
    ]
    required = ["--model", "m", "--out", "o", "--env", "lights/Lights"]
    words = ["--mixture", "ALFWorld=0.5", "receptacles=5", "textagent_gym:lights/Lights", "switches=2"]
    assert read_config(grpo.Config, [*required, *words]).mixture == whole
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "mixture:\n  - {env: ALFWorld, set: {receptacles: 5}, weight: 0.5}\n"
        "  - {env: 'textagent_gym:lights/Lights', set: {switches: 2}, weight: 1.0}\n"
    )
    assert read_config(grpo.Config, [*required, "--config", str(recipe)]).mixture == whole


@pytest.mark.parametrize("second", [["--mixture", "ALFWorld"], ["--mixture=ALFWorld"]])
def test_a_second_mixture_is_refused(second: list[str]) -> None:
    words = ["--model", "m", "--out", "o", "--env", "lights/Lights", "--mixture", "lights/Lights=2", *second]
    with pytest.raises(InvalidOptionError, match="--mixture is given twice"):
        read_config(grpo.Config, words)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"horizon": (5, 10)}, "horizon of 2 levels needs horizon_every or horizon_success, got neither"),
        ({"horizon": (5, 10), "horizon_every": 2, "horizon_success": 0.5}, "got horizon_every=2 and horizon_success="),
        ({"horizon": (5,), "horizon_every": 2}, "horizon_every=2 needs a horizon of at least two levels"),
        ({"horizon_success": 0.5}, "horizon_success=0.5 needs a horizon"),
        ({"horizon": (0,)}, "horizon must be whole numbers from 1, got 0"),
        ({"horizon": (5, 10), "horizon_every": 0}, "horizon_every must be at least 1"),
        ({"horizon": (5, 10), "horizon_success": 1.5}, "horizon_success must be above 0 and at most 1"),
        ({"horizon": (5, 10), "horizon_success": math.nan}, "horizon_success must be above 0 and at most 1"),
        ({"difficulty": ("rooms",)}, "difficulty must be different axes"),
        ({"difficulty": "solution_length"}, "difficulty must be different axes"),
        ({"difficulty": ("state_size", "state_size")}, "difficulty must be different axes"),
        ({"difficulty": ("state_size", "switches=2")}, "difficulty must be different axes"),
        ({"difficulty": ("switches=2",), "difficulty_every": 1}, "difficulty needs at least two levels"),
        ({"difficulty": ("state_size",)}, "difficulty of 4 levels needs"),
        ({"difficulty": ("state_size",), "difficulty_levels": 1, "difficulty_every": 2}, "at least two levels"),
        ({"difficulty_every": 3}, "difficulty_every=3 needs a difficulty"),
        ({"success_window": 0}, "success_window must be at least 1"),
        ({"difficulty_tasks": 0}, "difficulty_tasks must be at least 1"),
        ({"mixture": [{"env": "lights/Lights-v0", "weight": 0}]}, "weight of lights/Lights-v0 must be a number above"),
        ({"mixture": [{"env": "lights/Lights-v0", "sets": {}}]}, "mixture has entries of env, set and weight"),
        ({"mixture": ["lights/Lights-v0"]}, "mixture has entries of env, set and weight"),
        ({"mixture": [{"env": "lights/Lights-v0", "set": ["switches=2"]}]}, "mixture: env is the id"),
    ],
)
def test_settings_that_make_no_curriculum_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(message)):
        grpo.Config(**BASIS, **fields)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["switches=2"], "begins with the id of an environment"),
        (["lights/Lights-v0=many"], "a weight is a number"),
        (["ALFWorld=many"], "a weight is a number"),
        (["ALFWorlds=0.5"], "begins with the id of an environment"),
        (["ALFWorlds"], "'ALFWorlds' does not exist. Did you mean: textagent/ALFWorld-v0"),
        (["lights/Lights-v0", "switches=1", "switches=2"], "set twice"),
    ],
)
def test_words_that_make_no_mixture_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        parse_mixture(words)
