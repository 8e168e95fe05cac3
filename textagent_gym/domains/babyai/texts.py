"""What the agent sees, in words: ours, AgentGym's and BALROG's.

AgentGym's are the sentences of `agentenv-babyai` (its goal with `then` and `after you`, which it rewrites to `and`).
BALROG's are the descriptions of the Minigrid that it installs, one per line, without `You see`.
"""

from __future__ import annotations

from typing import Literal

from textagent_gym.domains.babyai.commands import DOOR_STATES, named_things
from textagent_gym.domains.babyai.grid import EMPTY, NOWHERE, WALL, Seen, State, view

TextFormat = Literal["concise", "agentgym", "balrog"]


def goal(mission: str, text_format: TextFormat) -> str:
    """The line that states the goal."""
    return f"Your goal: {mission}" if text_format == "agentgym" else f"Goal: {mission}."


def describe(state: State, size: int, text_format: TextFormat) -> str:
    """What the agent sees and carries."""
    seen = view(state, size)
    return {"concise": _concise, "agentgym": _agentgym, "balrog": _balrog}[text_format](state, seen, size)


def _concise(state: State, seen: list[Seen], size: int) -> str:
    things = "; ".join(f"{each.name}, {_place(each.seen)}" for each in named_things(state, seen))
    walls = [each for each in seen if each.thing == WALL and each.right == 0]
    ahead = f"Wall {min(each.ahead for each in walls)} ahead. " if walls else ""
    held = "nothing" if state.carrying == NOWHERE else _name(state, state.carrying)
    return f"You see: {things or 'nothing'}. {ahead}You carry: {held}."


def _place(seen: Seen) -> str:
    ahead = f"{seen.ahead} ahead" if seen.ahead else ""
    side = f"{abs(seen.right)} {'right' if seen.right > 0 else 'left'}" if seen.right else ""
    return " ".join(part for part in (ahead, side) if part)


def _name(state: State, thing: int) -> str:
    what = state.world.things[thing]
    return f"{what.color} {what.kind}"


def _agentgym(state: State, seen: list[Seen], size: int) -> str:
    inside = [each for each in seen if each.cell != NOWHERE or not _is_above_or_left(state, each)]
    if any(each.thing != EMPTY for each in inside):
        text = "In front of you in this room, you can see several objects: "
        text += "".join(f"There is a {each.name} {_agentgym_place(each.seen)}  " for each in named_things(state, seen))
    else:
        text = "You cannot see any objects within sight."
    text += "The room has walls around you. "
    barriers = [each for each in inside if each.right == 0 and _is_barrier(state, each)]
    if barriers:
        nearest = min(barriers, key=lambda each: each.ahead)
        kind = "wall" if nearest.thing == WALL else "box"
        text += f"You are facing a {kind} {nearest.ahead} steps away. "
    if state.carrying == NOWHERE:
        return f"{text}You are not carrying anything."
    return f"{text}You are carrying a {_name(state, state.carrying)}."


def _is_above_or_left(state: State, seen: Seen) -> bool:
    """Whether a cell outside the grid has a negative coordinate: AgentGym leaves out those, and no others."""
    y, x = divmod(state.agent, state.world.width)
    dx, dy = ((1, 0), (0, 1), (-1, 0), (0, -1))[state.direction]
    return x + seen.ahead * dx - seen.right * dy < 0 or y + seen.ahead * dy + seen.right * dx < 0


def _is_barrier(state: State, seen: Seen) -> bool:
    return seen.thing == WALL or (seen.thing >= 0 and state.world.things[seen.thing].kind == "box")


def _agentgym_place(seen: Seen) -> str:
    if seen.right == 0:
        return f"right in front of you {seen.ahead} steps away."
    side = "right" if seen.right > 0 else "left"
    return f"{seen.ahead} steps in front of you and {abs(seen.right)} steps to your {side}."


def _balrog(state: State, seen: list[Seen], size: int) -> str:
    lines = []
    if state.carrying != NOWHERE:
        lines.append(f"You carry a {_name(state, state.carrying)}")
    rays = (
        ("forward", [(0, distance) for distance in range(1, size)]),
        ("left", [(-distance, 0) for distance in range(1, size // 2 + 1)]),
        ("right", [(distance, 0) for distance in range(1, size // 2 + 1)]),
    )
    contents = {(each.right, each.ahead): each.thing for each in seen}
    for direction, cells in rays:
        for distance, cell in enumerate(cells, start=1):
            thing = contents.get(cell, EMPTY)
            if thing != EMPTY:
                if thing == WALL:
                    lines.append(f"a wall {_steps(distance)} {direction}")
                break
    for each in sorted(seen, key=lambda each: (each.right, -each.ahead)):
        if each.thing >= 0:
            name = _name(state, each.thing)
            if state.world.is_door[each.thing]:
                name = f"{DOOR_STATES[state.doors[each.thing]]} {name}"
            lines.append(f"a {name} {_balrog_place(each)}")
    return "\n".join(lines)


def _balrog_place(seen: Seen) -> str:
    side = f"{_steps(abs(seen.right))} {'right' if seen.right > 0 else 'left'}" if seen.right else ""
    ahead = f"{_steps(seen.ahead)} forward" if seen.ahead else ""
    return " and ".join(part for part in (side, ahead) if part)


def _steps(count: int) -> str:
    return f"{count} step{'s' if count > 1 else ''}"
