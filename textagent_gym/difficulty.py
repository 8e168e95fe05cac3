"""Difficulty: what is asked of a world. Complexity: what was measured in the task that came out of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """What is asked of a world on the three axes that every domain shares. `None` leaves an axis to the domain.

    Each domain maps the axes to its own knobs (TextWorld: rooms, objects, quest length); its page says how.
    """

    state_size: int | None = None
    action_size: int | None = None
    solution_length: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidOptionError(f"{field.name} must be a whole number of at least 1, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complexity:
    """What was measured in one task.

    Attributes:
        state_size: entities of the world (rooms, doors, objects, ...), a count.
        action_size: mean number of admissible actions along the optimal plan; 0.0 where they cannot be enumerated.
        solution_length: number of actions in the shortest plan found; `None` where no planner knows the world.
        exact: the plan is proven to be a shortest one.
        exploration_cost: turns that a systematic searcher is expected to need until it has found what the goal needs;
            `None` where the domain does not measure it.
    """

    state_size: int
    action_size: float
    solution_length: int | None
    exact: bool
    exploration_cost: float | None = None

    def to_dict(self) -> dict[str, int | float | bool | None]:
        """The measurements as plain JSON values."""
        return asdict(self)
