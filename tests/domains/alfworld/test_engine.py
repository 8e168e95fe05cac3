"""The native engine against upstream, step by step."""

from __future__ import annotations

import random
import re
import sys
import threading
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textagent_gym.domains.alfworld.data import OfficialGames
from textagent_gym.domains.alfworld.engine import State
from textagent_gym.domains.alfworld.game import TASK_TYPES, Game, GameFormatError, read_game
from textagent_gym.domains.alfworld.generator import RoomSpec, generate
from textagent_gym.domains.alfworld.reference import ReferenceState
from textagent_gym.domains.alfworld.tasks import official_type


def first_of_type(games: OfficialGames, name: str) -> str:
    return next(game_id for game_id in games.ids("valid_seen") if official_type(game_id) == name)


def game_of_type(games: OfficialGames, name: str) -> Game:
    game_id = first_of_type(games, name)
    return read_game(games.read(game_id), game_id)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASK_TYPES.values())
def test_text_commands_and_victory_are_upstreams(games: OfficialGames, name: str) -> None:
    game_id = first_of_type(games, name)
    content = games.read(game_id)
    game = read_game(content, game_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # One upstream state for all examples: each goes on where the last one stopped, and the native one follows.
        there = ReferenceState(content)
    here = State(game)
    assert here.introduction() == there.introduction()
    compared = 0

    def compare(command: str) -> None:
        nonlocal compared
        compared += 1
        assert here.step(command.strip()) == there.step(command), command
        assert here.commands() == there.commands(), command
        assert here.won == there.won, command

    for command in content["walkthrough"]:
        compare(command)
    assert here.won

    @settings(max_examples=12, derandomize=True, database=None)
    @given(choices=st.lists(st.integers(0, 10**6) | st.text(max_size=20), min_size=4, max_size=4))
    def walk(choices: list[int | str]) -> None:
        for choice in choices:
            possible = here.commands()
            nearby = [command for command in possible if not command.startswith("go to")]
            of = possible if isinstance(choice, int) and choice % 3 == 0 else nearby
            compare(of[choice % len(of)] if isinstance(choice, int) else choice)

    walk()
    assert compared > 40


@pytest.mark.parametrize("split", ["train", "valid_seen"])
def test_every_walkthrough_wins(games: OfficialGames, split: str) -> None:
    for game_id in games.ids(split):
        state = State(read_game(games.read(game_id), game_id))
        walkthrough = state.game.walkthrough
        assert walkthrough is not None
        for command in walkthrough:
            assert not state.won
            assert command in state.commands()
            assert state.step(command) is not None
        assert state.won


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.text(max_size=60) | st.from_regex(r"(go to|take|move|open|use|slice|heat|examine) [\w /]{0,20}"))
def test_what_is_not_admissible_changes_nothing(games: OfficialGames, command: str) -> None:
    state = State(game_of_type(games, "heat"))
    state.step("go to microwave 1")
    before = state.copy()
    admissible = command in state.commands()
    assert (state.step(command) is not None) == admissible
    if not admissible:
        assert all(getattr(state, name) == getattr(before, name) for name in State.__slots__)


def test_of_all_commands_about_two_things_only_the_admissible_ones_are_understood() -> None:
    """Wherever one stands, and whatever one holds."""
    game = generate(RoomSpec(room="kitchen", receptacles=8, objects=40), "train", 0)[0]
    knives = [thing for thing in game.objects if "knife" in thing]
    assert len(knives) > 1
    draw, state, sliced, held = random.Random(0), State(game), 0, set()
    for _ in range(100):
        possible = state.commands()
        held.add(state.held >= 0 and game.objects[state.held] in knives)
        sliced += any(command.startswith("slice") for command in possible)
        for thing in game.objects:
            pairs = [f"take {thing} from {place}" for place in game.receptacles]
            for command in (*pairs, *(f"slice {thing} with {knife}" for knife in knives)):
                assert (state.copy().step(command) is not None) == (command in possible), command
        wanted = [command for command in possible if command.startswith(("open", "slice", "move butterknife"))]
        wanted = [command for command in possible if command.startswith("take") and "knife" in command] or wanted
        ways = [command for command in possible if command.startswith("go to")]
        state.step(draw.choice(wanted if wanted and draw.random() < 0.7 else ways))
    assert (sliced > 0, held) == (True, {False, True})


