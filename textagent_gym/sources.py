"""Sources of tasks as every domain needs them: generated without end, or listed.

    GeneratedTasks   PREFIX/vVERSION/SLUG/SPLIT/INDEX    drawn from what is asked for, the split and the index
    ListedTasks      ids per split, in a fixed order     official sets, files, rows of a data set

A task is data: its id and what was measured. `world(task)` gives what an environment needs to begin it.
"""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from numbers import Integral
from typing import ClassVar, Generic, TypeVar

from textagent_gym.complexity import Complexity
from textagent_gym.errors import InvalidOptionError, UnknownTaskError
from textagent_gym.knobs import Options
from textagent_gym.processes import worker_processes
from textagent_gym.tasks import Task, TaskSource, TaskT

WorldT = TypeVar("WorldT")
SpecT = TypeVar("SpecT", bound=Options)


def seed_bytes(*parts: object) -> bytes:
    """32 bytes drawn from what identifies a draw; equal parts give equal bytes, on any machine.

    >>> seed_bytes(1, "w2-o3", "train", 0) == seed_bytes("1/w2-o3", "train", "0")
    True
    """
    return hashlib.sha256("/".join(map(str, parts)).encode()).digest()


class GeneratedTasks(TaskSource[Task], Generic[SpecT, WorldT]):
    """Endless tasks, each addressed by what is asked for, its split and its index.

    A domain sets `prefix` and `version`, makes the world of an index in `_make` and says in `_measure` what it is like.

    Attributes:
        prefix: first part of every id.
        version: generator's version, the second part; raised whenever an id would give another task.
        spec: properties that are asked for; their slug is the third part.

    Args:
        spec: properties that are asked for.
    """

    prefix: ClassVar[str]
    version: ClassVar[int]

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec
        self._start = f"{self.prefix}/v{self.version}/{spec.slug}"

    # What a domain writes.

    @abstractmethod
    def _make(self, split: str, index: int) -> WorldT:
        """The world of a task: the same one for the same spec, split and index, everywhere.

        Raises:
            InfeasibleDifficultyError: no task of the difficulty asked for can be made.
        """

    @abstractmethod
    def _measure(self, world: WorldT) -> tuple[Complexity, int, str]:
        """What was measured in a world: its complexity, number of milestones and type of task."""

    def _is_kept(self, split: str, index: int) -> bool | None:
        """Whether a task's world is on disk; `None` in domains that keep nothing there."""
        return None

    # What it does with it.

    def size(self, split: str) -> int | None:
        """Number of tasks in a split; `None` for an endless one."""
        self.check_split(split)
        return None

    def address(self, split: str, index: int) -> str:
        """Id of a task, which is not made for it."""
        return f"{self._start}/{split}/{index}"

    def task(self, split: str, index: int) -> Task:
        """The `index`-th task of a split; see `TaskSource.task`.

        Raises:
            InvalidOptionError: the index is not a whole number.
        """
        index = check_index(split, index, self.size(split))
        complexity, milestones, task_type = self._measure(self._make(split, index))
        return Task(
            id=self.address(split, index),
            split=split,
            index=index,
            complexity=complexity,
            milestones=milestones,
            task_type=task_type,
        )

    def find(self, task_id: str) -> Task:
        """The task with this id; see `TaskSource.find`."""
        if isinstance(task_id, str):
            start, _, number = task_id.rpartition("/")
            split = start.rpartition("/")[2]
            # The id of the number that was read is compared with the id that was given, so that there is one spelling.
            if split in self.splits and number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
                index = int(number)
                if self.address(split, index) == task_id:
                    return self.task(split, index)
        raise UnknownTaskError(
            f"task {task_id!r:.200} does not exist here: ids are "
            f"{self._start}/<split>/<index>. "
            "A task is played by an environment made with the same options and the same version of the suite."
        )

    def world(self, task: Task) -> WorldT:
        """What an environment needs to begin a task.

        Raises:
            UnknownTaskError: the task belongs to an environment made with other options.
        """
        if task.split not in self.splits or task.id != self.address(task.split, task.index):
            self.find(task.id)
            raise UnknownTaskError(f"task {task.id!r:.200} is not the task {task.index} of the split {task.split!r}")
        return self._make(task.split, task.index)

    def prepare(
        self,
        split: str,
        indices: Iterable[int],
        *,
        workers: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Make tasks ahead of time; see `TaskSource.prepare`.

        Where worlds are kept on disk, each is made in one of `workers` processes, and what has been made when that is
        interrupted stays. Elsewhere they are made here, one after the other.
        """
        size = self.size(split)
        wanted = [check_index(split, index, size) for index in indices]
        if not wanted or self._is_kept(split, wanted[0]) is None:
            super().prepare(split, wanted, workers=workers, progress=progress)
            return
        missing = [index for index in wanted if not self._is_kept(split, index)]
        done = len(wanted) - len(missing)
        if progress is not None:
            progress(done)
        if not missing:
            return
        workers = min(workers or os.cpu_count() or 1, len(missing))
        with worker_processes(workers) as pool:
            futures = [pool.submit(_keep, self, split, index) for index in missing]
            try:
                for future in as_completed(futures):
                    future.result()
                    done += 1
                    if progress is not None:
                        progress(done)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


class ListedTasks(TaskSource[TaskT], Generic[TaskT]):
    """Tasks that are there: each split is a list of ids in a fixed order.

    A domain lists the ids in `_ids` and loads one of them in `_load`.
    """

    @abstractmethod
    def _ids(self, split: str) -> Sequence[str]:
        """Ids of a split, in order."""

    @abstractmethod
    def _load(self, task_id: str, split: str, index: int) -> TaskT:
        """The task with an id that `_ids` has listed."""

    def _advice(self) -> str:
        """Sentence that ends the message about an unknown task: what ids look like here."""
        return ""

    def size(self, split: str) -> int:
        """Number of tasks in a split."""
        return len(self._ids(self.check_split(split)))

    def task(self, split: str, index: int) -> TaskT:
        """The `index`-th task of a split; see `TaskSource.task`.

        Raises:
            InvalidOptionError: the index is not a whole number.
        """
        return self._load(self.address(split, index), split, int(index))

    def address(self, split: str, index: int) -> str:
        """Id of a task, which is not loaded for it; see `task` for the errors."""
        ids = self._ids(self.check_split(split))
        try:
            return ids[check_index(split, index, len(ids))]
        except UnknownTaskError as error:
            raise UnknownTaskError(f"{error} {self._advice()}".rstrip()) from None

    def find(self, task_id: str) -> TaskT:
        """The task with this id; see `TaskSource.find`."""
        if isinstance(task_id, str):
            for split in self.splits:
                ids = self._ids(split)
                if task_id in ids:
                    return self._load(task_id, split, ids.index(task_id))
        raise UnknownTaskError(f"task {task_id!r:.200} does not exist here. {self._advice()}".rstrip())


_MOST_DIGITS = 30  # Of an index in an id; Python reads no integers of thousands of digits.


def check_index(split: str, index: int, size: int | None) -> int:
    """A task's index as an `int`.

    Args:
        split: name of the split, for the message.
        index: position in the split.
        size: number of tasks in the split; `None` for an endless split.

    Raises:
        InvalidOptionError: the index is not a whole number.
        UnknownTaskError: it is negative or beyond the end.
    """
    if isinstance(index, bool) or not isinstance(index, Integral):
        raise InvalidOptionError(f"task_index must be a whole number from 0, got {index!r:.200}")
    if index < 0 or (size is not None and index >= size):
        there = "it goes from 0" if size is None else f"it goes from 0 to {size - 1}" if size else "the split is empty"
        raise UnknownTaskError(f"task_index={index} does not exist in split {split!r}: {there}.")
    return int(index)


def _keep(source: GeneratedTasks[SpecT, WorldT], split: str, index: int) -> None:
    """In a worker: make a task's world, which leaves it on disk."""
    source._make(split, index)
