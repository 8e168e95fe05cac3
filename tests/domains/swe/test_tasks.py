"""Tasks are data: an id and what was measured; what an environment needs is asked for apart."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from textagent_gym.domains.swe.mutants.packages import PACKAGES
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.errors import UnknownTaskError
from textagent_gym.tasks import Task

pytestmark = pytest.mark.usefixtures("_a_sandbox_can_be_had")

FIND = """
import pickle, sys
from textagent_gym.domains.swe.mutants.packages import PACKAGES
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
sys.stdout.buffer.write(pickle.dumps(BuiltTasks(("measures",)).find(sys.argv[1])))
"""


def test_a_task_is_the_same_in_every_process(task: Task) -> None:
    assert type(task) is Task
    assert pickle.loads(pickle.dumps(task)) == task
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", FIND, task.id], capture_output=True, check=True, env=environment)
    assert pickle.loads(done.stdout) == task


def test_a_task_that_is_built_again_is_equal_and_is_committed_when_it_is_played(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    source = BuiltTasks(("measures",))
    assert source.find(task.id) == task
    (folder,) = tmp_path.glob(f"swe/*/tasks/*/{task.id.rpartition('/')[2]}")
    assert sorted(path.name for path in folder.iterdir()) == ["compiled", "exam.json", "tree"]
    world = source.world(task)
    assert world.layers[:2] == (folder / "git", folder / "tree")
    assert world.layers[0].is_dir()
    assert source.world(task) == world


def test_what_is_prepared_is_all_that_is_played(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    finished: list[int] = []
    BuiltTasks(("measures",)).prepare(task.split, [task.index], progress=finished.append)
    assert finished == [1]
    assert {path.name for path in tmp_path.glob("swe/*/tasks/*/*/*")} == {"compiled", "exam.json", "git", "tree"}


def test_a_task_of_other_options_has_no_world_here(task: Task) -> None:
    with pytest.raises(UnknownTaskError, match=r"tasks of measures with 2 mistakes"):
        BuiltTasks(("measures",), mutants=2).world(task)


@pytest.mark.parametrize("mutants", [2, 3, 4])
@pytest.mark.parametrize("split", BuiltTasks.splits)
def test_no_two_tasks_hold_the_same_mistakes(mutants: int, split: str) -> None:
    ids = BuiltTasks(tuple(PACKAGES), mutants)._ids(split)
    sets = {frozenset(id.rpartition("/")[2].split("+")) for id in ids}
    assert len(sets) == len(ids)
    assert all(len(mistakes) == mutants for mistakes in sets)
