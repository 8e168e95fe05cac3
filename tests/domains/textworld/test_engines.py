"""Engines, against TextWorld's own environment; every test holds for every engine."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld.commands import UNKNOWN_VERB, admissible_commands, listed_commands
from textagent_gym.domains.textworld.engines import Engine, Native, ZMachine
from textagent_gym.domains.textworld.specs import Spec, make_spec
from textagent_gym.domains.textworld.store import StoredGame, load_file

ENGINES = [ZMachine, Native]
SYNONYMS = ("n", "south", "look", "inventory", "x me", "wait", "take all", "close fridge", "eat apple", "dance")

OpenGame = Callable[[Spec], StoredGame]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param()


@pytest.fixture
def open_game(upstream_game: UpstreamGame) -> OpenGame:
    """The game of a kind that TextWorld itself has made and described."""
    return lambda spec: load_file(Path(upstream_game(spec, 1)[1]))


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_text_commands_and_endings_are_textworlds_on_random_walks(
    spec: Spec, engine: Engine, open_game: OpenGame
) -> None:
    import textworld

    game = open_game(spec)
    logic = game.logic
    assert logic is not None
    compared = 0
    for walk in range(3):
        rng = random.Random(walk)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            upstream = textworld.start(
                str(game.story), textworld.EnvInfos(admissible_commands=True, won=True, lost=True)
            )
            there = upstream.reset()
        assert there.feedback == engine.start(game)
        for _ in range(40):
            state = engine.state
            assert state is not None
            assert list(listed_commands(logic, state)) == there.admissible_commands
            command = rng.choice(SYNONYMS) if rng.random() < 0.2 else rng.choice(listed_commands(logic, state))
            there, _, done = upstream.step(command)
            reply = engine.step(command)
            assert engine.state is not None
            assert there.feedback == reply.text
            assert (there.won, there.lost) == (reply.won, reply.lost)
            assert (there.won, there.lost) == (logic.won(engine.state), logic.lost(engine.state))
            compared += 1
            if done:
                break
    assert compared > 20


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_the_shortest_solution_wins_in_the_compiled_game(
    spec: Spec, engine: Engine, open_game: OpenGame, upstream_game: UpstreamGame
) -> None:
    game = open_game(spec)
    assert game.complexity.exact
    engine.start(game)
    replies = [engine.step(command) for command in game.solution]
    assert [reply.won for reply in replies] == [False] * (len(replies) - 1) + [True]
    assert all(reply.actions for reply in replies)
    made, _ = upstream_game(spec, 1)
    walkthrough = made.metadata.get("walkthrough") or made.walkthrough
    assert walkthrough is None or len(game.solution) <= len(walkthrough)


def test_preparing_a_meal_is_offered_when_it_can_be_prepared(engine: Engine, open_game: OpenGame) -> None:
    game = open_game(make_spec("cooking", recipe=1, take=1, rooms=1, open=True, cook=True, cut=True))
    assert game.logic is not None
    engine.start(game)
    refused, prepared = 0, 0
    for command in game.solution:
        state, moment = engine.state, engine.snapshot()
        assert state is not None
        if "prepare meal" in listed_commands(game.logic, state):
            understood = engine.step("prepare meal").actions > 0
            engine.restore(moment)
            assert understood == ("prepare meal" in admissible_commands(game.logic, state))
            refused += not understood
            prepared += understood
        engine.step(command)
    assert refused
    assert prepared


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_the_unknown_verb_is_refused_and_changes_nothing(spec: Spec, engine: Engine, open_game: OpenGame) -> None:
    engine.start(open_game(spec))
    state, look = engine.state, engine.step("look").text.partition(">")[0]
    reply = engine.step(UNKNOWN_VERB)
    assert "That's not a verb I recognise." in reply.text
    assert (reply.actions, reply.won, reply.lost) == (0, False, False)
    assert engine.state == state
    assert engine.step("look").text.partition(">")[0] == look


def test_a_moment_can_be_gone_back_to_however_often_and_by_another_engine(engine: Engine, open_game: OpenGame) -> None:
    game = open_game(KINDS[1])
    engine.start(game)
    for command in game.solution[:3]:
        engine.step(command)
    moment, state = engine.snapshot(), engine.state
    replies = [engine.step(command) for command in game.solution[3:]]
    other = type(engine)()
    other.start(game)
    for player in (engine, other, engine):
        player.restore(moment)
        assert player.state == state
        assert [player.step(command) for command in game.solution[3:]] == replies


def test_an_engine_that_was_closed_begins_anew(engine: Engine, open_game: OpenGame) -> None:
    game = open_game(KINDS[0])
    opening = engine.start(game)
    engine.step("look")
    engine.close()
    assert engine.start(game) == opening
    assert game.logic is not None
    assert engine.state == game.logic.initial