def test_what_is_admissible_is_understood_and_a_copy_is_independent(games: OfficialGames) -> None:
    for name in TASK_TYPES.values():
        state = State(game_of_type(games, name))
        for command in state.game.walkthrough or ():
            before = (state.commands(), state.won, list(state.contents))
            for possible in state.commands():
                assert state.copy().step(possible) is not None
            assert (state.commands(), state.won, list(state.contents)) == before
            state.step(command)


def test_the_dialects_differ_in_one_command(games: OfficialGames) -> None:
    game_id = first_of_type(games, "pick")
    content = games.read(game_id)
    old = State(read_game(content, game_id, dialect="put"))
    for command in content["walkthrough"]:
        words = command.split()
        if words[0] == "move":
            assert old.step(command) is None
            thing, _, place = command.removeprefix("move ").partition(" to ")
            assert old.step(f"put {thing} in/on {place}") == f"You put the {thing} in/on the {place}."
        else:
            assert old.step(command) is not None
    assert old.won
    assert "put (object) in/on (receptacle)" in (old.step("help") or "")
    # A file of the older release says so itself.
    older = content["grammar"].replace('"move {o} to {r}"', '"put {o} in/on {r}"')
    assert read_game({**content, "grammar": older}, game_id).dialect == "put"


def test_another_numbering_is_the_same_game(games: OfficialGames) -> None:
    game_id = first_of_type(games, "two")
    content = games.read(game_id)
    plain, shuffled = read_game(content, game_id), read_game(content, game_id, shuffle=3)
    assert plain.objects != shuffled.objects
    assert sorted(plain.objects) == sorted(shuffled.objects)
    assert plain.contents == shuffled.contents
    assert read_game(content, game_id, shuffle=3).objects == shuffled.objects


@pytest.mark.parametrize(
    "damage",
    [
        {"pddl_problem": ""},
        {"grammar": ""},
        {"pddl_problem": "(:init ) (:goal (and (forall (?x) (p ?x))))"},
        {"pddl_problem": None},
    ],
)
def test_what_is_no_game_is_refused(games: OfficialGames, damage: dict[str, str]) -> None:
    game_id = first_of_type(games, "pick")
    with pytest.raises(GameFormatError, match=r"ALFWorld game|dialect|goal"):
        read_game({**games.read(game_id), **damage}, game_id)


TWO_THINGS = "(objectType ?a MugType) (objectType ?b MugType) (inReceptacle ?a ?r) (inReceptacle ?b ?r)"


@pytest.mark.parametrize(
    "goal",
    [
        "(or (holds ?x ?a) (holds ?x ?b))",
        "(and (exists (?a) (not (holds ?x ?a))))",
        "(and (exists (?a) (and (objectType ?a MugType) (eaten ?a))))",
        f"(and (exists (?a ?b ?r) (and {TWO_THINGS})))",  # In no particular receptacle.
        f"(and (exists (?a ?b ?r) (and {TWO_THINGS} (isToggled ?a))))",
        f"(and (exists (?a ?b ?r) (and {TWO_THINGS} (receptacleType ?r DeskType) (isClean ?a))))",
    ],
)
def test_a_goal_that_the_engine_does_not_know_is_refused(games: OfficialGames, goal: str) -> None:
    content = games.read(first_of_type(games, "pick"))
    problem = content["pddl_problem"]
    with pytest.raises(GameFormatError, match="native engine does not know"):
        read_game({**content, "pddl_problem": f"{problem[: problem.rindex('(:goal')]}(:goal {goal}))"}, "x")


def test_threads_share_a_game(games: OfficialGames) -> None:
    game = game_of_type(games, "two")
    walkthrough = game.walkthrough or ()

    def play() -> list[object]:
        state = State(game)
        return [state.introduction(), *((state.commands(), state.step(command)) for command in walkthrough), state.won]

    expected, found = play(), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: found.extend(play() for _ in range(20))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(found) == 320
    assert all(one == expected for one in found)


def test_a_pan_that_is_in_itself_shows_nothing(games: OfficialGames) -> None:
    game_id = "train/pick_heat_then_place_in_recep-Apple-None-Fridge-22/trial_T20190908_210251_592689"
    content = games.read(game_id)
    assert re.search(r"\(inReceptacleObject (Pan\S+) \1\)", content["pddl_problem"])
    state = State(read_game(content, game_id))
    pan = state.game.object_of["pan 1"]
    holder = next(r for r, inside in enumerate(state.contents) if inside >> pan & 1)
    name = state.game.receptacles[holder]
    state.step(f"go to {name}")
    state.step(f"open {name}")
    assert state.step(f"take pan 1 from {name}") is not None
    assert state.step("examine pan 1") == "This is a normal pan 1. In it, you see nothing."
