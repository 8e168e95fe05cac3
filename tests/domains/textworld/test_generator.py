"""Games are what was asked for, the same everywhere, and in one split only."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from textagent_gym import repetition
from textagent_gym.domains.textworld import generator, store
from textagent_gym.domains.textworld.planner import Planner
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, make_spec
from textagent_gym.domains.textworld.tasks import TextWorldTasks
from textagent_gym.errors import GenerationError, InfeasibleDifficultyError, InvalidOptionError, UnknownTaskError
from textagent_gym.repetition import RepetitionWarning

DIGESTS = """
import hashlib, sys
from textagent_gym.domains.textworld.generator import build
from textagent_gym.domains.textworld.specs import make_spec
for spec in (make_spec("custom"), make_spec("cooking", recipe=2, take=1, cook=True, cut=True)):
    game = build(spec, "train", 0)
    print(hashlib.sha256(game.story).hexdigest(), game.solution.commands, game.objective, game.logic.to_dict())
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    return tmp_path


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
    game = generator.build(make_spec("custom"), "train", 0)
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
        with generator.quick_upstream():
            game = generator._custom_game(spec, "train", index)
        _, _, complexity, _ = generator.describe(game)
        assert complexity.solution_length == 8
        assert complexity.exact
        assert len(game.quests) == quests
        assert all(quest.win_events[0].actions for quest in game.quests)


