"""Games are what was asked for, the same everywhere, and in one split only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from textagent_gym.domains.textworld.commands import playable
from textagent_gym.domains.textworld.engines import ENGINES
from textagent_gym.domains.textworld.generation import (
    brief_goal,
    build,
    compile_story,
    content_of,
    draw,
    draw_as_made,
    measure,
    tell,
    textworld_generator,
    wins,
)
from textagent_gym.domains.textworld.generation.draw import candidates
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, make_spec
from textagent_gym.domains.textworld.store import load
from textagent_gym.domains.textworld.tasks import TextWorldTasks
from textagent_gym.errors import InfeasibleDifficultyError

DIGESTS = """
import hashlib, sys
from textagent_gym.domains.textworld.generation import build
from textagent_gym.domains.textworld.specs import make_spec
for spec in (make_spec("custom"), make_spec("cooking", recipe=2, take=1, cook=True, cut=True)):
    game = build(spec, "train", 0)
    print(hashlib.sha256(game.story).hexdigest(), game.solution.commands, game.objective, game.logic.to_dict())
"""


def test_games_are_equal_byte_for_byte_whatever_the_hash_seed_and_the_day() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    game = build(make_spec("custom"), "train", 0)
    assert game.story[0x12:0x18] == b"000000"


@pytest.mark.parametrize(("rooms", "objects", "length"), [(2, 3, 4), (1, 2, 2), (4, 6, 8), (3, 5, 6)])
def test_the_shortest_solution_has_the_length_asked_for(rooms: int, objects: int, length: int) -> None:
    tasks = TextWorldTasks(make_spec("custom", rooms=rooms, objects=objects, quest_length=length))
    for index in range(2):
        task = tasks.task("train", index)
        assert task.complexity.solution_length == length
        assert task.complexity.exact
        assert task.milestones == length
        assert len(tasks.world(task).solution) == length


@pytest.mark.slow
def test_the_largest_complexity_of_the_guide_is_reached() -> None:
    task = TextWorldTasks(make_spec("custom", rooms=8, objects=12, quest_length=12)).task("train", 0)
    assert task.complexity.solution_length == 12
    assert task.complexity.exact


@pytest.mark.slow
def test_a_large_request_is_met() -> None:
    task = TextWorldTasks(make_spec("custom", rooms=20, objects=40, quest_length=20)).task("train", 0)
    assert task.complexity.solution_length == 20
    assert task.complexity.exact


@pytest.mark.parametrize(
    ("knobs", "quests"),
    [
        ({"quest_breadth": 2}, 2),
        ({"quest_breadth": 3, "quest_depth": 4}, 3),
        ({"parallel_quests": 2}, 2),
        ({"parallel_quests": 2, "quest_breadth": 2}, 4),
        ({"blend_instructions": True, "include_adj": True, "theme": "basic"}, 1),
    ],
)
def test_quests_have_the_shape_asked_for(knobs: dict[str, object], quests: int) -> None:
    spec = make_spec("custom", rooms=4, objects=6, quest_length=8, **knobs)
    for index in range(4):
        game = draw(spec, "train", index)
        complexity = measure(game).complexity
        assert complexity.solution_length == 8
        assert complexity.exact
        assert len(game.quests) == quests
        assert all(quest.win_events[0].actions for quest in game.quests)


def test_quests_bring_no_more_objects_than_were_asked_for() -> None:
    """Many steps back from a goal bring one too many; others lie beside them."""
    spec = make_spec("custom", rooms=2, objects=1, quest_length=3)
    for index in range(10):
        objects = draw(spec, "train", index).world.objects
        assert len([thing for thing in objects if thing.type not in ("P", "I")]) == 1, index  # Player and inventory.


def test_what_cannot_be_made_is_said_and_not_searched_for_ever() -> None:
    with pytest.raises(InfeasibleDifficultyError, match="quest_length=6 was not reached"):
        TextWorldTasks(make_spec("custom", rooms=1, objects=1, quest_length=6, quest_breadth=5)).task("train", 0)


@pytest.mark.parametrize(("breadth", "parallel"), [(2, 1), (3, 1), (2, 2)])
def test_the_shortest_quest_that_is_not_refused_is_found(breadth: int, parallel: int) -> None:
    spec = make_spec(
        "custom",
        rooms=6,
        objects=8,
        quest_length=parallel * (breadth + 1),
        quest_breadth=breadth,
        parallel_quests=parallel,
    )
    assert draw(spec, "train", 0) is not None


def test_doors_can_be_described_together() -> None:
    spec = make_spec("custom", rooms=8, objects=12, quest_length=4, blend_descriptions=True)
    blended = 0
    for index in range(5):
        game = draw(spec, "train", index)
        blended += any("closed doors here" in (info.desc or "") for info in game.infos.values())
    assert blended
    assert build(spec, "train", 0).solution.exact


def test_a_brief_goal_of_several_quests_asks_for_nothing_to_hold_together() -> None:
    spec = make_spec("custom", rooms=2, objects=3, quest_length=8, quest_breadth=3)
    game = draw(spec, "train", 600481)
    logic, solution, brief = measure(game).logic, measure(game).solution, brief_goal(game)
    # Nobody can be in two rooms, so the sentence must not say that both hold in the end.
    assert brief.count("you have been in the ") == 2
    assert "at some time" in brief
    assert "must" not in brief
    state, completed = logic.initial, 0
    assert solution is not None
    for action in solution.actions:
        state = logic.apply(state, action)
    assert logic.won(state)
    for quest in logic.quests:
        completed += any(state & win == win for win in quest.wins)
    assert completed < len(logic.quests)
    single = make_spec("custom", rooms=2, objects=3, quest_length=4)
    game = draw(single, "train", 0)
    brief = brief_goal(game)
    assert brief.startswith("Your goal: ")
    assert " must be " in brief


def test_a_game_without_a_known_plan_has_no_measured_actions() -> None:
    measured = measure(draw_as_made(make_spec("custom"), 1), budget=1)
    assert measured.solution is None
    assert measured.complexity.solution_length is None
    assert measured.complexity.action_size is None
    assert not measured.complexity.exact


HIDDEN = make_spec("custom", rooms=4, objects=6, quest_length=12), "test", 36
"""A task whose first candidate has a "locker" beside a "Canadian limited edition locker"."""


def test_a_game_that_refuses_a_step_of_its_own_plan_is_not_kept() -> None:
    spec, split, index = HIDDEN
    with textworld_generator() as textworld:
        tried = candidates(textworld, spec, split, index)
        first, second = next(tried), next(tried)
    solution = measure(first).solution
    assert solution is not None
    assert not wins(tell(first), solution.commands)
    assert content_of(draw(spec, split, index)) == content_of(second) != content_of(first)


def test_a_game_that_its_plan_wins_is_the_first_candidate() -> None:
    """Tasks keep the games that they had before plans were played."""
    spec = HIDDEN[0]
    with textworld_generator() as textworld:
        assert content_of(draw(spec, "test", 0)) == content_of(next(candidates(textworld, spec, "test", 0)))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_plan_of_a_game_that_was_drawn_anew_wins(engine: str, cache: Path) -> None:
    spec, split, index = HIDDEN
    player, game = ENGINES[engine](), load(spec, split, index)
    player.start(game)
    assert [player.step(playable(command)).won for command in game.solution] == [False] * 11 + [True]
    player.close()


@pytest.mark.parametrize("index", [1, 2])
def test_a_map_that_is_too_small_for_its_quest_is_drawn_anew(index: int) -> None:
    spec = make_spec("treasure_hunter", level=10)
    with textworld_generator() as textworld:
        assert next(candidates(textworld, spec, "test", index)).quests


def test_ingredients_that_must_be_cooked_are_drawn_anew_where_there_is_no_cooking() -> None:
    spec = make_spec("cooking", recipe=1, take=1, rooms=9, open=True, cut=True)
    for index in (0, 2, 3):
        with textworld_generator() as textworld:
            assert next(candidates(textworld, spec, "train", index)).quests
    with pytest.raises(Exception, match="cannot be eaten without cooking it"):  # TextWorld's own error is "high <= 0".
        _ = [draw_as_made(spec, seed) for seed in range(10)]


def test_no_game_is_in_two_splits() -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    buckets = {}
    for split in ("train", "validation", "test"):
        for index in range(12):
            game = draw(spec, split, index)
            buckets.setdefault(content_of(game), set()).add(split)
    assert all(len(splits) == 1 for splits in buckets.values())


def test_the_guides_games_are_tw_makes(tmp_path: Path) -> None:
    for seed in (1, 2):
        output = tmp_path / f"{seed}.z8"
        command = [str(Path(sys.executable).with_name("tw-make")), "custom", "--world-size", "2", "--nb-objects", "3"]
        command += ["--quest-length", "4", "--seed", str(seed), "--output", str(output), "--silent"]
        subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
        expected = json.loads(output.with_suffix(".json").read_text())
        game = build(make_spec("custom"), GUIDE_SPLIT, seed - 1)
        assert game.objective == expected["objective"]
        original = bytearray(output.read_bytes())
        original[0x12:0x18] = b"000000"
        assert game.story == bytes(original)


def test_the_guides_games_are_served_with_the_lengths_they_have() -> None:
    spec = make_spec("custom", rooms=2, objects=3, quest_length=4)
    assert TextWorldTasks(spec).size(GUIDE_SPLIT) == 100
    lengths = {measure(draw_as_made(spec, seed)).complexity.solution_length for seed in range(1, 101)}
    assert lengths == {3, 4}


@pytest.mark.parametrize(("rewards", "density"), [("sparse", 9.95), ("balanced", 2.87), ("dense", 1.17)])
def test_tw_simple_has_the_steps_per_reward_that_the_guide_measured(rewards: str, density: float) -> None:
    spec = make_spec("simple", rewards=rewards)
    assert TextWorldTasks(spec).size(GUIDE_SPLIT) == 100
    ratios = []
    for seed in range(1, 31):
        game = draw_as_made(spec, seed)
        ratios.append(len(game.metadata["walkthrough"]) / sum(1 for quest in game.quests if quest.reward))
    assert sum(ratios) / len(ratios) == pytest.approx(density, rel=0.03)


def test_textworld_is_left_as_it_was_however_often_its_generator_is_entered() -> None:
    from textworld.generator import chaining
    from textworld.generator.data import KnowledgeBase
    from textworld.generator.maker import GameMaker

    def patched() -> list[object]:
        return [chaining._Chainer, KnowledgeBase.__dict__["load"], GameMaker.set_walkthrough]

    before = patched()
    with textworld_generator():
        once = patched()
        with textworld_generator():
            assert patched() == once
        assert patched() == once
    assert all(there is not here for there, here in zip(before, once, strict=True))
    assert patched() == before


def test_what_is_measured_and_compiled_apart_is_what_is_built() -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    game = draw(spec, "train", 0)
    built, measured = build(spec, "train", 0), measure(game)
    assert built.logic.to_dict() == measured.logic.to_dict()
    assert (built.solution, built.complexity) == (measured.solution, measured.complexity)
    assert built.story == compile_story(game)
    assert built.story[0x12:0x18] == b"000000"
