"""ScienceWorld's tasks: 30 tasks in 7,207 variations, with the official splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from textagent_gym.complexity import Complexity
from textagent_gym.domains.scienceworld.gold import recorded
from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import Options, knob
from textagent_gym.sources import ListedTasks
from textagent_gym.tasks import Task

VERSION = "1.2.3"
"""Version of the package `scienceworld` whose variations are listed here; part of every id."""
SPLITS = ("train", "dev", "test")
TASKS: dict[str, tuple[int, int, int]] = {
    "boil": (14, 7, 9),
    "melt": (14, 7, 9),
    "freeze": (14, 7, 9),
    "change-the-state-of-matter-of": (14, 7, 9),
    "use-thermometer": (270, 135, 135),
    "measure-melting-point-known-substance": (218, 109, 109),
    "measure-melting-point-unknown-substance": (150, 75, 75),
    "power-component": (10, 5, 5),
    "power-component-renewable-vs-nonrenewable-energy": (10, 5, 5),
    "test-conductivity": (450, 225, 225),
    "test-conductivity-of-unknown-substances": (300, 150, 150),
    "find-living-thing": (150, 75, 75),
    "find-non-living-thing": (150, 75, 75),
    "find-plant": (150, 75, 75),
    "find-animal": (150, 75, 75),
    "grow-plant": (62, 31, 33),
    "grow-fruit": (62, 31, 33),
    "chemistry-mix": (16, 8, 8),
    "chemistry-mix-paint-secondary-color": (18, 9, 9),
    "chemistry-mix-paint-tertiary-color": (18, 9, 9),
    "lifespan-longest-lived": (62, 31, 32),
    "lifespan-shortest-lived": (62, 31, 32),
    "lifespan-longest-lived-then-shortest-lived": (62, 31, 32),
    "identify-life-stages-1": (6, 3, 5),
    "identify-life-stages-2": (4, 2, 4),
    "inclined-plane-determine-angle": (84, 42, 42),
    "inclined-plane-friction-named-surfaces": (692, 346, 348),
    "inclined-plane-friction-unnamed-surfaces": (80, 40, 42),
    "mendelian-genetics-known-plant": (60, 30, 30),
    "mendelian-genetics-unknown-plant": (240, 120, 120),
}
"""Names of the tasks in the order of the paper, and how many variations the splits have: the first ones are "train",
those that follow "dev", the last ones "test"."""
SIMPLIFICATIONS = (
    "easy",
    "teleportAction",
    "selfWateringFlowerPots",
    "openContainers",
    "openDoors",
    "noElectricalAction",
)
"""What makes a world simpler; "easy" is all that the task allows."""
_PREFIX = f"ScienceWorld/v{VERSION}"


@dataclass(frozen=True, kw_only=True)
class ScienceWorldOptions(Options):
    """Which tasks are played, and how they are simplified."""

    task_types: tuple[str, ...] | None = knob(None, "names of the tasks; `None` for all 30", choices=TASKS)
    variations: int | None = knob(None, "variations of each task in a split, at most; `None` for all", low=1)
    simplifications: tuple[str, ...] | None = knob(
        None, "simplifications of the world", choices=SIMPLIFICATIONS, short=""
    )

    def __post_init__(self) -> None:
        """See `Options`."""
        super().__post_init__()
        electrical = [name for name in self.task_types or TASKS if "power-component" in name or "conductivity" in name]
        if electrical and "noElectricalAction" in (self.simplifications or ()):
            raise InvalidOptionError(
                'simplifications must not hold "noElectricalAction" where task_types hold tasks on electricity: '
                f"{', '.join(electrical)}"
            )


class ScienceWorldTasks(ListedTasks[Task]):
    """The variations of the tasks; ids are `ScienceWorld/vVERSION/SPLIT/TASK/VARIATION`.

    A split begins with the first variation of every task, then the second of every task, and so on: the first tasks of
    a split are of all sorts. With simplifications, their names follow the version in an id.
    """

    splits = SPLITS

    def __init__(self, options: ScienceWorldOptions | None = None) -> None:
        self.options = options or ScienceWorldOptions()
        self._start = "-".join(filter(None, (_PREFIX, self.options.slug)))

    @property
    def simplifications(self) -> str:
        """The simplifications as the simulator takes them."""
        return ",".join(self.options.simplifications or ())

    def world(self, task: Task) -> tuple[str, int]:
        """Name and variation of a task."""
        _, name, variation = task.id.rsplit("/", 2)
        return name, int(variation)

    def _ids(self, split: str) -> tuple[str, ...]:
        return _ids_of(self._start, split, self.options.task_types or tuple(TASKS), self.options.variations)

    def _load(self, task_id: str, split: str, index: int) -> Task:
        _, name, variation = task_id.rsplit("/", 2)
        path = None if self.simplifications else recorded(name, int(variation))
        complexity = (
            Complexity() if path is None else Complexity(state_size=path.objects, solution_length=len(path.actions))
        )
        return Task(id=task_id, split=split, index=index, complexity=complexity, milestones=1, task_type=name)

    def _advice(self) -> str:
        return f"Ids are {self._start}/<split>/<task>/<variation>, such as {self._ids('train')[0]}."


@lru_cache(maxsize=256)
def _ids_of(start: str, split: str, task_types: tuple[str, ...], variations: int | None) -> tuple[str, ...]:
    """Ids of a split, in order."""
    which = SPLITS.index(split)
    order = [name for name in TASKS if name in task_types]
    addressed = [
        (rank, f"{start}/{split}/{name}/{sum(TASKS[name][:which]) + rank}")
        for name in order
        for rank in range(min(TASKS[name][which], variations or TASKS[name][which]))
    ]
    return tuple(task_id for _, task_id in sorted(addressed, key=lambda each: each[0]))
