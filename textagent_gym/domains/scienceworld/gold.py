"""Gold paths: sequences of actions that solve a task, as the simulator computes them.

Computing one takes a second or more, and draws at random. So a path is recorded once. `gold_paths.jsonl`, which comes
with the package, holds those of the first variation of each task in each split. `gold_paths_of_suites.jsonl` holds the
others of `scienceworld-core-v1`, so that the expert acts there equally everywhere; they measure complexity only where
tasks are chosen by it, because they had none when that suite was published. `action_sizes.jsonl` says how many actions
are valid along the shorter ones, without simplifications and without electricity, where the same path solves the task.
Any other path is computed when it is first asked for, and kept in the folder `scienceworld` of the cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from textagent_gym.complexity import Complexity
from textagent_gym.domains.scienceworld.server import Server, give, take
from textagent_gym.errors import GenerationError
from textagent_gym.files import cache_folder, write_whole

_DRAWS = 3  # A path that does not solve its task when it is played is computed again.


@dataclass(frozen=True, slots=True)
class GoldPath:
    """A way to solve a task that was played once from beginning to end.

    Attributes:
        actions: actions in order; the last one reaches score 100.
        objects: number of objects in the world at the beginning.
    """

    actions: tuple[str, ...]
    objects: int

    def complexity(self, action_size: float | None = None) -> Complexity:
        """What was measured: the path's length, and the number of objects."""
        return Complexity(state_size=self.objects, action_size=action_size, solution_length=len(self.actions))


def recorded(task: str, variation: int) -> GoldPath | None:
    """The path that comes with the package, for the task without simplifications; `None` if there is no such path."""
    return _recorded().get((task, variation))


def measured(task: str, variation: int, simplifications: str = "") -> Complexity:
    """What was measured along the path that comes with the package; nothing where it was not played in such a world."""
    path, action_size = _of_package(task, variation, simplifications)
    return Complexity() if path is None else path.complexity(action_size)


def gold_path(task: str, variation: int, simplifications: str = "") -> GoldPath:
    """The path of a task: recorded, kept in the cache, or computed now in a process of its own.

    Args:
        task: name of the task.
        variation: number of the variation.
        simplifications: names with commas between them.

    Raises:
        GenerationError: no path that was computed solves the task.
        WorldBrokenError: the simulator has failed.
    """
    shipped, _ = _of_package(task, variation, simplifications)
    if shipped is not None:
        return shipped
    path = _file(task, variation, simplifications)
    kept = _read(path)
    if kept is not None:
        return kept
    server = take()
    try:
        found_path = compute(server, task, variation, simplifications)
    finally:
        give(server)
    write_whole(path, json.dumps({"objects": found_path.objects, "actions": found_path.actions}))
    return found_path


def compute(server: Server, task: str, variation: int, simplifications: str = "") -> GoldPath:
    """Have the simulator compute a path, and play it.

    Raises:
        GenerationError: no path that was computed solves the task.
    """
    for _ in range(_DRAWS):
        server.load(task, variation, simplifications, gold=True)
        path = server.gold_path()
        server.load(task, variation, simplifications)
        objects = server.objects()
        server.step("look around")
        for length, action in enumerate(path, start=1):
            server.step(action)
            if server.score() == 100:
                return GoldPath(tuple(path[:length]), objects)
            if server.completed():
                break
    raise GenerationError(f"None of {_DRAWS} gold paths solves variation {variation} of {task} ({simplifications!r}).")


def shipped_paths() -> dict[tuple[str, int], GoldPath]:
    """Every path that comes with the package, by task and variation."""
    return {**_recorded(), **_of_suites()}


def _of_package(task: str, variation: int, simplifications: str) -> tuple[GoldPath | None, float | None]:
    """The path that comes with the package for such a world, and the action size along it."""
    action_size = _action_sizes().get((task, variation, simplifications))
    path = recorded(task, variation) or _of_suites().get((task, variation))
    return (None if simplifications and action_size is None else path), action_size


@cache
def _recorded() -> dict[tuple[str, int], GoldPath]:
    return _shipped("gold_paths.jsonl")


@cache
def _of_suites() -> dict[tuple[str, int], GoldPath]:
    return _shipped("gold_paths_of_suites.jsonl")


@cache
def _action_sizes() -> dict[tuple[str, int, str], float]:
    entries = _entries("action_sizes.jsonl")
    return {(each["task"], each["variation"], each["simplifications"]): each["action_size"] for each in entries}


def _shipped(name: str) -> dict[tuple[str, int], GoldPath]:
    entries = _entries(name)
    return {(each["task"], each["variation"]): GoldPath(tuple(each["actions"]), each["objects"]) for each in entries}


def _entries(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines())


def _file(task: str, variation: int, simplifications: str) -> Path:
    folder = simplifications.replace(",", "+") or "none"
    return cache_folder() / "scienceworld" / folder / task / f"{variation}.json"


def _read(path: Path) -> GoldPath | None:
    """A path in the cache; a file that is not whole counts as absent."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return GoldPath(tuple(map(str, kept["actions"])), int(kept["objects"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
