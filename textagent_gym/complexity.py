"""What was measured in a task, on the axes that every world shares."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Complexity:
    """What was measured in one task. A value that is unknown is `None`, never a guess.

    Worlds subclass it with what they alone measure.

    Attributes:
        state_size: number of entities of the world (rooms, doors, objects, ...).
        action_size: mean number of admissible actions along the optimal plan.
        solution_length: number of actions in the shortest plan found.
        exact: whether the plan is proven to be a shortest one.
    """

    state_size: int | None = None
    action_size: float | None = None
    solution_length: int | None = None
    exact: bool = False

    def to_dict(self) -> dict[str, int | float | bool | None]:
        """The measurements as plain JSON values."""
        return asdict(self)
