"""What is kept of an evaluation: enough to play every episode again and compare."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from textagent_gym.errors import InvalidOptionError

FORMAT = "textagent-gym evaluation 1"


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode.

    Attributes:
        task: id of the task.
        seed: of the agent, and of the environment's `reset`.
        actions: in order.
        rewards: of each action.
        success, terminated, truncated: how it ended.
        invalid_actions: number of actions that were not valid.
        task_type: what sort of task it was, in worlds that have several.
    """

    task: str
    seed: int
    actions: tuple[str, ...]
    rewards: tuple[float, ...]
    success: bool
    terminated: bool
    truncated: bool
    invalid_actions: int = 0
    task_type: str = ""

    @property
    def turns(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def total_reward(self) -> float:
        """Sum of the rewards, undiscounted."""
        return sum(self.rewards)


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one agent in one environment, and what is needed to play them again."""

    agent: str
    env: str
    kwargs: dict[str, Any]
    split: str
    episodes: tuple[EpisodeRecord, ...]
    versions: dict[str, str] = field(default_factory=dict)


def versions() -> dict[str, str]:
    """Of Python and of the packages that decide what happens in an episode."""
    found = {"python": platform.python_version()}
    for package in ("textagent-gym", "gymnasium", "textworld", "jericho", "alfworld"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def save(evaluation: Evaluation, path: Path) -> None:
    """Write a result file: a header line and a line an episode, as JSON. It appears as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(header(evaluation) + "\n")
        for episode in evaluation.episodes:
            file.write(line(episode) + "\n")
    os.replace(temporary, path)


def header(evaluation: Evaluation) -> str:
    """The first line of a result file."""
    known = {f.name: getattr(evaluation, f.name) for f in fields(evaluation) if f.name != "episodes"}
    return json.dumps({"format": FORMAT, **known}, sort_keys=True)


def line(episode: EpisodeRecord) -> str:
    """The line of an episode in a result file."""
    return json.dumps(asdict(episode), sort_keys=True)


def load(path: Path) -> Evaluation:
    """Read a result file.

    Raises:
        InvalidOptionError: it is none, or a line of it is damaged.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOptionError(f"{path} cannot be read: {error}") from error
    try:
        head = json.loads(lines[0])
        if head.pop("format") != FORMAT:
            raise ValueError("another format")
        return Evaluation(episodes=tuple(_episodes(lines[1:])), **head)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidOptionError(f"{path} is no result file of {FORMAT!r}: {error!r}") from error


def _episodes(lines: Iterable[str]) -> Iterable[EpisodeRecord]:
    for text in lines:
        data = json.loads(text)
        yield EpisodeRecord(**{**data, "actions": tuple(data["actions"]), "rewards": tuple(data["rewards"])})
