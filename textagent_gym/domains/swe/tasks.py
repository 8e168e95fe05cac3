"""What every task of software engineering is: a repository to repair."""

from __future__ import annotations

from dataclasses import dataclass

from textagent_gym.complexity import Complexity
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
class RepairTask(Task):
    """A repository to repair.

    Attributes:
        problem: description of the problem that the agent is given.
        fail_to_pass, pass_to_pass: ids of tests.
    """

    problem: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
