"""Minecraft's recipes, of the package and of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.domains.textcraft.test_planner import play
from textagent_gym.domains.textcraft import Game, MinecraftOptions, MinecraftTasks, read_book, solve
from textagent_gym.errors import InvalidOptionError, UnknownTaskError


def shaped(pattern: list[str], key: dict[str, Any], result: Any, **more: Any) -> dict[str, Any]:
    return {"type": "minecraft:crafting_shaped", "pattern": pattern, "key": key, "result": result, **more}


def shapeless(ingredients: list[Any], result: Any, **more: Any) -> dict[str, Any]:
    return {"type": "minecraft:crafting_shapeless", "ingredients": ingredients, "result": result, **more}


def item(name: str) -> dict[str, str]:
    return {"item": f"minecraft:{name}"}


FILES = {
    "oak_planks": shapeless([item("oak_log")], {**item("oak_planks"), "count": 4}, group="planks"),
    "birch_planks": shapeless([{"tag": "minecraft:birch_logs"}], {**item("birch_planks"), "count": 4}, group="planks"),
    "stick": shaped(["#", "#"], {"#": {"tag": "minecraft:planks"}}, {**item("stick"), "count": 4}),
    "torch": shaped(["X", "#"], {"#": item("stick"), "X": [item("coal"), item("charcoal")]}, item("torch")),
    "iron_ingot": shapeless([item("iron_block")], {**item("iron_ingot"), "count": 9}),
    "iron_ingot_from_nuggets": shapeless([item("iron_nugget")] * 9, item("iron_ingot")),
    "iron_nugget": shapeless([item("iron_ingot")], {**item("iron_nugget"), "count": 9}),
    "glass": {"type": "minecraft:smelting", "ingredient": item("sand"), "result": "minecraft:glass"},
}


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, recipe in files.items():
        (folder / f"{name}.json").write_text(json.dumps(recipe), encoding="utf-8")
    return folder


def test_a_folder_is_read_as_upstream_reads_it(tmp_path: Path) -> None:
    book = read_book(str(write(tmp_path, FILES)))
    assert {output: [recipe.command for recipe in ways] for output, ways in book.recipes.items()} == {
        "birch planks": ["craft 4 birch planks using 1 birch logs"],  # No recipe makes a log: the tag is an item.
        "oak planks": ["craft 4 oak planks using 1 oak log"],
        "iron ingot": ["craft 1 iron ingot using 9 iron nugget"],  # The nugget of an ingot would be a circle.
        "stick": ["craft 4 stick using 2 planks"],
        "torch": ["craft 1 torch using 1 stick, 1 coal"],  # In the order of the file's key, the first alternative.
    }
    assert book.tags == {"planks": ("birch planks", "oak planks")}
    assert book.gettable == {"oak log", "birch logs", "coal", "iron nugget", "iron block"}
    assert book.depth("torch") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a recipe"),
        ('{"type": "minecraft:crafting_shaped"}', "'pattern'"),
        ('{"type": "minecraft:crafting_shapeless", "ingredients": [{"stone": 1}], "result": "a"}', "'tag'"),
        ('{"type": "minecraft:crafting_shapeless", "ingredients": [[]], "result": "a"}', "is not a recipe"),
        ("[1]", "is not a recipe"),
    ],
)
def test_a_file_that_is_not_a_recipe_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "odd.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidOptionError, match=r"odd\.json") as raised:
        read_book(str(tmp_path))
    assert message in str(raised.value)


def test_a_folder_without_recipes_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="must be a folder of recipes"):
        read_book(str(tmp_path / "nowhere"))


@pytest.fixture(scope="module")
def source() -> MinecraftTasks:
    pytest.importorskip("minecraft_data", reason='needs: pip install "textagent-gym[textcraft]"')
    return MinecraftTasks()


def test_every_goal_of_the_package_can_be_crafted_as_planned(source: MinecraftTasks) -> None:
    assert len(source.book.recipes) == 547
    for goal in source.book.recipes:
        game = Game.of(source.book, goal, ())
        assert play(game, {}, solve(game, {}).commands).won


def test_variants_become_tags(source: MinecraftTasks) -> None:
    assert [recipe.command for recipe in source.book.recipes["chest"]] == ["craft 1 chest using 8 planks"]
    assert set(source.book.tags) == {"planks", "slab", "wool", "mushroom"}
    assert len(source.book.tags["planks"]) == 8
    assert len(source.book.recipes["campfire"]) == 2  # Of coal or of charcoal, not of each of 32 logs.


def test_goals_are_dealt_out_to_the_splits_once(source: MinecraftTasks) -> None:
    ids = [source.task(split, index).id for split in source.splits for index in range(source.size(split))]
    goals = [name.rpartition("/")[2].replace("_", " ") for name in ids]
    assert sorted(goals) == sorted(source.book.recipes)
    assert source.find(ids[-1]).id == ids[-1]
    assert ids[0].startswith("TextCraft/minecraft-1.16.2/x10/train/")
    with pytest.raises(UnknownTaskError, match=r"such as TextCraft/minecraft-1\.16\.2/x10/train/"):
        source.find("TextCraft/minecraft-1.16.2/x10/train/moon")


def test_goals_are_chosen_by_depth_and_length() -> None:
    pytest.importorskip("minecraft_data", reason='needs: pip install "textagent-gym[textcraft]"')
    chosen = MinecraftTasks(MinecraftOptions(depth=(2, 3), lengths=(6, 9), distractors=0))
    size = chosen.size("test")
    assert 0 < size < MinecraftTasks().size("test")
    for task in (chosen.task("test", index) for index in range(size)):
        assert 6 <= (task.complexity.solution_length or 0) <= 9
        assert task.task_type in ("depth 2", "depth 3")
        game = chosen.world(task)
        assert set(game.shown) == set(chosen.book.needed(game.goal))
    longest = MinecraftTasks(MinecraftOptions(lengths=(48, 48)))
    empty = next(split for split in longest.splits if not longest.size(split))
    env = gymnasium.make("textagent/TextCraft-minecraft-v0", lengths=(48, 48), split=empty)
    with pytest.raises(InvalidOptionError, match=f"split '{empty}' holds no tasks with these options"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    "chosen", [{"depth": (9, 12)}, {"lengths": (100, 200)}, {"depth": (1, 1), "lengths": (40, 48)}]
)
def test_a_choice_of_no_goal_is_refused_with_the_ranges_that_exist(chosen: dict[str, tuple[int, int]]) -> None:
    names = " and ".join(f"{name}={pair}" for name, pair in chosen.items())
    with pytest.raises(InvalidOptionError) as raised:
        MinecraftTasks(MinecraftOptions(**chosen))
    assert str(raised.value) == (
        f"no goal has {names}: of the 547 goals, depth goes from 1 to 4 and lengths from 2 to 48"
    )


def test_an_empty_name_of_a_folder_is_told_as_such() -> None:
    with pytest.raises(InvalidOptionError, match='data="" is not a folder'):
        MinecraftOptions(data="")


def test_what_the_documentation_says_cannot_be_crafted(source: MinecraftTasks) -> None:
    taken_apart = ("coal", "diamond", "dried kelp", "emerald", "lapis lazuli", "redstone", "slime ball", "wheat")
    one_block = ("purpur slab", "quartz bricks", "quartz pillar", "snow")
    circles = ("gold nugget", "iron nugget", "honey bottle")
    assert len(source.book.recipes) + len(taken_apart + one_block + circles) == 562
    assert not source.book.recipes.keys() & {*taken_apart, *one_block, *circles}
