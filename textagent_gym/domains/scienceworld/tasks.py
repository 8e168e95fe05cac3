"""ScienceWorld's tasks: 30 tasks in 7,207 variations, with the official splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from textagent_gym.complexity import Complexity
from textagent_gym.domains.scienceworld.gold import measured, recorded
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError
from textagent_gym.knobs import AXES, Options, knob
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
_MOST = 10_000  # No world has more objects or actions, and no path is longer.
_CHOICE = "`None` for all tasks; a range chooses among those that were measured"


@dataclass(frozen=True, kw_only=True)
class ScienceWorldOptions(Options):
    """Which tasks are played, and how they are simplified."""

    task_types: tuple[str, ...] | None = knob(None, "names of the tasks; `None` for all 30", choices=TASKS)
    variations: int | None = knob(None, "variations of each task in a split, at most; `None` for all", low=1)
    simplifications: tuple[str, ...] | None = knob(
        None, "simplifications of the world", choices=SIMPLIFICATIONS, short=""
    )
    state_size: tuple[int, int] | None = knob(
        None, f"objects in the world at the beginning; {_CHOICE}",
        low=0, high=_MOST, short="objects=", axis="state_size",
    )  # fmt: skip
    action_size: tuple[int, int] | None = knob(
        None, f"valid actions along the gold path, on average; {_CHOICE}",
        low=0, high=_MOST, short="actions=", axis="action_size",
    )  # fmt: skip
    solution_length: tuple[int, int] | None = knob(
        None, f"actions of the gold path; {_CHOICE}",
        low=0, high=_MOST, short="length=", axis="solution_length",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """See `Options`."""
        super().__post_init__()
        electrical = [name for name in self.task_types or TASKS if "power-component" in name or "conductivity" in name]
        if electrical and "noElectricalAction" in (self.simplifications or ()):
            raise InvalidOptionError(
                'simplifications must not hold "noElectricalAction" where task_types hold tasks on electricity: '
                f"{', '.join(electrical)}"
            )

    @property
    def simplified(self) -> str:
        """The simplifications as the simulator takes them."""
        return ",".join(self.simplifications or ())

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Ranges of measured difficulty, by axis, that tasks are chosen by."""
        return {axis: asked for axis in AXES if (asked := getattr(self, axis)) is not None}


class ScienceWorldTasks(ListedTasks[Task]):
    """The variations of the tasks; ids are `ScienceWorld/vVERSION/SPLIT/TASK/VARIATION`.

    A split begins with the first variation of every task, then the second of every task, and so on: the first tasks of
    a split are of all sorts. With simplifications, their names follow the version in an id, and so do the ranges that
    tasks are chosen by. Tasks that were chosen so carry all that was measured.

    Raises:
        InfeasibleDifficultyError: no task that was measured is in the ranges.
    """

    splits = SPLITS

    def __init__(self, options: ScienceWorldOptions | None = None) -> None:
        self.options = options or ScienceWorldOptions()
        self._start = _start_of(self.options)
        if self.options.ranges and not any(map(self.size, SPLITS)):
            raise InfeasibleDifficultyError(self._complaint())

    def world(self, task: Task) -> tuple[str, int]:
        """Name and variation of a task."""
        _, name, variation = task.id.rsplit("/", 2)
        return name, int(variation)

    def _ids(self, split: str) -> tuple[str, ...]:
        return _ids_of(self.options, split)

    def _load(self, task_id: str, split: str, index: int) -> Task:
        _, name, variation = task_id.rsplit("/", 2)
        if self.options.ranges:
            complexity = _measured(self.options, name, int(variation))
        else:
            path = None if self.options.simplified else recorded(name, int(variation))
            complexity = Complexity() if path is None else path.complexity()
        return Task(id=task_id, split=split, index=index, complexity=complexity, milestones=1, task_type=name)

    def _advice(self) -> str:
        one = next(task_id for split in SPLITS for task_id in self._ids(split))
        return f"Ids are {self._start}/<split>/<task>/<variation>, such as {one}."

    def _complaint(self) -> str:
        asked = ", ".join(f"{axis}={given}" for axis, given in self.options.ranges.items())
        every = replace(self.options, **dict.fromkeys(AXES))
        complexities = [_measured(every, *address) for split in SPLITS for address in _addresses(every, split)]
        there = {axis: [value for each in complexities if (value := getattr(each, axis)) is not None] for axis in AXES}
        sizes = ", ".join(f"{axis} goes from {min(all_):g} to {max(all_):g}" for axis, all_ in there.items() if all_)
        return f"no task that was measured has {asked}; with the other options, {sizes or 'none was measured'}"


def _start_of(options: ScienceWorldOptions) -> str:
    return "-".join(filter(None, (_PREFIX, options.slug)))


@lru_cache(maxsize=256)
def _ids_of(options: ScienceWorldOptions, split: str) -> tuple[str, ...]:
    """Ids of a split, in order."""
    start = f"{_start_of(options)}/{split}"
    return tuple(f"{start}/{name}/{variation}" for name, variation in _addresses(options, split))


def _addresses(options: ScienceWorldOptions, split: str) -> list[tuple[str, int]]:
    """Names and variations of the tasks of a split, in order."""
    which = SPLITS.index(split)
    ranked = [
        (rank, name, sum(TASKS[name][:which]) + rank)
        for name in TASKS
        if name in (options.task_types or TASKS)
        for rank in range(min(TASKS[name][which], options.variations or TASKS[name][which]))
    ]
    ordered = [(name, variation) for _, name, variation in sorted(ranked, key=lambda each: each[0])]
    return [address for address in ordered if _is_chosen(options, *address)]


def _is_chosen(options: ScienceWorldOptions, name: str, variation: int) -> bool:
    """Whether a task is in all ranges."""
    return all(
        (value := getattr(_measured(options, name, variation), axis)) is not None and least <= value <= most
        for axis, (least, most) in options.ranges.items()
    )


def _measured(options: ScienceWorldOptions, name: str, variation: int) -> Complexity:
    return measured(name, variation, options.simplified)
