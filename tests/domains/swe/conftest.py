"""A task to play with, and environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import gymnasium
import pytest

from tests.sandbox.conftest import KINDS, UNSAFE, open_sandbox, opened
from textagent_gym.calls import Call
from textagent_gym.domains.swe import mutants
from textagent_gym.domains.swe.mutants.recipe import read_recipe
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks, MutantWorld
from textagent_gym.domains.swe.tools import render
from textagent_gym.tasks import Task

ALONE = ("bubblewrap", "process")
"""Sandboxes without an engine or a cluster: with the others, a grading takes several times as long."""
GRADED = {name: pytest.param(name, marks=() if name in ALONE else pytest.mark.slow) for name in KINDS}
sandbox = pytest.fixture(opened, scope="module", params=GRADED.values(), name="sandbox")
safe_sandbox = pytest.fixture(
    opened, scope="module", params=[GRADED[name] for name in KINDS if name not in UNSAFE], name="safe_sandbox"
)


@pytest.fixture(scope="session")
def tasks() -> BuiltTasks:
    return BuiltTasks(("measures",))


@pytest.fixture(scope="session")
def task(tasks: BuiltTasks) -> Task:
    """Something is wrong with Roman numerals, and not with ordinals."""
    return tasks.find("SWE/measures-own/fe3002c196")


@pytest.fixture(scope="session")
def world(tasks: BuiltTasks, task: Task) -> MutantWorld:
    """The repository of that task."""
    return tasks.world(task)


@pytest.fixture(scope="session")
def _a_sandbox_can_be_had() -> None:
    open_sandbox("auto").close()


@pytest.fixture
def make(_a_sandbox_can_be_had: None) -> Iterator[Callable[..., gymnasium.Env[str, str]]]:
    """Makes environments of the suite's own tasks, or what `id` says, and closes them."""
    made = []

    def one(id: str = "textagent/SWE-v0", **kwargs: Any) -> gymnasium.Env[str, str]:
        made.append(gymnasium.make(id, **kwargs))
        return made[-1]

    yield one
    for env in made:
        env.close()


def task_with(tasks: BuiltTasks, path: str, mistake: str) -> Task:
    """The task of `measures` with a mistake in a file; no other task is made to find it."""
    right = files(mutants).joinpath("repositories", "measures", path).read_text()
    recipes = map(read_recipe, files(mutants).joinpath("recipes.jsonl").read_text().splitlines())
    here = [recipe for recipe in recipes if (recipe.package, recipe.file) == ("measures-own", path)]
    number = next(recipe.id for recipe in here if mistake in recipe.mutation.apply(right))
    return tasks.find(f"SWE/measures-own/{number}")


def bash(command: str) -> str:
    """An action that is a command."""
    return render(Call("shell", {"command": command}), "bash")
