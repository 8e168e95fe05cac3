"""What a planner answers, in every world that has one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to reach the goal.

    Attributes:
        commands: actions in order, as an agent types them.
        exact: whether it is proven that no shorter way exists.
    """

    commands: tuple[str, ...]
    exact: bool = True
