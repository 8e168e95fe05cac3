"""TextWorld's tasks: endless and addressed by (spec, split, index), or the games of a folder."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.generator import GUIDE_GAMES
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, FilesSpec, Spec
from textagent_gym.errors import UnknownTaskError
from textagent_gym.repetition import RepetitionWatch
from textagent_gym.tasks import Task, TaskSource

_PREFIX = "TextWorld"


@dataclass(frozen=True, kw_only=True)
class TextWorldTask(Task):
    """A game, by what was asked for and where it stands in its split."""

    spec: Spec

    @property
    def game(self) -> store.StoredGame:
        """The game itself, shared by everybody who plays it."""
        if isinstance(self.spec, FilesSpec):
            return store.load_file(_files(self.spec)[self.index])
        return store.load(self.spec, self.split, self.index)


class TextWorldTasks(TaskSource[TextWorldTask]):
    """The games that a spec asks for.

    A game belongs to the split that its content hashes to, so no game is in two splits.

    Args:
        spec: what is asked for.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.splits = spec.splits
        self._repetition = RepetitionWatch(f"{_PREFIX}/{spec.slug}")

    def size(self, split: str) -> int | None:
        """Number of tasks in a split; `None` for an endless one."""
        self.check_split(split)
        if isinstance(self.spec, FilesSpec):
            return len(_files(self.spec))
        return GUIDE_GAMES if split == GUIDE_SPLIT else None

    def task(self, split: str, index: int) -> TextWorldTask:
        """The `index`-th game of a split; see `TaskSource.task`."""
        size = self.size(split)
        if index < 0 or (size is not None and index >= size):
            last = "" if size is None else f" to {size - 1}"
            raise UnknownTaskError(f"task_index={index} does not exist in split {split!r}: it goes from 0{last}")
        if isinstance(self.spec, FilesSpec):
            game = store.load_file(_files(self.spec)[index])
            name = f"{_PREFIX}/files/{_files(self.spec)[index].name}"
        else:
            game = store.load(self.spec, split, index)
            name = f"{_PREFIX}/{self.spec.slug}/{split}/{index}"
            if size is None and game.content is not None:
                self._repetition.note(split, index, game.content)
        return TextWorldTask(
            id=name,
            split=split,
            index=index,
            complexity=game.complexity,
            milestones=game.complexity.solution_length or 1,
            spec=self.spec,
        )

    def find(self, task_id: str) -> TextWorldTask:
        """The game with this id; see `TaskSource.find`."""
        if isinstance(self.spec, FilesSpec):
            for index, story in enumerate(_files(self.spec)):
                if task_id == f"{_PREFIX}/files/{story.name}":
                    return self.task(self.splits[0], index)
        else:
            parts = task_id.split("/")
            if len(parts) == 4 and parts[:2] == [_PREFIX, self.spec.slug] and parts[2] in self.splits:
                number = parts[3]
                if number.isascii() and number.isdigit() and str(int(number)) == number:
                    return self.task(parts[2], int(number))
        form = "files/<name>.z8" if isinstance(self.spec, FilesSpec) else f"{self.spec.slug}/<split>/<index>"
        raise UnknownTaskError(
            f"task {task_id!r} is none of this environment's: their ids are {_PREFIX}/{form}. "
            "A task is played by an environment made with the same options."
        )

    def prepare(
        self,
        split: str,
        indices: Iterable[int],
        *,
        workers: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Build games ahead of time, each in one of `workers` processes; see `TaskSource.prepare`.

        What has been built when it is interrupted stays built.
        """
        self.check_split(split)
        wanted = list(indices)
        if isinstance(self.spec, FilesSpec):
            super().prepare(split, wanted, progress=progress)
            return
        missing = [index for index in wanted if not store.is_stored(self.spec, split, index)]
        done = len(wanted) - len(missing)
        if progress is not None:
            progress(done)
        if not missing:
            return
        workers = min(workers or os.cpu_count() or 1, len(missing))
        # Spawned, not forked: the caller may hold threads and locks.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_obey, initargs=(os.getpid(),)) as pool:
            futures = [pool.submit(_build, self.spec, split, index) for index in missing]
            try:
                for future in as_completed(futures):
                    future.result()
                    done += 1
                    if progress is not None:
                        progress(done)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _obey(caller: int) -> None:
    """In a worker: leave Ctrl-C to the caller, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _build(spec: Spec, split: str, index: int) -> None:
    store.load(spec, split, index)


def _files(spec: FilesSpec) -> list[Path]:
    return sorted(Path(spec.path).glob("*.z8"))