def test_what_cannot_be_made_is_said_and_not_searched_for_ever() -> None:
    with pytest.raises(InfeasibleDifficultyError, match="quest_length=6 was not reached"):
        TextWorldTasks(make_spec("custom", rooms=1, objects=1, quest_length=6, quest_breadth=5)).task("train", 0)


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        ({"game": "chess"}, InvalidOptionError),
        ({"ambiguous_instructions": True}, InvalidOptionError),
        ({"quest_length": 4, "quest_breadth": 5}, InfeasibleDifficultyError),
        ({"quest_length": 2, "quest_breadth": 2}, InfeasibleDifficultyError),
        ({"quest_length": 5, "quest_breadth": 2, "parallel_quests": 2}, InfeasibleDifficultyError),
        ({"quest_length": 8, "quest_depth": 7}, InfeasibleDifficultyError),
        ({"romms": 3}, InvalidOptionError),
        ({"rooms": 0}, InvalidOptionError),
        ({"rooms": 2.5}, InvalidOptionError),
        ({"state_size": 2}, InvalidOptionError),
        ({"quest_length": 4, "solution_length": 4}, InvalidOptionError),
        ({"theme": "space"}, InvalidOptionError),
        ({"game": "simple", "rewards": "rich"}, InvalidOptionError),
        ({"game": "coin_collector", "level": 301}, InvalidOptionError),
        ({"game": "coin_collector", "level": 200}, InfeasibleDifficultyError),
        ({"game": "treasure_hunter", "level": 31}, InvalidOptionError),
        ({"game": "cooking", "recipe": 1, "take": 2}, InfeasibleDifficultyError),
        ({"game": "cooking", "rooms": 2}, InvalidOptionError),
        ({"game": "files", "path": "/nowhere"}, InvalidOptionError),
    ],
)
def test_a_wrong_request_says_what_exists(knobs: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        make_spec(**knobs)


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
    with generator.quick_upstream():
        assert generator._custom_game(spec, "train", 0) is not None


def test_doors_can_be_described_together() -> None:
    spec = make_spec("custom", rooms=8, objects=12, quest_length=4, blend_descriptions=True)
    blended = 0
    for index in range(5):
        with generator.quick_upstream():
            game = generator._custom_game(spec, "train", index)
        blended += any("closed doors here" in (info.desc or "") for info in game.infos.values())
    assert blended
    assert generator.build(spec, "train", 0).solution.exact


def test_a_brief_goal_of_several_quests_asks_for_nothing_to_hold_together() -> None:
    spec = make_spec("custom", rooms=2, objects=3, quest_length=8, quest_breadth=3)
    with generator.quick_upstream():
        game = generator._custom_game(spec, "train", 600481)
    logic, solution, _, brief = generator.describe(game)
    # Nobody can be in two rooms, so the sentence must not say that both hold in the end.
    assert brief.count("you have been in the ") == 2
    assert "at some time" in brief
    assert "must" not in brief
    state, completed = logic.initial, 0
    for action in solution.actions:
        state = logic.apply(state, action)
    assert logic.won(state)
    for quest in logic.quests:
        completed += any(state & win == win for win in quest.wins)
    assert completed < len(logic.quests)
    single = make_spec("custom", rooms=2, objects=3, quest_length=4)
    with generator.quick_upstream():
        game = generator._custom_game(single, "train", 0)
    logic, solution, _, brief = generator.describe(game)
    assert brief.startswith("Your goal: ")
    assert " must be " in brief


def test_a_small_split_says_how_many_games_it_has(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The games are drawn and not compiled, which takes the most and changes nothing here.
    monkeypatch.setattr(repetition, "_IN_A_ROW", 8)
    spec = make_spec("coin_collector", level=1)
    played = store.load(spec, "train", 0)
    with generator.quick_upstream():
        contents = [generator.content_hash(generator._challenge_game(spec, "train", index)) for index in range(50)]
    assert played.content == contents[0]
    monkeypatch.setattr(store, "load", lambda spec, split, index: replace(played, content=contents[index]))
    tasks = TextWorldTasks(spec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RepetitionWarning)
        for index in (*range(50), *range(50)):
            tasks.task("train", index)
    assert len(caught) == 1
    different = int(re.search(r"are (\d+) different", str(caught[0].message))[1])  # type: ignore[index]
    assert 3 <= different <= len(set(contents)) < 30


def test_a_small_split_of_rooms_says_so_and_a_large_one_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.domains.alfworld.generator import RoomSpec
    from textagent_gym.domains.alfworld.tasks import RoomTasks

    monkeypatch.setattr(repetition, "_IN_A_ROW", 2)
    small = RoomSpec(receptacles=3, objects=1, candidates=1, room="bathroom", task_types=("pick",))
    for spec, warned in ((RoomSpec(), []), (small, [RepetitionWarning])):
        tasks = RoomTasks(spec)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for index in range(30 if not warned else 300):
                tasks.task("train", index)
        assert [warning.category for warning in caught] == warned


def test_a_game_without_a_known_plan_has_no_measured_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "Planner", lambda logic: Planner(logic, budget=1))
    with generator.quick_upstream():
        game = generator._guide_game(make_spec("custom"), 1)
    _, solution, complexity, _ = generator.describe(game)
    assert solution is None
    assert complexity.solution_length is None
    assert complexity.action_size is None
    assert not complexity.exact


def test_no_game_is_in_two_splits() -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    buckets = {}
    for split in ("train", "validation", "test"):
        for index in range(12):
            game = generator._custom_game(spec, split, index)
            buckets.setdefault(generator._content(game), set()).add(split)
    assert all(len(splits) == 1 for splits in buckets.values())


def test_the_guides_games_are_tw_makes(tmp_path: Path) -> None:
    for seed in (1, 2):
        output = tmp_path / f"{seed}.z8"
        command = [str(Path(sys.executable).with_name("tw-make")), "custom", "--world-size", "2", "--nb-objects", "3"]
        command += ["--quest-length", "4", "--seed", str(seed), "--output", str(output), "--silent"]
        subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
        expected = json.loads(output.with_suffix(".json").read_text())
        game = generator.build(make_spec("custom"), GUIDE_SPLIT, seed - 1)
        assert game.objective == expected["objective"]
        original = bytearray(output.read_bytes())
        original[0x12:0x18] = b"000000"
        assert game.story == bytes(original)


def test_the_guides_games_are_served_with_the_lengths_they_have() -> None:
    spec = make_spec("custom", rooms=2, objects=3, quest_length=4)
    assert TextWorldTasks(spec).size(GUIDE_SPLIT) == 100
    with generator.quick_upstream():
        lengths = {generator.describe(generator._guide_game(spec, seed))[2].solution_length for seed in range(1, 101)}
    assert lengths == {3, 4}


@pytest.mark.parametrize(("rewards", "density"), [("sparse", 9.95), ("balanced", 2.87), ("dense", 1.17)])
def test_tw_simple_has_the_steps_per_reward_that_the_guide_measured(rewards: str, density: float) -> None:
    spec = make_spec("simple", rewards=rewards)
    assert TextWorldTasks(spec).size(GUIDE_SPLIT) == 100
    ratios = []
    with generator.quick_upstream():
        for seed in range(1, 31):
            game = generator._guide_game(spec, seed)
            ratios.append(len(game.metadata["walkthrough"]) / sum(1 for quest in game.quests if quest.reward))
    assert sum(ratios) / len(ratios) == pytest.approx(density, rel=0.03)


def test_ids_lead_back_to_their_task() -> None:
    tasks = TextWorldTasks(make_spec("custom", rooms=1, objects=2, quest_length=2))
    task = tasks.task("train", 1)
    assert task.id == "TextWorld/v1/custom-w1-o2-q2/train/1"
    assert tasks.find(task.id) == task
    wrong_ids = ("TextWorld/v1/custom-w2-o2-q2/train/1", "TextWorld/v1/custom-w1-o2-q2/train/01", "x", task.id + "/")
    for wrong in (*wrong_ids, task.id.replace("/v1/", "/v0/")):
        with pytest.raises(UnknownTaskError):
            tasks.find(wrong)
    with pytest.raises(UnknownTaskError):
        tasks.task(GUIDE_SPLIT, 100)


def test_a_damaged_game_is_made_again(cache: Path) -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    game = store.load(spec, "train", 0)
    whole = game.story.read_bytes()
    for damage in (b"", b"nonsense"):
        game.story.write_bytes(damage)
        store._read_shared.cache_clear()
        assert store.load(spec, "train", 0).story.read_bytes() == whole
    assert store.size()[0] == 1
    assert store.clear() == 1
    assert store.size() == (0, 0)


SMALLEST = make_spec("custom", rooms=1, objects=2, quest_length=2)


def test_games_that_changed_places_are_noticed(cache: Path) -> None:
    first, second = (store.load(SMALLEST, "train", index).story.parent for index in (0, 1))
    stories = [(folder / "game.z8").read_bytes() for folder in (first, second)]
    first.rename(first.with_name("aside"))
    second.rename(first)
    first.with_name("aside").rename(second)
    store._read_shared.cache_clear()
    assert [store.load(SMALLEST, "train", index).story.read_bytes() for index in (0, 1)] == stories


def test_a_file_in_the_place_of_a_games_folder_is_replaced(cache: Path) -> None:
    folder = store.load(SMALLEST, "train", 0).story.parent
    shutil.rmtree(folder)
    folder.write_text("a file")
    store._read_shared.cache_clear()
    assert store.load(SMALLEST, "train", 0).story.is_file()


def test_a_cache_that_cannot_be_written_names_its_path(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(
            GenerationError, match=r"train/0 cannot be written: No space left on device.*TEXTAGENT_CACHE"
        ):
            store.load(SMALLEST, "train", 0)
    assert not list(cache.rglob(".building-*"))
    blocked = cache / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("TEXTAGENT_CACHE", str(blocked))
    with pytest.raises(GenerationError, match="blocked"):
        store.load(SMALLEST, "train", 0)


def test_the_cache_keeps_the_games_that_were_used_last(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_SWEEP", 1)
    monkeypatch.setenv("TEXTAGENT_CACHE_GAMES", "3")
    for index in range(3):
        record = store.load(SMALLEST, "train", index).story.with_name("game.json")
        os.utime(record, (index, index))
    store._read_shared.cache_clear()
    solution = store.load(SMALLEST, "train", 0).solution  # Used again, so the second is now the oldest.
    store.load(SMALLEST, "train", 3)
    assert store.size()[0] == 3
    assert [store.is_stored(SMALLEST, "train", index) for index in range(4)] == [True, False, True, True]
    assert store.load(SMALLEST, "train", 1).story.is_file()
    assert store.load(SMALLEST, "train", 0).solution == solution
    monkeypatch.setenv("TEXTAGENT_CACHE_GAMES", "many")
    with pytest.raises(InvalidOptionError, match="TEXTAGENT_CACHE_GAMES"):
        store.load(SMALLEST, "train", 4)


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "random", "changed"])
def test_a_damaged_story_of_ones_own_is_an_error_and_not_the_end_of_the_process(
    upstream_game, tmp_path: Path, damage: str
) -> None:
    story = bytearray(Path(upstream_game(make_spec("custom"), 1)[1]).read_bytes())
    changed = bytearray(story)
    changed[len(story) // 2] ^= 0xFF
    content = {
        "empty": b"",
        "cut": bytes(story[: len(story) // 2]),
        "text": b"no story\n" * 1000,
        "random": random.Random(0).randbytes(100_000),
        "changed": bytes(changed),
    }[damage]
    (tmp_path / "a.z8").write_bytes(content)
    (tmp_path / "b.z8").write_bytes(story)
    code = (
        "import gymnasium, sys\n"
        "from textagent_gym.errors import GenerationError\n"
        "env = gymnasium.make('textagent/TextWorld-v0', game='files', path=sys.argv[1])\n"
        "try:\n    env.reset(options={'task_index': 0})\n"
        "except GenerationError as error:\n    print('a.z8' in str(error))\n"
        "print(len(env.reset(options={'task_index': 1})[0]) > 100)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def _load(_: int) -> str:
    return str(store.load(make_spec("custom", rooms=1, objects=2, quest_length=2), "train", 0).solution)


def test_many_processes_may_want_the_same_game_at_once(cache: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(_load, range(6)))) == 1
    assert not list(cache.rglob(".building-*"))


def test_ones_own_games_are_played_with_and_without_their_description(upstream_game, tmp_path: Path) -> None:
    import shutil

    import gymnasium

    from textagent_gym.errors import UnsupportedOperationError

    _, story = upstream_game(make_spec("custom"), 1)
    shutil.copy(story, tmp_path / "b.z8")
    shutil.copy(Path(story).with_suffix(".json"), tmp_path / "b.json")
    shutil.copy(story, tmp_path / "a.z8")
    env = gymnasium.make("textagent/TextWorld-v0", game="files", path=str(tmp_path)).unwrapped
    _, info = env.reset(options={"task": "TextWorld/files/b.z8"})
    assert info["complexity"].solution_length == 4
    for action in env.oracle():
        *_, info = env.step(action)
    assert info["success"]
    _, info = env.reset(options={"task_index": 0})
    assert info["complexity"].solution_length is None
    with pytest.raises(UnsupportedOperationError, match="json"):
        env.oracle()
    env.step("take type J keycard from mantle")
