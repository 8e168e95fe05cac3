"""Texts are TextWorld's own, with its own random choices."""

from __future__ import annotations

from typing import Any

import pytest

from textagent_gym.domains.textworld.generation import textworld_generator
from textagent_gym.domains.textworld.generation.text import Texts, quick_grammar

textworld = pytest.importorskip("textworld")


def a_world(seed: int) -> tuple[Any, list[Any]]:
    options = textworld.GameOptions()
    options.seeds, options.nb_rooms, options.nb_objects = seed, 5, 14
    options.chaining.min_length = options.chaining.max_length = options.chaining.max_depth = 5
    game = textworld.generator.make_game(options)
    for quest in game.quests:
        quest.desc = None
    return game.world, list(game.quests)


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"include_adj": True, "blend_instructions": True},
        {"theme": "basic", "allowed_variables_numbering": True},
        {"blend_descriptions": True, "only_last_action": True},
    ],
)
def test_a_text_is_textworlds_own_whichever_draw_it_is(knobs: dict[str, Any]) -> None:
    """A draw that is not wanted leaves the next ones as they are with TextWorld."""
    with textworld_generator():
        seeds = range(7, 11)
        world, quests = a_world(3)
        whole = [
            textworld.generator.Game(
                world, textworld.generator.Grammar(knobs, textworld.generator.RandomState(seed)), quests
            ).serialize()
            for seed in seeds
        ]
        for wanted in range(len(whole)):
            world, quests = a_world(3)
            texts = Texts(world, quests)
            for number, seed in enumerate(seeds):
                grammar = quick_grammar()(knobs, textworld.generator.RandomState(seed))
                game = texts.draw(grammar, lambda _, number=number, wanted=wanted: number == wanted)
                assert (game is not None) == (number == wanted)
                if game is not None:
                    assert game.serialize() == whole[wanted]


def test_choices_are_those_of_numpy() -> None:
    state, counts = textworld.generator.RandomState, [1, 2, 3, 7, 8, 9, 100, 1, 1_000] * 200
    grammar, rng = quick_grammar()({}, state(5)), state(5)
    assert [grammar._choose(count) for count in counts] == [rng.choice(list(range(count))) for count in counts]
