"""What the package's own `step` says of the same actions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from textagent_gym.domains.scienceworld import ScienceWorldEnv, Server, gold_path
from textagent_gym.domains.scienceworld.tasks import TASKS

pytestmark = [pytest.mark.usefixtures("simulator"), pytest.mark.slow]


@pytest.fixture(scope="module")
def theirs(simulator: None) -> Iterator[Any]:
    from benchmarks.scienceworld_env import package

    env = package()
    yield env
    env.close()
    env._gateway.java_process.wait(60)


def differences(theirs: Any, task: str, kind: str) -> list[str]:
    """Differences in one episode of the first variation of a task, along its gold path or a random walk."""
    from benchmarks.scienceworld_env import along, compare, walk

    env = ScienceWorldEnv(max_turns=10**6)
    actions = along(gold_path(task, 0).actions) if kind == "gold" else walk(random.Random(task), 6)
    result = compare(theirs, env, task, 0, actions)
    env.close()
    assert result.steps >= 4
    assert result.differences is not None
    return result.differences


@pytest.mark.parametrize("kind", ["gold", "walk"])
@pytest.mark.parametrize("task", ["find-non-living-thing", "lifespan-longest-lived"])
def test_the_package_says_the_same(theirs: Any, task: str, kind: str) -> None:
    assert differences(theirs, task, kind) == []


@pytest.mark.parametrize("task", list(TASKS))
def test_the_package_says_the_same_on_random_walks_of_every_task(theirs: Any, task: str) -> None:
    assert differences(theirs, task, "walk") == []


@pytest.mark.parametrize("method", ["step", "score", "valid_actions"])
def test_a_difference_is_found(theirs: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(Server, method)
    wrong = {
        "step": lambda self, action: right(self, action).replace("room", "hall"),
        "score": lambda self: right(self) + 1,
        "valid_actions": lambda self: right(self)[1:],
    }
    monkeypatch.setattr(Server, method, wrong[method])
    assert differences(theirs, "find-non-living-thing", "walk")
