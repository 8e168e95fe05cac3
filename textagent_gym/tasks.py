"""A task is data; a source yields the tasks of a split."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from textagent_gym.complexity import Complexity
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a split. Domains subclass it with what is needed to build their world.

    Attributes:
        id: name of the task: same id, same task, for ever within a version of the environment.
        split: name of the split that the task belongs to.
        index: position in the split, from 0.
        complexity: measured difficulty.
        milestones: number of steps of progress, at least 1; the last one is success.
        task_type: sort of the task, in worlds that have several; evaluations report success by sort.
    """

    id: str
    split: str
    index: int
    complexity: Complexity
    milestones: int
    task_type: str = ""


TaskT = TypeVar("TaskT", bound=Task)

# Two tasks with equal content get the same share, so no task can be in two splits.
_SHARES = {"train": (0, 1), "validation": (2,), "test": (3,)}


_HELD_OUT = ("test", "valid_unseen", "valid_seen", "validation")
"""Splits that an agent is measured on, best first."""


def held_out_split(splits: Sequence[str]) -> str:
    """The split that an agent is measured on: a held-out one if there is one, else the first.

    >>> held_out_split(("train", "valid_seen", "valid_unseen"))
    'valid_unseen'
    """
    return next((split for split in _HELD_OUT if split in splits), splits[0])


def in_split(content: str, split: str) -> bool:
    """A generated task with this content belongs to a split: half of all contents are for training."""
    return hashlib.sha256(content.encode()).digest()[0] % 4 in _SHARES[split]


class TaskSource(ABC, Generic[TaskT]):
    """Yields the tasks of each split. Stateless as seen from outside: the same question has the same answer.

    Attributes:
        splits: the names that `task` and `size` accept, default first.
    """

    splits: tuple[str, ...] = ("train", "validation", "test")

    @property
    def missing_data(self) -> str:
        """Sentences on what is not on this machine and how to get it; "" where nothing has to be fetched."""
        return ""

    @abstractmethod
    def size(self, split: str) -> int | None:
        """Number of tasks in a split; `None` for an endless one."""

    @abstractmethod
    def task(self, split: str, index: int) -> TaskT:
        """The `index`-th task of a split, built or loaded on demand.

        Raises:
            UnknownTaskError: the index is negative or beyond the split's end.
            InfeasibleDifficultyError: no task of the difficulty asked for can be made.
        """

    def address(self, split: str, index: int) -> str:
        """Id of the `index`-th task of a split; see `task` for the errors."""
        return self.task(split, index).id

    @abstractmethod
    def find(self, task_id: str) -> TaskT:
        """The task with this id.

        Raises:
            UnknownTaskError: this source holds no such task.
        """

    def prepare(
        self,
        split: str,
        indices: Iterable[int],
        *,
        workers: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Build tasks ahead of time, in parallel where that is possible; what is built survives an interruption.

        Args:
            split: name of the split.
            indices: positions of the tasks in the split.
            workers: number of processes; by default the number of processor cores.
            progress: called with the number of tasks finished so far.
        """
        for done, index in enumerate(indices, start=1):
            self._prepare_one(split, index)
            if progress is not None:
                progress(done)

    def _prepare_one(self, split: str, index: int) -> None:
        """Make what playing a task reads."""
        self.task(split, index)

    def export(self, task: Task, folder: Path) -> Path:
        """Write a task as the reference implementation's own file, below a folder; returns the file.

        Raises:
            UnsupportedOperationError: there is no such file for this source's tasks.
        """
        raise UnsupportedOperationError(f"{type(self).__name__} writes no files of {task.id}.")

    def check_split(self, split: str) -> str:
        """Return `split`, or raise `InvalidOptionError` naming the ones that exist."""
        if split not in self.splits:
            raise InvalidOptionError(f"split={split!r} does not exist here; choose one of: {', '.join(self.splits)}")
        return split
