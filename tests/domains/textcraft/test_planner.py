"""Plans are as short as breadth-first search finds them, and work."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import product

import pytest

from tests.domains.textcraft.books import book_of, draw_game
from textagent_gym.domains.textcraft import Game, Ingredient, Recipe, State, solve
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError

LONGEST = 6
"""Actions of the longest plans that are searched for: a level more takes ten times as long."""
UNITS = 14
"""Units of an item that the search carries at most; games whose plan may carry more are left out."""

Inventory = tuple[tuple[str, int], ...]


def followers(game: Game, inventory: Inventory) -> Iterator[tuple[Inventory, bool]]:
    """What can be carried after one more action, and whether the goal was crafted: the rules, written once more."""
    carried = dict(inventory)
    for item, count in product(sorted(game.book.gettable), range(1, UNITS + 1)):
        if carried.get(item, 0) + count <= UNITS:
            yield tuple(sorted({**carried, item: carried.get(item, 0) + count}.items())), False
    for recipe in (recipe for recipes in game.book.recipes.values() for recipe in recipes):
        for items in product(*(game.book.tags[i.name] if i.is_tag else (i.name,) for i in recipe.ingredients)):
            left = dict(carried)
            for item, each in zip(items, recipe.ingredients, strict=True):
                left[item] = left.get(item, 0) - each.count
            if min(left.values()) >= 0:
                left[recipe.output] = left.get(recipe.output, 0) + recipe.count
                yield tuple(sorted((i, n) for i, n in left.items() if n)), recipe.output == game.goal


def search(game: Game, inventory: Mapping[str, int]) -> int | None:
    """Actions of a shortest plan, by breadth; `None` for more than `LONGEST`."""
    front = {tuple(sorted(inventory.items()))}
    seen = set(front)
    for length in range(1, LONGEST + 1):
        after: set[Inventory] = set()
        for state in front:
            for follower, won in followers(game, state):
                if won:
                    return length
                if length < LONGEST and follower not in seen:
                    after.add(follower)
        seen |= after
        front = after
    return None


def play(game: Game, inventory: Mapping[str, int], commands: tuple[str, ...]) -> State:
    state = State(game, dict(inventory))
    for command in commands:
        assert not state.won
        assert state.step(command).valid, command
    return state


def compare(seeds: range) -> int:
    """Number of games of which the search has proven the length."""
    proven = 0
    for seed in seeds:
        rng = random.Random(seed)
        game = draw_game(rng)
        names = sorted({*game.book.gettable, *game.book.recipes} - {"goal"})
        inventory = {name: rng.randint(1, 4) for name in names if rng.random() < 0.3}
        plan = solve(game, inventory)
        assert play(game, inventory, plan.commands).won
        gets = [int(command.split()[1]) for command in plan.commands if command.startswith("get")]
        if len(plan.commands) <= LONGEST and max(gets, default=0) + max(inventory.values(), default=0) <= UNITS:
            assert search(game, inventory) == len(plan.commands), seed
            proven += 1
    return proven


def test_plans_are_as_short_as_those_of_a_search_by_breadth() -> None:
    assert compare(range(60)) > 40


@pytest.mark.slow
def test_plans_are_as_short_as_those_of_a_search_by_breadth_in_more_games() -> None:
    assert compare(range(60, 600)) > 400


def test_what_is_left_over_serves_the_next_use() -> None:
    recipes = [
        Recipe("stick", 4, (Ingredient("wood", 1),)),
        Recipe("frame", 1, (Ingredient("stick", 3),)),
        Recipe("goal", 1, (Ingredient("frame", 1), Ingredient("stick", 1))),
    ]
    game = Game.of(book_of(recipes, "wood"), "goal", tuple(recipes))
    assert len(solve(game, {}).commands) == 4  # A wood, four sticks, a frame, the goal: no stick is left.


def test_one_item_stands_for_a_tag_where_it_is_needed_anyway() -> None:
    recipes = [
        *(Recipe(f"{kind} planks", 4, (Ingredient(f"{kind} log", 1),)) for kind in ("oak", "fir")),
        Recipe("goal", 1, (Ingredient("planks", 2, is_tag=True), Ingredient("fir planks", 2))),
    ]
    book = book_of(recipes, "")
    book = type(book)(book.recipes, frozenset({"oak log", "fir log"}), {"planks": ("oak planks", "fir planks")}, {})
    plan = solve(Game.of(book, "goal", tuple(recipes)), {}).commands
    assert plan == (
        "get 1 fir log",
        "craft 4 fir planks using 1 fir log",
        "craft 1 goal using 2 fir planks, 2 fir planks",
    )


def test_a_plan_from_any_moment_of_a_plan_is_its_rest() -> None:
    for seed in range(40):
        game = draw_game(random.Random(seed))
        commands = solve(game, {}).commands
        for done in range(len(commands)):
            left = solve(game, play(game, {}, commands[:done]).inventory).commands
            assert len(left) == len(commands) - done


def test_recipes_that_go_in_circles_are_refused() -> None:
    recipes = [Recipe("goal", 1, (Ingredient("p", 1),)), Recipe("p", 1, (Ingredient("goal", 1),))]
    with pytest.raises(InvalidOptionError, match="circles, got one through 'goal'"):
        solve(Game.of(book_of(recipes, ""), "goal", tuple(recipes)), {})


def test_a_search_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.domains.textcraft.planner.MOST_CHOICES", 1)
    recipes = [Recipe("goal", 1, (Ingredient("a", 1),)), Recipe("goal", 1, (Ingredient("b", 1),))]
    with pytest.raises(PlanningBudgetError, match="within 1 choices"):
        solve(Game.of(book_of(recipes, "a b"), "goal", tuple(recipes)), {})
