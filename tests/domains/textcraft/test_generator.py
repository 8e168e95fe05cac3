"""Recipe graphs are what is asked for, everywhere the same, and in one split only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from scipy.stats import chisquare

from tests.domains.textcraft.test_planner import play
from textagent_gym.domains.textcraft import GraphSpec, GraphTasks, solve
from textagent_gym.domains.textcraft.book import Game
from textagent_gym.domains.textcraft.generator import _Draws
from textagent_gym.domains.textcraft.tasks import solution_of
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError
from textagent_gym.tasks import in_split

SPECS: list[dict[str, Any]] = [
    {},
    {"depth": 1, "recipes": 1},
    {"depth": 4, "recipes": 16, "solution_length": 14},
    {"recipes": 12, "items": 24, "solution_length": 7},
    {"depth": 3, "recipes": 10, "branching": (2, 2), "counts": (2, 5), "yields": (1, 4), "shared": 0.8},
    {"depth": 3, "recipes": 3, "branching": (1, 1), "counts": (1, 1), "yields": (1, 1), "solution_length": 4},
]


@pytest.mark.parametrize("asked", SPECS, ids=str)
def test_what_is_asked_for_is_what_is_measured(asked: dict[str, Any]) -> None:
    spec = GraphSpec(**asked)
    source = GraphTasks(spec)
    for index in range(15):
        task = source.task("train", index)
        game, measured = source.world(task), task.complexity
        plan = solve(game, {})
        assert play(game, {}, plan.commands).won
        assert game.commands == tuple(recipe.command for recipe in game.shown)
        assert game.solution == solution_of(Game.of(game.book, game.goal, game.shown))  # Planned, and played.
        assert measured.exact
        assert measured.solution_length == len(plan.commands) <= 200
        assert measured.to_dict()["depth"] == spec.depth
        assert measured.state_size == len(game.shown) == spec.recipes
        assert measured.action_size == len(game.book.gettable) + len(game.book.recipes)
        assert spec.items in (None, measured.action_size)
        assert spec.solution_length in (None, measured.solution_length)
        for recipe in game.shown:
            assert spec.branching[0] <= len(recipe.ingredients) <= spec.branching[1]
            assert spec.yields[0] <= recipe.count <= spec.yields[1]
            assert all(spec.counts[0] <= each.count <= spec.counts[1] for each in recipe.ingredients)
            names = [each.name for each in recipe.ingredients]
            assert len(set(names)) == len(names)
            assert game.goal not in names


def test_what_is_drawn_is_spread_evenly() -> None:
    word = _Draws("dice").word
    thrown = Counter(word() * 6 >> 32 for _ in range(6_000))
    assert sorted(thrown) == [0, 1, 2, 3, 4, 5]
    source = GraphTasks(GraphSpec(depth=1, recipes=1))
    recipes = [source.world(source.task("train", index)).shown[0] for index in range(3_000)]
    ingredients = Counter(len(recipe.ingredients) for recipe in recipes)
    units = Counter((recipe.count, recipe.ingredients[0].count) for recipe in recipes)
    assert sorted(ingredients) == [1, 2, 3]
    assert sorted(units) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    for counted in (thrown, ingredients, units):
        assert chisquare(list(counted.values())).pvalue > 0.01


def test_shared_ingredients_are_consumed_by_several_recipes() -> None:
    def ingredients_per_item(shared: float) -> float:
        source = GraphTasks(GraphSpec(depth=3, recipes=12, items=None, shared=shared))
        games = [source.world(source.task("train", index)) for index in range(30)]
        slots = sum(len(recipe.ingredients) for game in games for recipe in game.book.needed(game.goal))
        items = {(n, e.name) for n, g in enumerate(games) for r in g.book.needed(g.goal) for e in r.ingredients}
        return slots / len(items)

    assert ingredients_per_item(0.0) == 1.0
    assert ingredients_per_item(0.9) > 1.3


def test_splits_are_disjoint() -> None:
    source = GraphTasks(GraphSpec(depth=1, recipes=2))
    seen: dict[str, str] = {}
    for split in source.splits:
        for index in range(200):
            goal = source.world(source.task(split, index)).goal
            assert in_split(goal, split)
            assert seen.setdefault(goal, split) == split


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"depth": 3, "recipes": 2}, "depth=3 with branching=(1, 3) needs more than recipes=2"),
        ({"depth": 3, "solution_length": 3}, "depth=3 with branching=(1, 3) needs more than solution_length=3"),
        ({"items": 100}, "items goes from 9 to"),
        ({"solution_length": 150}, "shortest plans have"),
        ({"counts": (64, 64), "yields": (1, 1), "solution_length": 150}, "the nearest have"),
    ],
)
def test_what_no_graph_can_be_is_said(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InfeasibleDifficultyError) as raised:
        GraphTasks(GraphSpec(**asked)).task("train", 0)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "asked", [{"depth": 0}, {"recipes": 101}, {"branching": (3, 1)}, {"shared": 1.5}, {"counts": 2}]
)
def test_a_value_that_does_not_exist_is_named(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(asked))):
        GraphSpec(**asked)


def test_a_task_is_the_same_in_every_process_and_for_ever() -> None:
    code = (
        "import gymnasium, hashlib\n"
        "env = gymnasium.make('textagent/TextCraft-v0', depth=3, recipes=12).unwrapped\n"
        "digest = hashlib.sha256()\n"
        "for index in range(5):\n"
        "    observation, info = env.reset(options={'task_index': index})\n"
        "    seen = observation, info['task'], env.oracle(), env.admissible_actions()\n"
        "    digest.update(repr(seen).encode())\n"
        "print(digest.hexdigest()[:16])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert printed == {"0ed764f11737f8f9"}
