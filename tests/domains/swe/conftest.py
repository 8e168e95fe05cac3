"""A task to play with, and the sandboxes that this machine can have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import pytest

from textagent_gym.domains.swe.sandbox import SANDBOXES, Limits, Sandbox, SandboxError, make_sandbox
from textagent_gym.domains.swe.sandbox.choose import SAFE
from textagent_gym.domains.swe.tasks import BuiltTasks, SWETask
from textagent_gym.domains.swe.tools import Call, render


@pytest.fixture(scope="session")
def tasks() -> BuiltTasks:
    return BuiltTasks(("measures",))


@pytest.fixture(scope="session")
def task(tasks: BuiltTasks) -> SWETask:
    """Something is wrong with Roman numerals, and not with ordinals."""
    return tasks.find("SWE/measures-own/fe3002c196")


def open_sandbox(name: str, limits: Limits | None = None) -> Sandbox:
    """A sandbox that works. Where there is none, the test is skipped, unless `TEXTAGENT_TEST_SANDBOXES` asks for it."""
    try:
        box = make_sandbox(name, limits)
        box.begin((), {})  # An engine may be here, and no image for it.
        return box
    except SandboxError as error:
        if name in os.environ.get("TEXTAGENT_TEST_SANDBOXES", "").split():
            raise
        pytest.skip(str(error))


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


def bash(command: str) -> str:
    """An action that is a command."""
    return render(Call("shell", {"command": command}), "bash")


@pytest.fixture(scope="module", params=list(SANDBOXES))
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each kind of sandbox."""
    box = open_sandbox(request.param)
    yield box
    box.close()


@pytest.fixture(scope="module", params=[*SAFE, "ray"])
def safe_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each kind of sandbox that keeps an agent in."""
    box = open_sandbox(request.param)
    yield box
    box.close()
