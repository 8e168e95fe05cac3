"""BabyAI's tasks: Minigrid's levels, and levels of any size, both without end."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from textagent_gym.complexity import Complexity
from textagent_gym.domains.babyai.commands import admissible
from textagent_gym.domains.babyai.grid import State, World
from textagent_gym.domains.babyai.levels import GridSpec, LevelSpec
from textagent_gym.domains.babyai.planner import solve, solve_within
from textagent_gym.errors import InfeasibleDifficultyError, PlanningBudgetError
from textagent_gym.planning import Plan
from textagent_gym.repetition import RepetitionWatch
from textagent_gym.sources import GeneratedTasks, seed_bytes
from textagent_gym.tasks import in_split

VERSION = 1
"""Version of the generator, the second part of every id."""
DRAWS = 60
"""Levels that are drawn for a task before it is called infeasible; two of three belong to another split."""
DRAWS_FOR_A_LENGTH = 400
"""The same where a solution length is asked for."""
DRAWS_TO_COME_NEAR = 100
"""Draws after which a solution length is given up that the plans so far are nowhere near: the longest is less than half
of ten less. About thirty of the levels belong to the split, and the longest of them is seldom far from that of all."""
MOST_STUCK_AT_FIRST = 5
"""Seeds that are stuck before the first level is drawn, each for half a second or more. Of the fullest levels that can
be drawn, one in twelve is stuck."""
MOST_STUCK = 20
"""The same in all, where levels have been drawn."""

Spec = LevelSpec | GridSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GridComplexity(Complexity):
    """What was measured in a level.

    `state_size` is the number of keys, balls and boxes.

    Attributes:
        rooms: number of rooms.
        doors: number of doors.
        clauses: number of things to do.
    """

    rooms: int
    doors: int
    clauses: int


class BabyAITasks(GeneratedTasks[Spec, World]):
    """Levels. One belongs to one split only, by its layout and instruction."""

    prefix = "BabyAI"
    version = VERSION

    def __init__(self, spec: Spec | None = None) -> None:
        super().__init__(spec or GridSpec())
        self._repetition = RepetitionWatch(f"{self.prefix}/{self.spec.slug}")

    def _make(self, split: str, index: int) -> World:
        world = _generate(self.spec, split, index)[0]
        self._repetition.note(split, index, lambda: repr(world))
        return world

    def _measure(self, world: World) -> tuple[Complexity, int, str]:
        kinds = "+".join(clause.kind for clause in world.clauses)
        return measure(world, view_of(self.spec)), len(world.clauses), kinds

    def seed(self, split: str, index: int) -> bytes:
        """Random bits of a task's level, for Minigrid's own environment."""
        return _generate(self.spec, split, index)[1]


def view_of(spec: Spec) -> int | None:
    """Width and depth of the view that commands refer to; `None` for primitive actions."""
    return spec.view_size if spec.actions == "macro" else None


@lru_cache(maxsize=4096)
def _generate(spec: Spec, split: str, index: int) -> tuple[World, bytes]:
    """A level and the random bits that it was drawn from.

    Raises:
        InfeasibleDifficultyError: no level was found within the bounds of this module.
        MissingDependencyError: `minigrid` is not installed.
    """
    from textagent_gym.domains.babyai.construction import TooManyDrawsError, draw, world_of

    length = spec.solution_length if isinstance(spec, GridSpec) else None
    seen = _Drawn()
    for attempt in range(DRAWS if length is None else DRAWS_FOR_A_LENGTH):
        if length is not None and attempt == DRAWS_TO_COME_NEAR and seen.is_nowhere_near(length):
            break
        seed = seed_bytes(VERSION, spec.slug, split, index, attempt)
        try:
            world = world_of(draw(spec, seed))
        except TooManyDrawsError:
            seen.stuck += 1
            if seen.stuck == (MOST_STUCK if seen.levels else MOST_STUCK_AT_FIRST):
                break
            continue
        seen.levels += 1
        if not in_split(repr(world), split):
            continue
        if length is None:
            # As in OpenDoorsOrderN4Debug, whose pairs contradict themselves.
            if is_out_of_reach(world, view_of(spec)):
                continue
            return world, seed
        plan = solve_within(State(world), view_of(spec), length)
        if plan is not None and len(plan.commands) == length:
            return world, seed
        if plan is None:
            seen.longer += 1
        else:
            seen.shorter.append(len(plan.commands))
    raise InfeasibleDifficultyError(f"no level was found for {spec.slug}: {seen.complaint()}")


@dataclass(slots=True)
class _Drawn:
    """Everything that was drawn in vain.

    Attributes:
        stuck: number of seeds with which a level cannot be drawn.
        levels: number of levels, of any split.
        shorter: lengths of the plans that are shorter than what was asked for.
        longer: number of levels with longer plans, or with plans that were not found within the bounds of the search.
    """

    stuck: int = 0
    levels: int = 0
    shorter: list[int] = field(default_factory=list)
    longer: int = 0

    def is_nowhere_near(self, length: int) -> bool:
        """Whether nine in ten plans are shorter, and by far: see `DRAWS_TO_COME_NEAR`."""
        return 10 * self.longer <= len(self.shorter) and 2 * max(self.shorter, default=length) <= length - 10

    def complaint(self) -> str:
        """Reason why nothing was found, and what helps."""
        if self.stuck and not self.levels:
            return "its objects and doors do not fit; a larger room_size or fewer objects help"
        if self.shorter:
            return (
                f"of those drawn, {len(self.shorter)} have shorter plans, the longest of {max(self.shorter)} actions, "
                f"and {self.longer} have longer ones, or none within reach of the search; more and larger rooms and "
                "more clauses make plans longer"
            )
        if self.longer:
            return (
                f"of those drawn, all {self.longer} have longer plans, or none within reach of the search; fewer and "
                "smaller rooms and fewer clauses make plans shorter"
            )
        return "those drawn belong to other splits; a larger room_size or more objects give more levels"


@lru_cache(maxsize=4096)
def _planned(world: World, size: int | None) -> tuple[Plan | None, bool]:
    """The shortest plan found from the start, and whether the search has ended."""
    try:
        return solve(State(world), size), True
    except PlanningBudgetError:
        return None, False


def plan_of(world: World, size: int | None) -> Plan | None:
    """The shortest plan found from the start; `None` where none was found."""
    return _planned(world, size)[0]


def is_out_of_reach(world: World, size: int | None) -> bool:
    """Whether it is proven that the goal cannot be reached."""
    plan, ended = _planned(world, size)
    return ended and plan is None


@lru_cache(maxsize=4096)
def measure(world: World, size: int | None) -> GridComplexity:
    """Measured difficulty; what a plan decides is `None` where none was found."""
    plan = plan_of(world, size)
    action_size = None
    if plan is not None and plan.commands:
        state = State(world)
        counts = []
        for command in plan.commands:
            commands = admissible(state, size)
            counts.append(len(commands))
            for action in commands[command]:
                state.step(action)
                if state.status != "continue":
                    break
        action_size = sum(counts) / len(counts)
    doors = sum(world.is_door)
    return GridComplexity(
        state_size=len(world.things) - doors,
        action_size=action_size,
        solution_length=None if plan is None else len(plan.commands),
        exact=plan is not None and plan.exact,
        rooms=world.rooms,
        doors=doors,
        clauses=len(world.clauses),
    )
