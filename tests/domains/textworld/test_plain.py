"""Commands in a game's own words mean without the parser what they mean with it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld.commands import playable
from textagent_gym.domains.textworld.engines.answers import opening
from textagent_gym.domains.textworld.engines.turns import play
from textagent_gym.domains.textworld.inform import Fiction, Memory, World, beginning
from textagent_gym.domains.textworld.inform.fiction import DIRECTIONS, FIRST_ENTITY, PLAYER
from textagent_gym.domains.textworld.inform.parser import Command, Parser
from textagent_gym.domains.textworld.inform.plain import read_plain
from textagent_gym.domains.textworld.inform.questions import UnansweredError
from textagent_gym.domains.textworld.inform.reading import UNSET
from textagent_gym.domains.textworld.specs import Spec
from textagent_gym.domains.textworld.store import StoredGame, load_file

MEMORIES = (
    Memory(),
    Memory((PLAYER + 3, ("look", 3), PLAYER + 4, True, "direction", (0, 0))),
    Memory((UNSET, (), 0, False, "", (2, 5))),
)
FORMS = (
    *("examine {}", "take {}", "drop {}", "open {}", "close {}", "eat {}", "drink {}", "x {}", "get {}"),
    *("take {} from {}", "put {} on {}", "insert {} into {}", "lock {} with {}", "unlock {} with {}"),
    *("cook {} with {}", "slice {} with {}", "dice {} with {}", "chop {} with {}", "open {} with {}"),
)
ALONE = ("look", "inventory", "prepare meal", "go", "wait", "i", *(f"go {direction}" for direction in DIRECTIONS))
NAME_WORDS = (
    *("red", "key", "box", "old", "locker", "type-2", "two", "north", "the", "of", "on", "it", "g", "directions", "2"),
    *("raw", "meal", "edition", "editions", "with", "from", "all", "chef's"),
)


@pytest.fixture(scope="session")
def game(upstream_game: UpstreamGame) -> StoredGame:
    return load_file(Path(upstream_game(KINDS[1], 1)[1]))


@pytest.fixture(scope="session")
def cooking(upstream_game: UpstreamGame) -> StoredGame:
    return load_file(Path(upstream_game(KINDS[3], 1)[1]))


def parsed(world: World, memory: Memory, line: str) -> tuple[Command | None, str, str | None, str, str]:
    """What the parser understands: the command, what it notes, what it leaves, what it repeats, what it read."""
    parser = Parser(world, memory, (line,))
    try:
        command = parser.parse()
    except UnansweredError:
        command = None
    return command, parser.note, parser.rest, parser.typed, parser.text


def is_plain(world: World, line: str) -> bool:
    """Whether a line is plain; what it means is compared with the parser, whatever was remembered before."""
    commands = []
    for remembered in MEMORIES:
        memory, other = Memory(remembered.kept), Memory(remembered.kept)
        command = read_plain(world, memory, line)
        commands.append(command)
        if command is None:
            assert memory.kept == remembered.kept
        else:
            assert parsed(world, other, line) == (command, "", None, line, line)
            assert memory.kept == other.kept
    assert commands[2] is None
    assert commands[0] == commands[1]
    return commands[0] is not None


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_listed_commands_are_plain_and_mean_what_the_parser_says(upstream_game: UpstreamGame, spec: Spec) -> None:
    stored = load_file(Path(upstream_game(spec, 1)[1]))
    logic, fiction = stored.logic, stored.fiction
    assert logic is not None
    assert fiction is not None
    rng, everything = random.Random(0), sorted({playable(action.command) for action in logic.actions})
    listed = plain = 0
    for _ in range(4):
        _, situation = opening(stored)
        for _ in range(25):
            world = World(fiction, situation.places)
            here = sorted({playable(action.command) for action in logic.applicable(situation.facts)})
            listed += len(here)
            plain += sum(is_plain(world, line) for line in here)
            for line in rng.sample(everything, min(len(everything), 10)):
                is_plain(world, line)
            answer, situation = play(stored, situation, rng.choice(here))
            if answer.ending:
                break
    assert plain > 0.8 * listed


@given(
    names=st.lists(st.lists(st.sampled_from(NAME_WORDS), min_size=1, max_size=3).map(" ".join), min_size=3, max_size=8),
    cooked=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_that_hide_one_another_are_left_to_the_parser(
    game: StoredGame, cooking: StoredGame, names: list[str], cooked: bool, seed: int
) -> None:
    rng = random.Random(seed)
    fiction = (cooking if cooked else game).fiction
    assert fiction is not None
    world = scattered(renamed(fiction, names, rng), rng)
    for form in FORMS:
        for _ in range(4):
            is_plain(world, form.format(*rng.choices(names, k=form.count("{"))))
    for line in ALONE:
        is_plain(world, line)


def test_names_with_of_and_numbers_in_them_are_plain(game: StoredGame, cooking: StoredGame) -> None:
    names = [
        "loaf of bread",
        "quote of the day calendar",
        "type 8 passkey",
        "bread",
        "calendar",
        "type 2 box",
        "day box",
    ]
    plain = 0
    for seed in range(30):
        rng = random.Random(seed)
        fiction = (cooking if seed % 2 else game).fiction
        assert fiction is not None
        world = scattered(renamed(fiction, names, rng), rng)
        plain += sum(is_plain(world, form.format(*rng.choices(names, k=form.count("{")))) for form in FORMS * 20)
    assert plain > 100


def renamed(fiction: Fiction, names: list[str], rng: random.Random) -> Fiction:
    """A game whose things have other names, and may be called by any word of them."""
    entities = []
    for entity in fiction.entities:
        name = rng.choice(names)
        entities.append(entity if entity.kind == "room" else replace(entity, name=name, phrases=(name, *name.split())))
    return replace(fiction, entities=tuple(entities))


def scattered(fiction: Fiction, rng: random.Random) -> World:
    """A world in which things are anywhere."""
    world = World(fiction, beginning(fiction))
    numbers = range(FIRST_ENTITY, len(fiction.kinds))
    for number in numbers:
        if fiction.kinds[number] in ("container", "door"):
            world.set("open", number, rng.random() < 0.7)
    world.enter(rng.choice([number for number in numbers if fiction.kinds[number] == "room"]))
    places = [world.room, PLAYER, *(n for n in numbers if fiction.kinds[n] in ("container", "supporter"))]
    for number in numbers:
        if fiction.kinds[number] in ("container", "supporter"):
            world.move(number, world.room)
        if fiction.kinds[number] in ("thing", "food"):
            world.move(number, rng.choice(places))
    return world


def test_a_thing_that_is_out_of_reach_or_has_a_rival_is_left_to_the_parser(game: StoredGame) -> None:
    fiction = game.fiction
    assert fiction is not None
    kinds = fiction.kinds
    one, other = [n for n in range(FIRST_ENTITY, len(kinds)) if kinds[n] in ("thing", "food")][:2]
    entities = list(fiction.entities)
    old = ("old trinket", "old", "trinket")
    entities[one - FIRST_ENTITY] = replace(fiction[one], name="trinket", phrases=("trinket",))
    entities[other - FIRST_ENTITY] = replace(fiction[other], name="old trinket", phrases=old)
    world = World(changed := replace(fiction, entities=tuple(entities)), beginning(changed))
    world.move(one, world.room)
    world.move(other, world.room)
    assert is_plain(world, "take old trinket")
    assert not is_plain(world, "take trinket")
    world.move(other, 0)
    assert is_plain(world, "take trinket")
    assert not is_plain(world, "take old trinket")
    container = next(n for n in range(FIRST_ENTITY, len(kinds)) if kinds[n] == "container")
    world.move(container, PLAYER)
    world.move(one, container)
    name = changed.names[container]
    world.set("open", container)
    assert is_plain(world, "take trinket")
    assert is_plain(world, f"take trinket from {name}")
    world.set("open", container, False)
    assert not is_plain(world, "take trinket")
    assert not is_plain(world, f"take trinket from {name}")
