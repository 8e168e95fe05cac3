"""TextWorld's tasks: generated games, or the games of a folder."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from textagent_gym.complexity import Complexity
from textagent_gym.domains.textworld import generation, store
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, FilesSpec, Spec
from textagent_gym.repetition import RepetitionWatch
from textagent_gym.sources import GeneratedTasks, ListedTasks
from textagent_gym.tasks import Task

_PREFIX = "TextWorld"


class TextWorldTasks(GeneratedTasks[Spec, store.StoredGame]):
    """The games that a spec asks for, kept in the cache. A game belongs to the split that its content hashes to.

    Args:
        spec: what is asked for.
        engine: name of the engine that plays the games; "reference" needs compiled games.
    """

    prefix = _PREFIX
    version = generation.VERSION

    def __init__(self, spec: Spec, *, engine: str = "native") -> None:
        super().__init__(spec)
        self._compiled = engine == "reference"
        self.splits = spec.splits
        self._repetition = RepetitionWatch(f"{_PREFIX}/{spec.slug}")

    def size(self, split: str) -> int | None:
        """Number of tasks in a split; `None` for an endless one."""
        self.check_split(split)
        return generation.GUIDE_GAMES if split == GUIDE_SPLIT else None

    def export(self, task: Task, folder: Path) -> Path:
        """Write `<slug>-<split>-<index>.z8`, which upstream plays with the `.json` of its own beside it.

        A third file, `.textagent.json`, has what `game="files"` plays it from without TextWorld.

        Raises:
            MissingDependencyError: TextWorld is not installed.
        """
        return store.export(self.spec, task.split, task.index, folder)

    def _make(self, split: str, index: int) -> store.StoredGame:
        game = store.load(self.spec, split, index, compiled=self._compiled)
        content = game.content
        if self.size(split) is None and content is not None:
            self._repetition.note(split, index, lambda: content)
        return game

    def _measure(self, world: store.StoredGame) -> tuple[Complexity, int, str]:
        return world.complexity, _milestones(world), ""

    def _is_kept(self, split: str, index: int) -> bool:
        return store.is_stored(self.spec, split, index)


class FileTasks(ListedTasks[Task]):
    """The games of a folder, as it is when they are first asked for; ids are `TextWorld/files/NAME.z8`."""

    splits = FilesSpec.splits

    def __init__(self, spec: FilesSpec) -> None:
        self.spec = spec

    def world(self, task: Task) -> store.StoredGame:
        """The game of a task."""
        return store.load_file(self._stories[task.id])

    @cached_property
    def _stories(self) -> dict[str, Path]:
        """Stories by their ids, sorted by name."""
        return {f"{_PREFIX}/files/{story.name}": story for story in sorted(Path(self.spec.path).glob("*.z8"))}

    def _ids(self, split: str) -> list[str]:
        return list(self._stories)

    def _load(self, task_id: str, split: str, index: int) -> Task:
        game = store.load_file(self._stories[task_id])
        return Task(id=task_id, split=split, index=index, complexity=game.complexity, milestones=_milestones(game))

    def _advice(self) -> str:
        return f"Ids are {_PREFIX}/files/<name>.z8, of the games in {self.spec.path}."


def _milestones(game: store.StoredGame) -> int:
    """Each action of the shortest solution is a milestone; of a game without a known one, success alone."""
    return game.complexity.solution_length or 1
