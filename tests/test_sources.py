"""Sources of tasks: ids that lead back, the same task for ever, and errors for whatever is not a task."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from lights import LightsOptions, LightsTasks

pytest.importorskip("textworld", reason='needs: pip install "textagent-gym[textworld]"')

from textagent_gym.complexity import Complexity
from textagent_gym.domains.alfworld import RoomSpec, RoomTasks
from textagent_gym.domains.alfworld import generator as rooms
from textagent_gym.domains.swe.mutants.recipe import read_recipe
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.domains.textworld import FilesSpec, FileTasks, TextWorldTasks, make_spec
from textagent_gym.errors import InvalidOptionError, UnknownTaskError
from textagent_gym.sources import GeneratedTasks, ListedTasks
from textagent_gym.tasks import Task, TaskSource


class FewTasks(ListedTasks[Task]):
    """Two tasks for training, one for testing."""

    splits = ("train", "test")

    def _ids(self, split: str) -> list[str]:
        return ["Few/a", "Few/b"] if split == "train" else ["Few/c"]

    def _load(self, task_id: str, split: str, index: int) -> Task:
        return Task(id=task_id, split=split, index=index, complexity=Complexity(), milestones=1)

    def _advice(self) -> str:
        return "Ids are Few/<letter>."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A game of one's own; it is not played here."""
    header = bytearray(64)  # Nothing but a header: version, length in units of eight bytes, and a checksum of 0.
    header[0], header[0x1B] = 8, 8
    (tmp_path / "a.z8").write_bytes(header)
    return tmp_path


SOURCES: dict[str, Callable[[], TaskSource[Any]]] = {
    "lights": lambda: LightsTasks(LightsOptions()),
    "rooms": lambda: RoomTasks(RoomSpec(receptacles=5, objects=6)),
    "textworld": lambda: TextWorldTasks(make_spec(rooms=1, objects=2, quest_length=2)),
    "listed": FewTasks,
    "swe": lambda: BuiltTasks(("measures",)),
}
NO_IDS = (
    None,
    5,
    5.0,
    True,
    b"Lights/v1/s4/train/0",
    ("Lights",),
    ["x"],
    {"id": 1},
    "",
    "/",
    "x/train/0",
    "\ud800",
    "9" * 5000,
)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("task_id", NO_IDS, ids=lambda task_id: repr(task_id)[:20])
def test_what_is_not_an_id_is_an_unknown_task(source: Callable[[], TaskSource[Any]], task_id: Any) -> None:
    with pytest.raises(UnknownTaskError):
        source().find(task_id)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("index", [None, 1.5, 1.0, "3", True, [1], float("nan")], ids=repr)
def test_an_index_that_is_not_a_whole_number_is_an_invalid_option(
    source: Callable[[], TaskSource[Any]], index: Any
) -> None:
    with pytest.raises(InvalidOptionError, match="task_index must be a whole number"):
        source().task("train", index)


def test_an_index_beyond_the_end_says_where_the_end_is() -> None:
    with pytest.raises(UnknownTaskError, match=r"task_index=2 .* goes from 0 to 1\. Ids are Few/<letter>\."):
        FewTasks().task("train", 2)
    with pytest.raises(UnknownTaskError, match="it goes from 0"):
        LightsTasks(LightsOptions()).task("train", -1)


def test_a_listed_task_is_found_in_its_split() -> None:
    source = FewTasks()
    assert [source.size(split) for split in source.splits] == [2, 1]
    task = source.find("Few/c")
    assert (task.split, task.index) == ("test", 0)
    assert source.task("train", np.int64(1)) == source.find("Few/b")  # type: ignore[arg-type]


def test_an_unknown_task_is_told_in_whole_sentences() -> None:
    class NamelessTasks(FewTasks):
        def _advice(self) -> str:
            return ""

    for source, message in (
        (FewTasks(), "task 'x' does not exist here. Ids are Few/<letter>."),
        (NamelessTasks(), "task 'x' does not exist here."),
    ):
        with pytest.raises(UnknownTaskError) as error:
            source.find("x")
        assert str(error.value) == message


def test_worlds_that_are_not_kept_are_prepared_where_they_are_asked_for() -> None:
    for source in (FewTasks(), LightsTasks(LightsOptions())):
        told: list[int] = []
        source.prepare("train", [1, 0])
        source.prepare("train", [1, 0], progress=told.append)
        assert told == [1, 2]


@pytest.mark.parametrize("name", ["lights", "rooms", "textworld"])
def test_an_id_leads_to_one_task_and_its_world(name: str) -> None:
    source = SOURCES[name]()
    assert isinstance(source, GeneratedTasks)
    task = source.task("validation", 1)
    assert task.id == f"{source.prefix}/v{source.version}/{source.spec.slug}/validation/1"
    assert source.find(task.id) == task == pickle.loads(pickle.dumps(task))
    assert source.world(task) == source.world(pickle.loads(pickle.dumps(task)))
    other_version = task.id.replace(f"/v{source.version}/", f"/v{source.version + 1}/")
    for wrong in (f"{task.id} ", task.id.replace("/1", "/01"), task.id.replace("/1", "/-1"), other_version):
        with pytest.raises(UnknownTaskError):
            source.find(wrong)


def test_a_task_of_other_options_has_no_world_here() -> None:
    task = LightsTasks(LightsOptions(switches=3)).task("train", 0)
    with pytest.raises(UnknownTaskError, match="made with the same options"):
        LightsTasks(LightsOptions(switches=4)).world(task)


