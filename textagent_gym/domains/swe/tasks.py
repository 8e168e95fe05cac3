"""What every task of software engineering is about: a repository to repair."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from textagent_gym.complexity import Complexity
from textagent_gym.sources import ListedTasks
from textagent_gym.tasks import Task


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place to repair.

    Attributes:
        path: path of the file.
        wrong, right: whole lines, as they are and as they should be.
        line: number of the first of them, from 1.
    """

    path: str
    wrong: str
    right: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairComplexity(Complexity):
    """What was measured in a repository and its repair.

    Attributes:
        files: number of files that the repair changes.
        hunks: number of places that the repair changes.
        lines: number of lines that the repair takes out or puts in.
        chance: chance in 0..1 that somebody is paid, in one grading, who forges the answers to the hidden tests and
            knows everything but the right ones; see `hidden.judge`.
    """

    files: int
    hunks: int
    lines: int
    chance: float | None = None


@dataclass(frozen=True, kw_only=True)
class RepairWorld:
    """A repository to repair, as an environment begins it.

    Attributes:
        problem: description of the problem that the agent is given.
        fail_to_pass, pass_to_pass: ids of tests.
    """

    problem: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]


RepairWorldT = TypeVar("RepairWorldT", bound=RepairWorld)


class RepairTasks(ListedTasks[Task], Generic[RepairWorldT]):
    """Listed tasks, each with a repository to repair."""

    @abstractmethod
    def world(self, task: Task) -> RepairWorldT:
        """What an environment needs to begin a task.

        Raises:
            UnknownTaskError: this source holds no such task.
        """
