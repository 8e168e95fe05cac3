"""ScienceWorld's tasks and gold paths, without a simulator."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium
import pytest

from textagent_gym.complexity import Complexity
from textagent_gym.domains.scienceworld import ScienceWorldEnv, ScienceWorldOptions, ScienceWorldTasks, gold, server
from textagent_gym.domains.scienceworld.gold import GoldPath, compute, gold_path
from textagent_gym.domains.scienceworld.tasks import SPLITS, TASKS
from textagent_gym.errors import (
    GenerationError,
    InfeasibleDifficultyError,
    InvalidOptionError,
    UnknownTaskError,
    WorldBrokenError,
)
from textagent_gym.evaluation import suite_of
from textagent_gym.knobs import AXES
from textagent_gym.registration import SCIENCEWORLD


def test_every_variation_is_in_one_split_and_the_first_of_a_split_are_of_all_sorts() -> None:
    source = ScienceWorldTasks()
    addresses = [source.world(source.task(split, i)) for split in SPLITS for i in range(source.size(split))]
    assert len(addresses) == len(set(addresses)) == 7207
    assert Counter(name for name, _ in addresses) == {name: sum(counts) for name, counts in TASKS.items()}
    assert all(set(range(sum(TASKS[name]))) == {v for n, v in addresses if n == name} for name in TASKS)
    for split in SPLITS:
        assert {source.task(split, i).task_type for i in range(30)} == set(TASKS)
    assert [source.size(split) for split in SPLITS] == [3592, 1796, 1819]


def test_an_id_leads_to_its_task_and_names_the_simplifications() -> None:
    source = ScienceWorldTasks(
        ScienceWorldOptions(task_types="melt", variations=2, simplifications=("openDoors", "easy"))
    )
    assert [source.size(split) for split in SPLITS] == [2, 2, 2]
    task = source.task("test", 1)
    assert task.id == "ScienceWorld/v1.2.3-openDoors+easy/test/melt/22"
    assert source.find(task.id) == task
    assert source.options.simplified == "openDoors,easy"
    with pytest.raises(UnknownTaskError, match=r"such as ScienceWorld/v1\.2\.3/train/boil/0"):
        ScienceWorldTasks().find(task.id)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task_types": "boiling"}, "Did you mean 'boil'"),
        ({"variations": 0}, "variations must be"),
        ({"simplifications": "openDoor"}, "Did you mean 'openDoors'"),
        ({"simplifications": ("openDoors", "openDoors")}, "each may be named once"),
        ({"simplifications": "noElectricalAction"}, "tasks on electricity: power-component"),
        ({"simplification": "easy"}, "Did you mean 'simplifications'"),
        ({"state_size": 400}, "state_size must be a pair"),
        ({"solution_length": (9, 3)}, "the first is more than the second"),
    ],
)
def test_a_wrong_option_is_named_whatever_is_installed(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        gymnasium.make("textagent/ScienceWorld-v0", **given)


def chosen(**options: Any) -> tuple[list[tuple[str, int]], list[Complexity]]:
    """Worlds and complexities of the tasks of the test split."""
    source = ScienceWorldTasks(ScienceWorldOptions(**options))
    tasks = [source.task("test", index) for index in range(source.size("test"))]
    assert [source.find(task.id) for task in tasks] == tasks
    return [source.world(task) for task in tasks], [task.complexity for task in tasks]


def test_a_range_chooses_the_measured_tasks_in_it_in_their_order() -> None:
    every, measured = chosen(variations=10, solution_length=(0, 1000))
    plain, unmeasured = chosen(variations=10)
    assert every == plain
    assert sum(each.solution_length is None for each in unmeasured) == 241  # As before they could be chosen.
    for axis, least, most in (("state_size", 411, 426), ("action_size", 300, 700), ("solution_length", 20, 40)):
        values = [getattr(each, axis) for each in measured]
        inside = [value is not None and least <= value <= most for value in values]
        assert 5 < sum(inside) < len(every) / 2
        worlds, complexities = chosen(**{axis: (least, most)})
        assert worlds == [world for world, there in zip(every, inside, strict=True) if there]
        assert complexities == [each for each, there in zip(measured, inside, strict=True) if there]


def test_the_id_of_a_task_that_was_chosen_names_the_ranges() -> None:
    source = ScienceWorldTasks(ScienceWorldOptions(solution_length=(1, 9), state_size=(399, 408)))
    assert source.task("test", 0).id == "ScienceWorld/v1.2.3-objects=399+408-length=1+9/test/power-component/15"


def test_where_a_range_leaves_no_task_for_training_the_advice_names_another() -> None:
    source = ScienceWorldTasks(ScienceWorldOptions(task_types="boil", solution_length=(150, 193)))
    assert source.size("train") == 0
    with pytest.raises(UnknownTaskError, match=r"such as ScienceWorld.*/test/boil/"):
        source.find("boil")


def test_ranges_without_a_task_are_infeasible_and_the_error_says_what_is_there() -> None:
    with pytest.raises(InfeasibleDifficultyError, match=r"has solution_length=\(1, 9\).* goes from 36 to 172"):
        ScienceWorldTasks(ScienceWorldOptions(task_types="boil", solution_length=(1, 9)))
    with pytest.raises(InfeasibleDifficultyError, match="none was measured"):
        ScienceWorldTasks(ScienceWorldOptions(simplifications="easy", solution_length=(1, 9)))


@pytest.mark.parametrize("axis", AXES)
def test_the_suite_of_an_axis_differs_in_that_axis(axis: str) -> None:
    sizes = []
    for part in suite_of(f"scienceworld-{axis.replace('_', '-')}-v1").parts:
        source = ScienceWorldTasks(ScienceWorldOptions.of(part.kwargs))
        tasks = [source.task("test", index) for index in range(part.tasks)]
        assert all(task.complexity.solution_length <= part.max_turns for task in tasks)
        sizes.append({name: fmean(getattr(task.complexity, name) or 0 for task in tasks) for name in AXES})
    for easier, harder in pairwise(sizes):
        assert harder[axis] > easier[axis]
    if axis == "solution_length":
        assert max(each["state_size"] for each in sizes) < 1.02 * min(each["state_size"] for each in sizes)
        assert sizes[2][axis] > 3 * sizes[1][axis] > 9 * sizes[0][axis]
    if axis == "action_size":
        assert sizes[1][axis] > 2 * sizes[0][axis]
        assert sizes[1] == {**sizes[0], axis: sizes[1][axis]}


def test_action_sizes_are_of_the_shorter_paths() -> None:
    short = {address for address, path in gold.shipped_paths().items() if len(path.actions) <= 20}
    counted = gold._action_sizes()
    assert {(name, variation) for name, variation, simplified in counted if not simplified} == short
    for (name, variation, simplified), size in counted.items():
        assert size > 100
        if simplified:
            assert simplified == "noElectricalAction"
            assert 2 * size < counted[name, variation, ""]


def test_without_electricity_the_expert_has_the_recorded_path_where_it_solves_the_task() -> None:
    plain = gold.recorded("lifespan-longest-lived", 93)
    assert plain is not None
    assert gold_path("lifespan-longest-lived", 93, "noElectricalAction") == plain
    assert gold.measured("lifespan-longest-lived", 93, "noElectricalAction").solution_length == len(plain.actions)
    assert gold.measured("power-component", 15).solution_length == 6
    assert gold.measured("power-component", 15, "noElectricalAction") == Complexity()


def test_every_task_has_an_id() -> None:
    alone = [each.kwargs["task_types"] for each in SCIENCEWORLD.ids if each.kwargs]
    assert alone == [[name] for name in TASKS]
    assert all(each.id == f"textagent/ScienceWorld-{each.kwargs['task_types'][0]}-v0" for each in SCIENCEWORLD.ids[1:])


def test_without_java_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(server.MissingJavaError, match=r"JAVA_HOME is not set.*apt-get install openjdk-17-jre-headless"):
        server._java()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(server.MissingJavaError, match=r"there is no `java` in PATH, and none in .* JAVA_HOME=/nowhere"):
        server._java()


@pytest.mark.skipif(find_spec("scienceworld") is None, reason="scienceworld is not installed")
def test_a_java_that_does_not_run_is_told_by_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'libjvm.so: not there' >&2\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    with pytest.raises(WorldBrokenError, match=rf"{java} has ended with status 3: libjvm.so: not there"):
        server.Server()
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(server, "_START_SECONDS", 0.5)
    with pytest.raises(WorldBrokenError, match=r"has not started .* within 0\.5 s"):
        server.Server()


class Paths:
    """Computes one path after the other; `b` solves the task, `x` loses it."""

    def __init__(self, *paths: str) -> None:
        self.paths, self.played = list(paths), ""

    def load(self, task: str, variation: int, simplifications: str, *, gold: bool = False) -> None:
        self.played = ""

    def gold_path(self) -> list[str]:
        return list(self.paths.pop(0))

    def step(self, action: str) -> str:
        self.played += action
        return ""

    def score(self) -> int:
        return 100 if "b" in self.played else 0

    def completed(self) -> bool:
        return "x" in self.played

    def objects(self) -> int:
        return 7


def test_a_gold_path_is_one_that_was_played() -> None:
    assert compute(Paths("aab"), "boil", 0) == GoldPath(("a", "a", "b"), 7)  # type: ignore[arg-type]
    assert compute(Paths("xb", "abaa"), "boil", 0).actions == ("a", "b")  # type: ignore[arg-type]
    with pytest.raises(GenerationError, match="None of 3 gold paths solves variation 4 of boil"):
        compute(Paths("xb", "a", "xb"), "boil", 4)  # type: ignore[arg-type]


def test_a_gold_path_is_computed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    paths = Paths("ab", "aab")
    monkeypatch.setattr(gold, "take", lambda: paths)
    monkeypatch.setattr(gold, "give", lambda server: None)
    for _ in range(2):
        assert gold_path("boil", 29, "easy") == GoldPath(("a", "b"), 7)
    kept = next(tmp_path.rglob("29.json"))
    kept.write_text(kept.read_text()[:9])
    assert gold_path("boil", 29, "easy").actions == ("a", "a", "b")
    assert json.loads(kept.read_text())["objects"] == 7


def test_recorded_paths_are_of_tasks_that_exist_and_bound_their_length() -> None:
    recorded = gold.shipped_paths()
    for (name, variation), path in recorded.items():
        assert variation < sum(TASKS[name])
        assert 0 < len(path.actions) <= 200
        assert path.objects > 100
    longest = max(len(path.actions) for path in recorded.values())
    assert f"the longest gold path recorded has {longest} actions" in (ScienceWorldEnv.__doc__ or "")


def test_the_core_suite_needs_no_path_that_is_computed() -> None:
    (part,) = suite_of("scienceworld-core-v1").parts
    source = ScienceWorldTasks(ScienceWorldOptions(variations=part.kwargs["variations"]))
    worlds = {source.world(source.task("test", index)) for index in range(part.tasks)}
    assert worlds - gold._recorded().keys() == gold._of_suites().keys()


def test_a_path_is_recorded_for_one_task_of_each_sort_in_each_split() -> None:
    source = ScienceWorldTasks()
    for split in SPLITS:
        tasks = [source.task(split, index) for index in range(30)]
        assert {task.task_type for task in tasks} == set(TASKS)
        for task in tasks:
            path = gold.recorded(*source.world(task))
            assert path is not None
            assert task.complexity.solution_length == len(path.actions)
            assert not task.complexity.exact
