"""What can be asked for: Minigrid's levels by name, and levels of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import Options, knob
from textagent_gym.registration import BABYAI_LEVELS

LEVELS = {name: f"BabyAI-{name}-v{int(name == 'GoToObjS6')}" for name in BABYAI_LEVELS}
"""Minigrid's ids of AgentGym's levels. GoToObjS6-v0 no longer exists; v1 stands for it."""


@dataclass(frozen=True, kw_only=True)
class PlayOptions(Options):
    """How a level is played, which decides the length of a plan and so which task it is."""

    actions: Literal["macro", "primitive"] = knob(
        "macro", 'actions: "primitive" turns and steps, "macro" also walks to what is seen', short="", always=True
    )
    view_size: int = knob(7, "width and depth of the view in cells, odd", low=3, high=15, short="v")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.view_size % 2 == 0:
            raise InvalidOptionError(f"view_size must be odd, got {self.view_size}")


@dataclass(frozen=True, kw_only=True)
class LevelSpec(PlayOptions):
    """One of Minigrid's levels."""

    level: str = knob("GoToRedBall", "level of Minigrid", choices=BABYAI_LEVELS, short="", always=True)


@dataclass(frozen=True, kw_only=True)
class GridSpec(PlayOptions):
    """A level of any size."""

    kind: ClassVar[str] = "grid"

    rows: int = knob(1, "rows of rooms", low=1, high=4, short="r", always=True)
    columns: int = knob(2, "columns of rooms", low=1, high=4, short="c", always=True)
    room_size: int = knob(
        6, "width and height of a room in cells, walls included", low=4, high=12, short="s", always=True
    )
    objects: int = knob(
        6, "keys, balls and boxes, those that matter included", low=1, high=40, short="o", always=True,
        axis="state_size",
    )  # fmt: skip
    clauses: int = knob(1, "things to do, in a sequence where there are several", low=1, high=4, short="n")
    kinds: tuple[str, ...] = knob(
        ("goto", "pickup", "open", "putnext"), "sorts of things to do",
        choices=("goto", "pickup", "open", "putnext"), short="k",
    )  # fmt: skip
    locations: bool = knob(False, "whether objects may be named by their place, such as `on your left`", short="l")
    doors_open: bool = knob(False, "whether all doors that are not locked stand open", short="p")
    locked_room: bool = knob(False, "whether one room is locked; its key is one of the objects", short="x")
    solution_length: int | None = knob(
        None, "actions of the shortest plan, exactly, proven by search; `None` for any", low=1, high=100, short="q",
        axis="solution_length",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        rooms = self.rows * self.columns
        if rooms == 1 and self.locked_room:
            raise InvalidOptionError("locked_room=True needs two rooms: set rows or columns to 2")
        if rooms == 1 and set(self.kinds) == {"open"}:
            raise InvalidOptionError("kinds=('open',) needs a door: set rows or columns to 2")
        if rooms == 1 and self.objects == 1 and set(self.kinds) <= {"open", "putnext"}:
            raise InvalidOptionError(
                f"kinds={self.kinds} needs a second object or a door: set objects, rows or columns to 2"
            )
        space = rooms * (self.room_size - 2) ** 2
        most = space // 2 if space > 4 else 1  # Minigrid keeps the middle of the world and the cells next to it clear.
        if self.objects > most:
            share = f", half of the {space} cells, fit" if most > 1 else f" of the {space} cells is free for one"
            raise InvalidOptionError(
                f"objects={self.objects} needs more room: at most {most}{share} in {rooms} "
                f"room{'s' if rooms > 1 else ''} with room_size={self.room_size}"
            )
