"""What a suite is: a fixed list of what an evaluation plays (see `published` for those that exist)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import gymnasium

from textagent_gym.evaluation.episode import SEEDS
from textagent_gym.registration import register_all


@dataclass(frozen=True, kw_only=True)
class Part:
    """Tasks of one environment.

    Attributes:
        name: name of the part, and of its file in a result.
        env: id of the environment.
        kwargs: keyword arguments of the environment.
        split: split of the tasks.
        max_turns: turn budget; a number, or a multiple of the task's optimal solution length such as "4x".
        tasks: number of tasks.
        first: position of the first of them in the split.
        episodes: number of episodes per task.
        seed: seed from which that of each episode follows (see `episode.episode_seed`).
    """

    name: str
    env: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    split: str = "test"
    max_turns: int | str = "4x"
    tasks: int = 50
    first: int = 0
    episodes: int = 1
    seed: int = 0

    def make(self) -> gymnasium.Env[str, str]:
        """The environment of the part."""
        register_all()
        return gymnasium.make(self.env, **{**self.kwargs, "split": self.split, "max_turns": self.max_turns})


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What an evaluation plays.

    Attributes:
        name: name with the version.
        summary: one line for `textagent-gym suites`.
        parts: parts of the suite, in the order in which they are played.
    """

    name: str
    summary: str
    parts: tuple[Part, ...]

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return sum(part.tasks * part.episodes for part in self.parts)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides what is played, in hexadecimal."""
        played = {"name": self.name, "parts": [asdict(part) for part in self.parts], "seeds": SEEDS}
        return hashlib.sha256(json.dumps(played, sort_keys=True).encode()).hexdigest()
