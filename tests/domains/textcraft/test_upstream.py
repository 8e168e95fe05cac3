"""Upstream's recipes, goals and answers are ours, but for what it gets wrong. Nothing of upstream is kept here."""

from __future__ import annotations

import contextlib
import io
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.textcraft_env import upstream_tree
from textagent_gym.domains.textcraft import RecipeBook, TextCraftMinecraftEnv, read_book, solve
from textagent_gym.domains.textcraft.book import Game

STEPS = 60
"""Commands per goal."""


@pytest.fixture(scope="module")
def upstream(upstream_folder: Path) -> tuple[Any, Any]:
    return upstream_tree(upstream_folder)


@pytest.fixture(scope="module")
def book(upstream_folder: Path) -> RecipeBook:
    return read_book(str(upstream_folder / "agentenv_textcraft"))


def plain(name: str) -> str:
    return name.removeprefix("minecraft:").replace("_", " ")


def test_the_recipes_are_upstreams(upstream: tuple[Any, Any], book: RecipeBook) -> None:
    tree = upstream[0]
    theirs = {plain(item): [r.recipe_str for r in recipes] for item, recipes in tree.itemid_recipes.items()}
    assert {item: [r.command for r in recipes] for item, recipes in book.recipes.items()} == theirs
    assert len(theirs) == 544
    assert set(book.tags) == {plain(tag) for tag in tree.tag_set}
    for tag, members in book.tags.items():
        assert set(members) == {plain(i) for i in tree.get_items_with_tags(f"minecraft:{tag.replace(' ', '_')}")}
    taken = {plain(i) for i in tree.itemid_set if not tree.is_craftable(i) and not tree.is_tag(i)}
    assert book.gettable == taken


def test_the_depths_are_upstreams(upstream: tuple[Any, Any], book: RecipeBook) -> None:
    theirs = {plain(item): depth for item, depth in upstream[0].item_recipes_min_depth(1)}
    assert {goal: book.depth(goal) for goal in book.recipes} == theirs


def test_the_recipes_shown_are_those_that_upstream_shows(upstream: tuple[Any, Any], upstream_folder: Path) -> None:
    """Upstream draws its distractors in an order that depends on the process, so what may be drawn is compared."""
    tree, environment = upstream
    env = TextCraftMinecraftEnv(data=str(upstream_folder / "agentenv_textcraft"), distractors=1000)
    for split in env.tasks.splits:
        for index in range(env.tasks.size(split)):
            observation, info = env.reset(options={"task": env.tasks.task(split, index).id})
            goal = info["task"].rpartition("/")[2]
            with contextlib.redirect_stdout(io.StringIO()):
                needed, others = tree.create_recipe_set(f"minecraft:{goal}")
            lines = observation.partition("\n\nGoal: ")[0].splitlines()[1:]
            ours = {recipe.command for recipe in env.tasks.book.needed(plain(goal))}
            assert ours == {recipe.recipe_str for recipe in needed}
            assert {recipe.recipe_str for recipe in others} | ours <= set(lines)
            assert len(lines) == len(set(lines))
            theirs, _ = environment(tree, None, None).reset(commands="\n".join(lines), goal=f"minecraft:{goal}")
            assert observation == theirs


def commands(rng: random.Random, env: TextCraftMinecraftEnv) -> str:
    """Something sensible, or something that is nearly so; not what upstream is known to get wrong."""
    book = env.tasks.book
    recipe = rng.choice([r for ways in book.recipes.values() for r in ways])
    names = [*book.gettable, *book.recipes, *book.tags, "sky", "Oak log", "minecraft:stick", "oak_planks", "a 'b"]
    near = [
        recipe.command,
        recipe.command.replace("planks", "oak planks"),
        f"craft {rng.randint(0, 9)} {rng.choice(names)} using {rng.randint(0, 3)} {rng.choice(names)}",
        f"craft {rng.choice(names)} using {rng.randint(1, 3)} {rng.choice(names)}, 1 {rng.choice(names)}",
        f"craft {rng.choice(names)} using {rng.choice(names)}",
        f"get {rng.randint(1, 30)} {rng.choice(names)}",
        f"get {rng.choice(names)}",
        f"get 007 {rng.choice(sorted(book.gettable))}",
        rng.choice(["inventory", "look", "craft", "craft stick", "get", "craft a using ", "craft a using 1 b,", ""]),
    ]
    carried = list(env._state.inventory.items())
    if carried:
        item, count = rng.choice(carried)
        near.append(f"craft {rng.choice(sorted(book.recipes))} using {rng.randint(1, count)} {item}")
    admissible = env.admissible_actions()
    return rng.choice([rng.choice(near), rng.choice(admissible), (env.oracle() or ("inventory",))[0]])


def compare(upstream: tuple[Any, Any], folder: Path, goals: int | None) -> int:
    """Number of commands that were answered equally."""
    tree, environment = upstream
    env = TextCraftMinecraftEnv(
        data=str(folder / "agentenv_textcraft"), observation_format="upstream", max_turns=10**6, distractors=3
    )
    rng = random.Random(0)
    tasks = [env.tasks.task(split, index).id for split in env.tasks.splits for index in range(env.tasks.size(split))]
    answered = 0
    for task in tasks if goals is None else rng.sample(tasks, goals):
        observation, _ = env.reset(options={"task": task})
        theirs = environment(tree, None, None)
        lines = observation.removeprefix("Crafting commands:\n").partition("\n\nGoal: ")[0]
        assert observation == theirs.reset(commands=lines, goal=f"minecraft:{task.rpartition('/')[2]}")[0]
        for _ in range(STEPS):
            command = " ".join(commands(rng, env).split())
            with contextlib.redirect_stdout(io.StringIO()):
                there = theirs.step(command)
            here = env.step(command)
            assert here[:3] == (there[0], float(there[1]), there[2]), command
            answered += 1
            if here[2]:
                break
    return answered


def test_answers_rewards_and_ends_are_upstreams(upstream: tuple[Any, Any], upstream_folder: Path) -> None:
    assert compare(upstream, upstream_folder, 60) > 500


@pytest.mark.slow
def test_answers_rewards_and_ends_are_upstreams_for_every_goal(
    upstream: tuple[Any, Any], upstream_folder: Path
) -> None:
    assert compare(upstream, upstream_folder, None) > 5_000


def test_every_plan_wins_upstream(upstream: tuple[Any, Any], book: RecipeBook) -> None:
    tree, environment = upstream
    for goal in book.recipes:
        theirs = environment(tree, None, None)
        theirs.reset(commands="", goal=f"minecraft:{goal.replace(' ', '_')}")
        ends = [theirs.step(command)[2] for command in solve(Game.of(book, goal, ()), {}).commands]
        assert ends == [False] * (len(ends) - 1) + [True], goal


def test_depth_three_says_little_about_length(book: RecipeBook) -> None:
    lengths = {goal: len(solve(Game.of(book, goal, ()), {}).commands) for goal in book.recipes}
    deep = [length for goal, length in lengths.items() if book.depth(goal) == 3]
    assert (min(deep), max(deep)) == (4, 48)
    assert sum(length > 15 for length in lengths.values()) == 21
    assert sum(length > 20 for length in lengths.values()) == 13
