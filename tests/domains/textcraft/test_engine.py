"""The rules, in a transcript, and what upstream gets wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domains.textcraft.books import book_of
from textagent_gym.domains.textcraft import Game, Ingredient, Recipe, State

PLANKS = [Recipe(f"{kind} planks", 4, (Ingredient(f"{kind} log", 1),)) for kind in ("oak", "birch")]
STICK = Recipe("stick", 4, (Ingredient("planks", 2, is_tag=True),))
CHEST = Recipe("chest", 1, (Ingredient("planks", 8, is_tag=True), Ingredient("oak planks", 1)))


def forest(goal: str = "chest") -> State:
    recipes = [*PLANKS, STICK, CHEST]
    book = book_of(recipes, "")
    tags = {"planks": ("oak planks", "birch planks")}
    book = type(book)(book.recipes, frozenset({"oak log", "birch log", "flint"}), tags, {"planks": tuple(PLANKS)})
    return State(Game.of(book, goal, tuple(recipes)))


TRANSCRIPT = [
    ("inventory", "Inventory: You are not carrying anything.", "Inventory: You are not carrying anything."),
    ("get 3 oak log", "Got 3 oak log", "Got 3 oak log"),
    ("get 1 birch_log", "Got 1 birch_log", "Got 1 birch_log"),
    ("craft 4 birch planks using 1 birch log", "Crafted 4 birch planks", "Crafted 4 minecraft:birch_planks"),
    ("craft 9 oak planks using 1 oak log", "Crafted 4 oak planks", "Crafted 4 minecraft:oak_planks"),
    ("inventory", "Inventory: 4 birch planks, 2 oak log, 4 oak planks",
     "Inventory: [oak log] (2) [birch planks] (4) [oak planks] (4) "),
    ("craft 4 stick using 2 birch planks", "Crafted 4 stick", "Crafted 4 minecraft:stick"),
]  # fmt: skip


def test_a_transcript() -> None:
    state = forest()
    for command, text, upstream in TRANSCRIPT:
        answer = state.step(command)
        assert (answer.text, answer.upstream, answer.valid) == (text, upstream, True)


REFUSED = [
    ("get 1 chest", "Could not find chest"),
    ("get 1 planks", "Could not find planks"),
    ("get 1 sky", "Could not find sky"),
    ("get 0 oak log", "Could not execute get 0 oak log"),
    ("get oak log", "Could not execute get oak log"),
    ("get 1" + "0" * 9 + " oak log", "Could not execute get 1000000000 oak log"),
    ("inventory now", "Could not execute inventory now"),
    ("inventoryx", "Could not execute inventoryx"),
    ("craft chest", "Could not execute craft chest"),
    ("", "Could not execute "),
    ("craft 4 stick using planks", "Wrong item format: planks"),
    ("craft 4 stick using 2 planks", "Could not find enough items to craft stick"),
    ("craft 4 stick using 2 birch planks", "Could not find enough items to craft stick"),
    ("craft 4 stick using 3 oak planks", "Could not find a valid recipe for stick"),
    ("craft 4 stick using 1 oak planks, 1 oak planks", "Could not find a valid recipe for stick"),
    ("craft 4 stick using 2 oak planks, 1 flint", "Could not find a valid recipe for stick"),
]


@pytest.mark.parametrize(("command", "text"), REFUSED)
def test_what_cannot_be_done_says_why_and_changes_nothing(command: str, text: str) -> None:
    state = forest()
    for before in ("get 1 oak log", "get 1 flint", "craft 4 oak planks using 1 oak log"):
        state.step(before)
    inventory = dict(state.inventory)
    answer = state.step(command)
    assert (answer.text, answer.valid) == (text, False)
    assert state.inventory == inventory


def test_an_ingredient_that_serves_twice_must_be_carried_twice() -> None:
    state = forest()
    for command in ("get 2 oak log", *["craft 4 oak planks using 1 oak log"] * 2):
        state.step(command)
    command = "craft 1 chest using 8 oak planks, 1 oak planks"
    assert state.step(command).text == "Could not find enough items to craft chest"
    assert command not in state.commands()
    state.step("get 1 oak log")
    state.step("craft 4 oak planks using 1 oak log")
    assert command in state.commands()
    # Upstream gives the first item that fits to the ingredient that any planks may be.
    assert (
        state.step("craft 1 chest using 1 oak planks, 8 oak planks").text == "Could not find a valid recipe for chest"
    )
    assert state.step(command).text == "Crafted 1 chest"
    assert state.won


def test_the_commands_are_all_that_can_be_done_with_the_recipes_shown() -> None:
    state = forest("stick")
    state.step("get 1 birch log")
    state.step("craft 4 birch planks using 1 birch log")
    assert state.commands() == (
        "craft 4 stick using 2 birch planks", "get 1 birch log", "get 1 oak log", "inventory",
    )  # fmt: skip
    for command in state.commands():
        assert state.copy().step(command).valid


@settings(max_examples=50)
@given(st.text(max_size=60), st.sampled_from(["", "get 1 ", "craft ", "craft 1 stick using ", "get "]))
def test_any_text_is_a_command(text: str, start: str) -> None:
    state = forest()
    state.step("get 5 oak log")
    state.step(" ".join((start + text).split()))
    assert all(count > 0 for count in state.inventory.values())
