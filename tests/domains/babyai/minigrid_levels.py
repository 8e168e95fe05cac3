"""Minigrid's own levels beside our states."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from textagent_gym.domains.babyai.grid import EMPTY, WALL, State, view
from textagent_gym.domains.babyai.levels import GridSpec, LevelSpec
from textagent_gym.sources import seed_bytes


def begin(spec: LevelSpec | GridSpec, seed: int) -> tuple[Any, State]:
    """A level of Minigrid and the same level here."""
    from textagent_gym.domains.babyai.construction import draw, world_of

    level = draw(spec, seed_bytes("tests", spec.slug, seed))
    level.max_steps = 10**9
    return level, State(world_of(level))


def seen_by_minigrid(level: Any) -> dict[tuple[int, int], tuple[str, str, int]]:
    """Kind, color and state of each cell that Minigrid shows, by steps to the right and ahead; not the agent's own."""
    from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT

    grid, mask = level.gen_obs_grid()
    image, size = grid.encode(mask), level.agent_view_size
    cells = {}
    for column in range(size):
        for row in range(size):
            kind, color, state = (int(number) for number in image[column, row])
            name = IDX_TO_OBJECT[kind]
            if name != "unseen" and (column, row) != (size // 2, size - 1):
                colored = name not in ("wall", "empty")
                cells[column - size // 2, size - 1 - row] = (name, IDX_TO_COLOR[color] if colored else "", state)
    return cells


def seen_here(state: State, size: int) -> dict[tuple[int, int], tuple[str, str, int]]:
    """The same from our view."""
    cells = {}
    for each in view(state, size):
        if each.thing in (EMPTY, WALL):
            cells[each.right, each.ahead] = ("empty" if each.thing == EMPTY else "wall", "", 0)
        else:
            thing = state.world.things[each.thing]
            cells[each.right, each.ahead] = (thing.kind, thing.color, state.doors[each.thing])
    return cells


def play_beside(level: Any, state: State, rng: random.Random, steps: int) -> Iterator[tuple[int, str]]:
    """Play random primitive actions in both: each action, and how the episode stands in Minigrid."""
    for _ in range(steps):
        action = rng.choices(range(6), weights=[2, 2, 5, 2, 1, 2])[0]
        _, reward, terminated, _, _ = level.step(action)
        state.step(action)
        status = ("success" if reward > 0 else "failure") if terminated else "continue"
        yield action, status
        if terminated:
            return
