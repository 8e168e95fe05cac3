"""Levels as the package `minigrid` draws them, within a bound.

Minigrid draws again until a level is acceptable, for some seeds without end, and says so on standard output. Here a
level draws from a generator that counts, and draws again in silence.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator

from textagent_gym.domains.babyai.grid import CLOSED, EMPTY, LOCKED, NOWHERE, OPEN, WALL, Thing, World
from textagent_gym.domains.babyai.instruction import Clause, Instruction, Sequence
from textagent_gym.domains.babyai.levels import LEVELS, GridSpec, LevelSpec
from textagent_gym.errors import MissingDependencyError

if find_spec("minigrid") is None:
    raise MissingDependencyError("minigrid", "babyai")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # Minigrid imports it, and it greets on standard output.

import minigrid
from minigrid.core.roomgrid import RoomGrid
from minigrid.core.world_object import WorldObj
from minigrid.envs.babyai.core.levelgen import LevelGen
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import (
    ActionInstr,
    AfterInstr,
    AndInstr,
    BeforeInstr,
    GoToInstr,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)

MOST_DRAWS = 50_000
"""Random numbers that a level may draw: half a second, and far more than a level that can be built needs."""


class TooManyDrawsError(Exception):
    """A level has drawn more random numbers than it may."""


class _CountingGenerator(np.random.Generator):
    """A generator that ends a loop without end."""

    draws = 0

    def integers(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().integers(*args, **kwargs)

    def uniform(self, *args: Any, **kwargs: Any) -> Any:
        self._count()
        return super().uniform(*args, **kwargs)

    def _count(self) -> None:
        self.draws += 1
        if self.draws > MOST_DRAWS:
            raise TooManyDrawsError


class _GridLevel(LevelGen):  # type: ignore[misc]
    """A level of any size, with any number of clauses."""

    def __init__(self, spec: GridSpec, **kwargs: Any) -> None:
        self._spec = spec
        super().__init__(
            room_size=spec.room_size,
            num_rows=spec.rows,
            num_cols=spec.columns,
            num_dists=spec.objects - spec.locked_room,
            locked_room_prob=float(spec.locked_room),
            locations=spec.locations,
            action_kinds=spec.kinds,
            **kwargs,
        )

    def gen_mission(self) -> None:
        super().gen_mission()
        if self._spec.doors_open:
            for thing in self.grid.grid:
                if thing is not None and thing.type == "door" and not thing.is_locked:
                    thing.is_open = True

    def rand_instr(self, action_kinds: Any, instr_kinds: Any, depth: int = 0) -> Any:
        return self._draw(self._spec.clauses)

    def _draw(self, count: int, *, paired: bool = False) -> Any:
        if count == 1:
            return super().rand_instr(self.action_kinds, ["action"])
        if paired or (count == 2 and self._rand_bool()):
            return AndInstr(self._draw(1), self._draw(1))
        least = 1 if count < 4 else 2
        first = self._rand_int(least, count - least + 1)
        ordered = BeforeInstr if self._rand_bool() else AfterInstr
        return ordered(self._draw(first, paired=True), self._draw(count - first, paired=True))


def draw(spec: LevelSpec | GridSpec, seed: bytes) -> RoomGridLevel:
    """A level of Minigrid, begun: the same one for the same arguments, everywhere.

    Raises:
        TooManyDrawsError: the level cannot be drawn with this seed.
    """
    return draw_with(spec, np.random.PCG64(int.from_bytes(seed[:16], "big")))


def draw_with(spec: LevelSpec | GridSpec, bits: np.random.BitGenerator) -> RoomGridLevel:
    """A level of Minigrid, begun, from any source of random bits.

    Raises:
        TooManyDrawsError: the level cannot be drawn with these bits.
    """
    if isinstance(spec, GridSpec):
        level: RoomGridLevel = _silent(_GridLevel)(spec, agent_view_size=spec.view_size)
    else:
        if LEVELS[spec.level] not in gymnasium.registry:
            minigrid.register_minigrid_envs()
        registered = gymnasium.spec(LEVELS[spec.level])
        assert isinstance(registered.entry_point, str)
        level_class = load_env_creator(registered.entry_point)
        level = _silent(level_class)(agent_view_size=spec.view_size, **registered.kwargs)
    level._np_random = _CountingGenerator(bits)
    level.reset()
    return level


def _silent(level: Any) -> Any:
    """The class of a level that does not print when it draws again."""

    def _gen_grid(self: Any, width: int, height: int) -> None:
        while True:
            try:
                RoomGrid._gen_grid(self, width, height)
                self.gen_mission()
                self.validate_instrs(self.instrs)
                break
            except (RecursionError, RejectSampling):
                continue
        self.surface = self.mission = self.instrs.surface(self)

    return type(level.__name__, (level,), {"_gen_grid": _gen_grid})


def world_of(level: RoomGridLevel) -> World:
    """What a level of Minigrid is, as plain data."""
    width, height = level.grid.width, level.grid.height
    things: list[WorldObj] = []

    def number(thing: WorldObj | None) -> int:
        if thing is None:
            return EMPTY
        if thing.type == "wall":
            return WALL
        for index, each in enumerate(things):
            if each is thing:
                return index
        things.append(thing)
        return len(things) - 1

    cells = tuple(number(thing) for thing in level.grid.grid)
    carrying = NOWHERE if level.carrying is None else number(level.carrying)
    for thing in things:  # It grows: what is in a box comes after it.
        if thing.contains is not None:
            number(thing.contains)
    known = [NOWHERE] * len(things)
    instruction = _instruction(level.instrs, number, known, width, [0])
    for cell, index in enumerate(cells):
        if index >= 0:
            known[index] = cell
    x, y = (int(part) for part in level.agent_pos)
    return World(
        mission=level.mission,
        instruction=instruction,
        width=width,
        height=height,
        things=tuple(Thing(each.type, each.color, number(each.contains)) for each in things),
        cells=cells,
        doors=tuple(_door(each) for each in things),
        known=tuple(known),
        agent=y * width + x,
        direction=int(level.agent_dir),
        carrying=carrying,
        rooms=level.num_rows * level.num_cols,
    )


def _door(thing: WorldObj) -> int:
    if thing.type != "door" or thing.is_open:
        return OPEN
    return LOCKED if thing.is_locked else CLOSED


def _instruction(what: Any, number: Any, known: list[int], width: int, counter: list[int]) -> Instruction:
    """An instruction as data; notes in `known` where the verifier looks for its things."""
    index, counter[0] = counter[0], counter[0] + 1
    if isinstance(what, ActionInstr):
        kinds = {GoToInstr: "goto", OpenInstr: "open", PickupInstr: "pickup", PutNextInstr: "putnext"}
        descriptions = [getattr(what, name) for name in ("desc", "desc_move", "desc_fixed") if hasattr(what, name)]
        for each in descriptions:
            for thing, (x, y) in zip(each.obj_set, each.obj_poss, strict=True):
                known[number(thing)] = int(y) * width + int(x)
        sets = [tuple(number(thing) for thing in each.obj_set) for each in descriptions]
        kind: Any = kinds[type(what)]
        return Clause(kind, index, sets[0], sets[1] if len(sets) > 1 else (), getattr(what, "strict", False))
    first, second = (_instruction(each, number, known, width, counter) for each in (what.instr_a, what.instr_b))
    if isinstance(what, AfterInstr):
        return Sequence("after", index, second, first, what.strict)
    return Sequence("and" if isinstance(what, AndInstr) else "before", index, first, second, what.strict)
