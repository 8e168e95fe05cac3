"""Shortest solutions by breadth-first search over what the engine itself admits: no heuristic, no symmetry."""

from __future__ import annotations

from textagent_gym.domains.alfworld.engine import State

IDLE = ("look", "inventory", "help", "examine ", "close ")


def shortest(start: State, named: set[str], most: int = 200_000) -> int | None:
    """Number of actions of a shortest solution; `None` where more than `most` states would have to be looked at.

    Args:
        start: where to begin.
        named: objects that the goals can use; no others are taken, and nothing is closed, which helps nobody because
            receptacles hold any number of objects.
        most: bound of the search.
    """
    layer, seen, length = [start], {identity(start)}, 0
    while layer:
        following = []
        for state in layer:
            if state.won:
                return length
            for command in state.commands():
                if command.startswith(IDLE) or (
                    command.startswith("take ") and command[5:].split(" from ")[0] not in named
                ):
                    continue
                after = state.copy()
                after.step(command)
                key = identity(after)
                if key not in seen:
                    seen.add(key)
                    following.append(after)
            if len(seen) > most:
                return None
        layer, length = following, length + 1
    return None


def identity(state: State) -> tuple[object, ...]:
    """Everything that can change what is possible later."""
    marked = tuple(state.marked[name] for name in sorted(state.marked))
    return (state.place, state.held, state.opened, tuple(state.contents), marked, state.on)