@pytest.mark.parametrize("name", ["textagent/ALFWorld-v0", "textagent/TextWorld-v0"])
def test_a_snapshot_survives_pickling_its_task(name: str) -> None:
    env = gymnasium.make(name).unwrapped
    env.reset(options={"task_index": 0})
    task = env.task
    assert pickle.loads(pickle.dumps(task)) == task
    assert type(task) is Task


def test_games_of_a_folder_are_listed_by_name(folder: Path) -> None:
    source = FileTasks(FilesSpec(path=str(folder)))
    task = source.find("TextWorld/files/a.z8")
    assert (source.size("all"), task.index, task.split) == (1, 0, "all")
    assert source.world(task).story == folder / "a.z8"
    for wrong in ("TextWorld/files/b.z8", "TextWorld/files/../a.z8", None):
        with pytest.raises(UnknownTaskError, match=r"<name>\.z8"):
            source.find(wrong)  # type: ignore[arg-type]


def test_tasks_are_prepared_in_processes_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    source = TextWorldTasks(make_spec(rooms=1, objects=2, quest_length=1))
    told: list[int] = []
    source.prepare("train", range(3), workers=2, progress=told.append)
    assert told == [0, 1, 2, 3]
    assert all(source._is_kept("train", index) for index in range(3))
    source.prepare("train", range(3), progress=told.append)
    assert told[4:] == [3]
    with pytest.raises(InvalidOptionError):
        source.prepare("train", ["0"])  # type: ignore[list-item]


# Same id, same task, for ever.


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _lights(options: dict[str, Any]) -> str:
    source = LightsTasks(LightsOptions(**options))
    return _digest(*(sorted(source.world(source.task("train", index))) for index in range(5)))


def _room(options: dict[str, Any]) -> str:
    contents = [rooms.generate(RoomSpec(**options), split, 0)[1] for split in ("train", "test")]
    return _digest(*((content["pddl_problem"], content["task"]) for content in contents))


def _textworld(options: dict[str, Any]) -> str:
    source = TextWorldTasks(make_spec(**options), engine="reference")  # The compiled story holds all of the game.
    game = source.world(source.task("train", 0))
    return _digest(hashlib.sha256(game.story.read_bytes()).hexdigest(), game.objective)


GOLDEN: dict[str, tuple[Callable[[dict[str, Any]], str], int, list[tuple[dict[str, Any], str]]]] = {
    # world: how a task is read, version, [(what is asked for, digest of what that gives)]
    "lights": (_lights, 1, [({"switches": 6}, "e457470fc26d1ece")]),
    "ALFWorld": (
        _room,
        2,
        [
            ({}, "711c3a21a9c5879c"),
            ({"receptacles": 8, "objects": 14, "goals": 2, "candidates": 3, "closed": 0.4}, "ae51afdc4aa9aab3"),
            ({"room": "kitchen", "task_types": ("heat", "cool"), "solution_length": 8}, "be7ac746089eadd9"),
        ],
    ),
    "TextWorld": (
        _textworld,
        1,
        [
            ({}, "bb47c3cdd369f7da"),
            ({"rooms": 4, "objects": 6, "quest_length": 8}, "d5695334a1080943"),
            ({"game": "cooking", "recipe": 2, "take": 1, "cook": True}, "349a44dbd70c25f5"),
            ({"game": "coin_collector", "level": 5}, "f72c8b2c51aa23d8"),
            ({"game": "treasure_hunter", "level": 12}, "a438dfa0488230d6"),
            ({"game": "simple"}, "70e41a6fa80cf9a0"),
        ],
    ),
}
VERSIONS = {"lights": LightsTasks.version, "ALFWorld": RoomTasks.version, "TextWorld": TextWorldTasks.version}
CASES = [
    pytest.param(world, *case, id=f"{world}-{case[0]}") for world, (_, _, cases) in GOLDEN.items() for case in cases
]


@pytest.mark.parametrize(("world", "asked", "digest"), CASES)
def test_the_same_id_is_the_same_task_for_ever(
    world: str, asked: dict[str, Any], digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))  # What an earlier version has made does not count.
    read, version, _ = GOLDEN[world]
    now = read(asked)
    assert (VERSIONS[world], now) == (version, digest), (
        f"Ids of {world} give other tasks than before, and results that name them would mean something else. If that "
        f"is intended, raise its generator's VERSION, and write the new version and digest ({now}) here. If it "
        "was raised already, only the second is left to do. Otherwise the change of the task is a mistake."
    )


RECIPES = {
    "a63c870f1c": "cc7090ecca983c18",  # measures-own
    "0edf136810": "911985c13085f63f",  # toolz-1.2.0
    "09726852ec": "a6ca1c7e4f3abc59",  # networkx-3.6.1
}


@pytest.mark.parametrize(("recipe_id", "digest"), RECIPES.items())
def test_a_recipe_never_changes_under_its_id(recipe_id: str, digest: str) -> None:
    lines = (
        files("textagent_gym.domains.swe.mutants").joinpath("recipes.jsonl").read_text(encoding="utf-8").splitlines()
    )
    recipe = next(recipe for recipe in map(read_recipe, lines) if recipe.id == recipe_id)
    now = _digest(recipe.package, recipe.key, recipe.fail_to_pass, recipe.symptoms)
    assert now == digest, f"{recipe_id} is another task than before: a changed recipe gets a new id. (Digest: {now})"
